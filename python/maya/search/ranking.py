"""The order of what was found: best first, and the front of those that nothing beats in every goal."""

from __future__ import annotations

from typing import Sequence

from maya.search import outcome, serving
from maya.search.objective import peak_memory
from maya.search.space import Space
from maya.search.store import Record


def ranked(space: Space, records: Sequence[Record]) -> list[Record]:
    """Configurations that fit and keep the limits, best first by the first goal; equal commands once."""
    return _ordered(space, records, outcome.OK)


def may_fit(space: Space, records: Sequence[Record]) -> list[Record]:
    """Configurations of which the prediction cannot tell whether they fit, in the same order: those that would be
    better than every one that fits."""
    best, low = ranked(space, records)[:1], space.objective.low_is_good
    goal = space.objective.goals[0]
    return [r for r in _ordered(space, records, outcome.MAY_FIT)
            if not best or low(goal, r.goals[0]) < low(goal, best[0].goals[0])]


def _ordered(space: Space, records: Sequence[Record], kind: str) -> list[Record]:
    goal, low = space.objective.goals[0], space.objective.low_is_good
    found, keys = [], set()
    decided = (outcome.OK, outcome.MAY_FIT, outcome.OUT_OF_MEMORY, outcome.OVER_LIMIT)
    run = {r.key for r in records if r.key and r.kind in decided and not r.checks.get("extrapolated")}
    # The full run counts.
    kept = [r for r in records if r.kind == kind and not (r.checks.get("extrapolated") and r.key in run)]
    for record in sorted(kept, key=lambda r: (low(goal, r.goals[0]), second(space, r), r.number)):
        if record.key not in keys:
            keys.add(record.key)
            found.append(record)
    return found


def second(space: Space, record: Record) -> float:
    """What decides between equal goals: engines that answer the same load cost the same, and differ in how fast."""
    if space.serving is None:
        return 0.0
    time = "ttft" if space.objective.goals[0].endswith("_tpot") else "tpot"
    return serving.time_ms(record.prediction, time, "median") or 0.0


def costs(space: Space, record: Record) -> tuple[float, ...]:
    """What is to be small: the goals; for a single goal also memory (of an engine: the time of a token), so
    that there is a front to draw."""
    goals = space.objective.goals
    values = [space.objective.low_is_good(goal, value) for goal, value in zip(goals, record.goals)]
    if len(goals) == 1 and space.serving:
        values.append(second(space, record))
    elif len(goals) == 1:
        values.append(float(peak_memory(record.prediction)[0]))
    return tuple(values)


def pareto(space: Space, records: Sequence[Record]) -> list[Record]:
    """Those that no other beats in one cost without losing in another."""
    front: list[tuple[tuple[float, ...], Record]] = []
    for record in ranked(space, records):
        mine = costs(space, record)
        if not any(all(a <= b for a, b in zip(theirs, mine)) for theirs, _ in front):
            front.append((mine, record))
    return [record for _, record in front]
