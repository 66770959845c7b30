"""How much faster one configuration is than another, and whether the prediction can distinguish them.

Two predictions of one job share most of their error: the same kernels, the same links, the same host. What is uncertain
is the ratio of their times, and in it common errors cancel. With s_f the share of family f in a step's critical path
and e_f the family's relative error,

    ln(T_b / T_a)  is uncertain by  sum over f of  e_f (s_f,a - s_f,b)      for what is the same in both,

summed in quadrature over families, which are taken to be independent. Ops of a family that only one of the two runs
(another shape, another kernel) err together only in part: SHARED of the variance is common to the family, the rest is
each op's own. The error of the boards (clock, age of the libraries) is common to all families and cancels where the GPU
is the same. The host's time is measured anew in each recording, next to whatever else the machine does: there, too,
only SHARED of the variance is common, unless both predictions are of one recording.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Mapping, Sequence

from maya.search import serving
from maya.search.objective import GOALS, peak_memory
from maya.search.space import Space
from maya.search.store import Record

# The share of the variance of a family's error that its different shapes have in common, and that the host times of two
# recordings have. This is an assumption: the models are fitted by family, and the residuals within a family vary about
# as much as the errors of whole families. Six recordings of one program whose steps only wait for the host had steps of
# 0.9 to 1.3 ms on a busy machine; the host's error is 25 %.
SHARED = 0.5
# Two recordings of one configuration differ, because host times vary. Nine configurations of
# examples/search/llama-8gpu.toml that were recorded twice on a busy machine differed by 0.2 % (root mean square), which
# is 0.26 % at 80 %.
RECORDING = 0.0026
# The error of time that belongs to no family: waiting is as uncertain as the work that is waited for.
WAITING = "waiting"


@dataclass(frozen=True)
class Difference:
    """How b compares with a: `percent` slower (negative: faster), with half an 80 % interval."""

    percent: float
    plus_minus: float

    @property
    def tied(self) -> bool:
        return abs(self.percent) <= self.plus_minus

    def __str__(self) -> str:
        return f"{abs(self.percent):.1f} ± {self.plus_minus:.1f} % {'slower' if self.percent > 0 else 'faster'}"


def _has_families(prediction: Mapping[str, Any]) -> bool:
    return bool(prediction.get("step") and prediction.get("families"))


def _families(prediction: Mapping[str, Any]) -> dict[str, tuple[float, float]]:
    """Family → share of the step, relative error (half the interval)."""
    step = prediction["step"]["ms"]
    found = {}
    for entry in prediction.get("families") or []:
        error = (entry["high_ms"] - entry["low_ms"]) / 2 / entry["ms"] if entry["ms"] > 0 else 0.0
        found[entry["family"]] = (entry["ms"] / step, error)
    if not found:  # a prediction without families is treated as one family
        half = (prediction["step"]["high_ms"] - prediction["step"]["low_ms"]) / 2 / step
        found["step"] = (1.0, half)
    mean = sum(share * error for share, error in found.values())
    if WAITING in found:
        found[WAITING] = (found[WAITING][0], max(found[WAITING][1], mean))
    return found


def _kind(family: str) -> tuple[str, ...]:
    if family.startswith("communication"):
        return ("collective",)
    return ("point_to_point",) if family == "messages" else (family,)


def _ops(prediction: Mapping[str, Any], family: str) -> dict[str, float]:
    """Op → share of the family's time."""
    kinds = _kind(family)
    found: dict[str, float] = {}
    for kind, mark, ms in prediction.get("op_ms") or []:
        if kind in kinds:
            found[mark] = found.get(mark, 0.0) + ms
    total = sum(found.values())
    return {mark: ms / total for mark, ms in found.items()} if total > 0 else {}


def _one_recording(a: Mapping[str, Any], b: Mapping[str, Any]) -> bool:
    return a.get("recording") is not None and a.get("recording") == b.get("recording")


def same_work(a: Mapping[str, Any], b: Mapping[str, Any]) -> bool:
    """Whether as many GPUs do the same in both: the same kinds of kernels on the same sizes for as long, as much
    arithmetic and memory."""
    def work(p: Mapping[str, Any]) -> Any:
        marks = {(kind, mark) for kind, mark, _ in p.get("op_ms") or []}
        return p.get("gpu"), p.get("world_size"), p.get("flops_per_step"), peak_memory(p), marks

    # Without ops the step has to tell.
    times = [sum(ms for _, _, ms in p.get("op_ms") or []) or p["step"]["ms"] for p in (a, b)]
    return work(a) == work(b) and abs(times[0] - times[1]) <= 0.02 * max(times)


def _variance(a: Mapping[str, Any], b: Mapping[str, Any]) -> float:
    of_a, of_b = _families(a), _families(b)
    total = 0.0
    for family in {*of_a, *of_b}:
        share_a, error_a = of_a.get(family, (0.0, 0.0))
        share_b, error_b = of_b.get(family, (0.0, 0.0))
        error = max(error_a, error_b)
        ops_a, ops_b = _ops(a, family), _ops(b, family)
        if family == "host" and not _one_recording(a, b):
            total += error**2 * (SHARED * (share_a - share_b) ** 2 + (1 - SHARED) * (share_a**2 + share_b**2))
            continue
        if family in ("host", WAITING, "step") or not (ops_a and ops_b):
            total += (error * (share_a - share_b)) ** 2
            continue
        both = set(ops_a) & set(ops_b)
        matched = share_a * sum(ops_a[m] for m in both) - share_b * sum(ops_b[m] for m in both)
        own_a = [share_a * s for m, s in ops_a.items() if m not in both]
        own_b = [share_b * s for m, s in ops_b.items() if m not in both]
        common = matched + math.sqrt(SHARED) * (sum(own_a) - sum(own_b))
        total += error**2 * (common**2 + (1 - SHARED) * sum(s * s for s in [*own_a, *own_b]))
    if a.get("gpu") != b.get("gpu"):
        total += (a.get("common_error") or 0.0) ** 2 + (b.get("common_error") or 0.0) ** 2
    return total


def difference(space: Space, a: Record, b: Record) -> Difference:
    """b against a in the first goal of the space. In training all goals are proportional to the step's time; in serving
    the families of a forward pass stand for what else the load consists of."""
    goal = space.objective.goals[0]
    if goal == "memory" or a.goals[0] <= 0 or b.goals[0] <= 0:
        return Difference(100 * (b.goals[0] / a.goals[0] - 1) if a.goals[0] else 0.0, 0.0)
    ratio = b.goals[0] / a.goals[0]
    if GOALS[goal].maximize:
        ratio = 1 / ratio
    recorded_twice = a is not b and not _one_recording(a.prediction, b.prediction)
    comparable = space.serving is None or (_has_families(a.prediction) and _has_families(b.prediction))
    variance = 0.0 if a is b or not comparable else _variance(a.prediction, b.prediction)
    again = serving.REPEATED if space.serving else RECORDING
    spread = math.sqrt(variance + (again**2 if recorded_twice else 0.0))
    return Difference(100 * (ratio - 1), 100 * ratio * spread)


def tied_with_first(space: Space, best_first: Sequence[Record], most: int = 50) -> list[Record]:
    """The best and every configuration that the prediction cannot tell from it."""
    if not best_first:
        return []
    first = best_first[0]
    return [first, *(r for r in best_first[1:most] if difference(space, first, r).tied)]
