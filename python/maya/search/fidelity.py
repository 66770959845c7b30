"""Cheaper trials: runs a configuration twice with fewer micro-batches or layers and extrapolates linearly.

A step of n equal micro-batches (or layers) takes a + b n, once n is large enough that nothing but their number changes:
for a pipeline that is n >= stages. Two small depths give the line; the step, its parts and the memory follow. The best
configurations are run at their full depth in the end, which also tells how far off the lines were.
"""

from __future__ import annotations

import copy
from dataclasses import dataclass, field
from typing import Any, Mapping

from maya import MayaError
from maya.search import outcome
from maya.search.enumeration import Tree, Values
from maya.search.space import Space

USABLE = (outcome.OK, outcome.MAY_FIT)  # outcomes with a step


@dataclass
class Depths:
    """A configuration that is run at two depths in place of its own."""

    full: float
    at: tuple[float, float]
    values: tuple[Values, Values]
    done: dict[int, outcome.Outcome] = field(default_factory=dict)


def overridden(space: Space, values: Mapping[str, Any], name: str, value: Any) -> Values:
    """The configuration with one of its names given another value; what is derived from it follows."""
    changed = dict(values) | {name: value}
    for level in Tree(space).levels:
        for derived in level.derived:
            if derived != name:
                try:
                    changed[derived] = space.derived[derived].value(changed)
                except MayaError:
                    changed[derived] = None
    return changed


def depths(space: Space, values: Values) -> Depths | None:
    """The two depths of a configuration; None where its own is no larger than the larger of them."""
    if space.fidelity is None:
        return None
    name = space.fidelity.name
    full = values.get(name)
    low, high = (expression.value(values) for expression in space.fidelity.at)
    if not all(isinstance(x, (int, float)) for x in (full, low, high)) or not low < high < full:
        return None
    return Depths(full, (low, high), (overridden(space, values, name, low), overridden(space, values, name, high)))


def combine(depths_of: Depths) -> outcome.Outcome:
    """One outcome from those of the two depths."""
    for i in (0, 1):
        if i in depths_of.done and depths_of.done[i].kind not in USABLE:
            return depths_of.done[i]  # a configuration that fails with fewer layers also fails with more
    low, high = depths_of.done[0], depths_of.done[1]
    a, b = low.prediction or {}, high.prediction or {}
    share = (depths_of.full - depths_of.at[0]) / (depths_of.at[1] - depths_of.at[0])
    made = _line(a, b, share)
    seconds = low.seconds + high.seconds
    checks = {"extrapolated": True, "depths": list(depths_of.at), "full": depths_of.full,
              "ms": [a["step"]["ms"], b["step"]["ms"]]}
    made["mfu"] = _utilization(b, made)
    memory = (made.get("memory") or [{}])[0]
    most = max(low.memory_gib, high.memory_gib)
    if memory.get("peak_bytes", 0) > (1 + outcome.MEMORY_ERROR) * memory.get("capacity_bytes", 0) > 0:
        short = memory["peak_bytes"] - memory["capacity_bytes"]
        made["step"] = None
        made["out_of_memory"] = {"rank": 0, "requested_bytes": short, "in_use_bytes": memory["capacity_bytes"],
                                 "capacity_bytes": memory["capacity_bytes"], "during_run": False}
        return outcome.Outcome(
            outcome.OUT_OF_MEMORY,
            f"about {short / 2**30:.1f} GiB short, extrapolated",
            made,
            seconds,
            high.folder,
            "",
            most,
            checks,
        )
    if memory.get("peak_bytes", 0) > memory.get("capacity_bytes", 0) > 0:
        detail = outcome.over(memory["peak_bytes"], memory["capacity_bytes"]) + ", extrapolated"
        return outcome.Outcome(outcome.MAY_FIT, detail, made, seconds, high.folder, "", most, checks)
    unsure = next((part for part in (high, low) if part.kind == outcome.MAY_FIT), None)
    kind, detail = (unsure.kind, unsure.detail) if unsure else (outcome.OK, "")
    return outcome.Outcome(kind, detail, made, seconds, high.folder, "", most, checks)


def _utilization(b: Mapping[str, Any], made: Mapping[str, Any]) -> float | None:
    if not b.get("mfu") or not b.get("flops_per_step"):
        return None
    peak = b["flops_per_step"] / b["mfu"] / b["step"]["ms"]
    return made["flops_per_step"] / peak / made["step"]["ms"]


def _number(x: Any, y: Any, share: float) -> float:
    return max(0.0, x + (y - x) * share)


def _line(a: dict[str, Any], b: dict[str, Any], share: float) -> dict[str, Any]:
    made = copy.deepcopy(b)
    for key in ("ms", "low_ms", "high_ms"):
        made["step"][key] = _number(a["step"][key], b["step"][key], share)
    for key in made.get("breakdown_ms") or {}:
        made["breakdown_ms"][key] = _number(a["breakdown_ms"].get(key, 0.0), b["breakdown_ms"][key], share)
    if made.get("flops_per_step") is not None:
        made["flops_per_step"] = _number(a.get("flops_per_step", 0.0), b["flops_per_step"], share)
    if made.get("throughput") and a.get("throughput"):
        work = _number(a["throughput"]["per_step"], b["throughput"]["per_step"], share)
        made["throughput"] |= {"per_step": work, "per_second": work / made["step"]["ms"] * 1000}
    if made.get("cost") and made["cost"].get("usd_per_step") is not None:
        made["cost"]["usd_per_step"] = b["cost"]["usd_per_step"] * made["step"]["ms"] / b["step"]["ms"]
    before = {entry["family"]: entry for entry in a.get("families") or []}
    for entry in made.get("families") or []:
        other = before.get(entry["family"], {"ms": 0.0, "low_ms": 0.0, "high_ms": 0.0})
        for key in ("ms", "low_ms", "high_ms"):
            entry[key] = _number(other[key], entry[key], share)
    for mine, theirs in zip(made.get("memory") or [], a.get("memory") or []):
        mine["peak_bytes"] = int(_number(theirs["peak_bytes"], mine["peak_bytes"], share))
    earlier = {(kind, mark): ms for kind, mark, ms in a.get("op_ms") or []}
    made["op_ms"] = [
        [kind, mark, _number(earlier.get((kind, mark), 0.0), ms, share)] for kind, mark, ms in b.get("op_ms") or []
    ]
    made["largest_costs"] = []
    return made
