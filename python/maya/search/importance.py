"""How much each parameter matters: the share of the goal's variance that it explains by itself (first-order effect)."""

from __future__ import annotations

import math
from typing import Sequence

from maya.search.space import Space
from maya.search.store import Record


def shares(space: Space, records: Sequence[Record]) -> list[tuple[str, float]]:
    """Var(E[log goal | parameter]) / Var(log goal) over the trials that ran and fit, largest first. The mean of a small
    group is uncertain, so the variance that random groups would have is subtracted."""
    goals = [math.log(r.goals[0]) for r in records if r.goals and r.goals[0] > 0]
    if len(goals) < 4 or len(goals) != len(records):
        return []
    mean = sum(goals) / len(goals)
    total = sum((g - mean) ** 2 for g in goals)
    if total <= 1e-12:
        return []
    found = []
    for name in space.parameters:
        groups: dict[object, list[float]] = {}
        for record, goal in zip(records, goals):
            groups.setdefault(record.values.get(name), []).append(goal)
        between = sum(len(g) * (sum(g) / len(g) - mean) ** 2 for g in groups.values())
        chance = (len(groups) - 1) * (total - between) / max(1, len(goals) - len(groups))
        found.append((name, max(0.0, min(1.0, (between - chance) / total))))
    return sorted(found, key=lambda item: -item[1])
