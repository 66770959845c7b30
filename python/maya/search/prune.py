"""Skips configurations that need not run, each with a reason. Only certain conclusions are used.

Memory: [prune] names parameters with which memory rises or falls, everything else equal. A configuration that differs
from one that did not fit only in such parameters, all of them in the direction of more memory, does not fit either.
What was declared is checked against every pair of trials that can tell; one counterexample, and the parameter is no
longer used.

Recomputation and offload ([prune] trades_time_for_memory) only cost time where the same configuration fits without.
They are skipped then, once a pair of trials has shown that they do cost time here.

Lower bound: [prune] flops at the GPUs' peak, stretched by the pipeline's bubble, is already slower than the best so
far.
"""

from __future__ import annotations

from typing import Any, Mapping

from maya.search import outcome
from maya.search import plan as plans
from maya.search.objective import GOALS, peak_memory
from maya.search.program import Program
from maya.search.space import Space
from maya.search.store import Record
from maya.search.template import shown


class Pruner:
    def __init__(self, space: Space, program: Program | None = None, enabled: bool = True):
        self.space, self.program, self.enabled = space, program, enabled
        self.distrusted: dict[str, str] = {}  # parameter → why its declaration is not used
        self.directions = {name: 1 for name in space.pruning.memory_increases_with}
        self.directions |= {name: -1 for name in space.pruning.memory_decreases_with}
        self.failed: dict[tuple, list[Record]] = {}  # by the values of parameters without a direction
        self.fits: dict[tuple, list[Record]] = {}
        self.without: dict[str, dict[tuple, list[Record]]] = {n: {} for n in space.pruning.trades_time_for_memory}
        self.costs_time: dict[str, bool | None] = {n: None for n in space.pruning.trades_time_for_memory}
        self.best: Record | None = None

    # --- learning

    def learn(self, record: Record) -> None:
        if record.kind == outcome.OUT_OF_MEMORY:
            self._verify(record)
            self.failed.setdefault(self._group(record.values), []).append(record)
        elif record.prediction.get("step") or (self.space.serving and record.kind in (outcome.OK, outcome.OVER_LIMIT)):
            self._verify(record)
            self.fits.setdefault(self._group(record.values), []).append(record)
            for name in self.without:
                self._learn_trade(name, record)
            if record.ok and (self.best is None or self._better(record, self.best)):
                self.best = record

    def _group(self, values: Mapping[str, Any]) -> tuple:
        return tuple(values.get(n) for n in self.space.parameters if n not in self.directions)

    def _more(self, a: Mapping[str, Any], b: Mapping[str, Any]) -> bool:
        """Whether a needs at least as much memory as b in every declared parameter that they differ in."""
        for name, direction in self.directions.items():
            x, y = a.get(name), b.get(name)
            if x == y:
                continue
            if name in self.distrusted or x is None or y is None or isinstance(x, str) or isinstance(y, str):
                return False
            if (x - y) * direction < 0:
                return False
        return True

    def _verify(self, record: Record) -> None:
        """Declared directions against what was seen: more memory must not mean less."""
        group = self._group(record.values)
        for other in [*self.fits.get(group, []), *self.failed.get(group, [])]:
            for low, high in ((other, record), (record, other)):
                if low.values == high.values or not self._more(high.values, low.values):
                    continue
                contradicts = low.kind == outcome.OUT_OF_MEMORY and high.kind != outcome.OUT_OF_MEMORY
                both = low.kind != outcome.OUT_OF_MEMORY and high.kind != outcome.OUT_OF_MEMORY
                if both and not self.space.serving:  # engines fill the memory that there is
                    contradicts = peak_memory(high.prediction)[0] < 0.999 * peak_memory(low.prediction)[0]
                if contradicts:
                    for name in self.directions:
                        if low.values.get(name) != high.values.get(name):
                            self.distrusted.setdefault(name, f"{self.space.label(high.values)} took less memory than "
                                                       f"{self.space.label(low.values)}")

    def _learn_trade(self, name: str, record: Record) -> None:
        rest = tuple(v for n, v in record.values.items() if n != name)
        seen = self.without[name].setdefault(rest, [])
        for other in seen:
            less, more = sorted((other, record), key=lambda r: self._level(name, r.values))
            if self._level(name, less.values) == self._level(name, more.values):
                continue
            slower = (more.step_ms or 0) >= (less.step_ms or 0)
            self.costs_time[name] = slower and self.costs_time[name] is not False
        seen.append(record)

    def _level(self, name: str, values: Mapping[str, Any]) -> int:
        """Place of a value in the parameter's list, which begins without the trade."""
        options = list(self.space.parameters[name].domain.values({}))
        return options.index(values.get(name)) if values.get(name) in options else -1

    def _better(self, a: Record, b: Record) -> bool:
        goal = self.space.objective.goals[0]
        low = self.space.objective.low_is_good
        return low(goal, a.goals[0]) < low(goal, b.goals[0])

    # --- deciding

    def reason(self, values: Mapping[str, Any]) -> str:
        """Why this configuration need not run; empty: it must."""
        if not self.enabled:
            return ""
        return self._memory_reason(values) or self._trade_reason(values) or self._bound_reason(values)

    def _memory_reason(self, values: Mapping[str, Any]) -> str:
        if not self.directions:
            return ""
        for other in self.failed.get(self._group(values), []):
            if self._more(values, other.values):
                differing = [n for n in self.directions if values.get(n) != other.values.get(n)]
                return (
                    f"needs at least as much memory as trial {other.number} ({self.space.label(other.values)}), "
                    "which ran "
                    f"out: {', '.join(f'{n} {other.values.get(n)} → {values.get(n)}' for n in differing)}"
                )
        return ""

    def _trade_reason(self, values: Mapping[str, Any]) -> str:
        if len(self.space.objective.goals) > 1:
            return ""  # the search may be for less memory
        for name, seen in self.without.items():
            if self.costs_time[name] is not True:
                continue
            rest = tuple(values.get(n) for n in self.space.parameters if n != name)
            for other in seen.get(rest, []):
                if other.ok and self._level(name, other.values) < self._level(name, values):
                    return (
                        f"trial {other.number} fits with {name}={shown(other.values[name])}, and every pair of "
                        "trials so far "
                        f"was slower with more {name}"
                    )
        return ""

    def _bound_reason(self, values: Mapping[str, Any]) -> str:
        bound = self.space.pruning.bound
        if bound is None or self.best is None or len(self.space.objective.goals) > 1 or self.program is None:
            return ""
        floor = self.least_step_ms(values)
        if floor is None:
            return ""
        goal = self.space.objective.goals[0]
        best = self.space.objective.low_is_good(goal, self.best.goals[0])
        facts, gpus = self._facts(values), self._gpus(values)
        price = facts.get("usd_per_gpu_hour") or 0
        guessed = {"step": {"ms": floor}, "cost": {"usd_per_step": price * gpus * floor / 3.6e6 if price else None},
                   "throughput": self.best.prediction.get("throughput")}
        if goal == "memory" or (GOALS[goal].per_token and self.space.objective.tokens_per_step is None):
            return ""
        reachable = self.space.objective.low_is_good(goal, self.space.objective.value(goal, values, guessed))
        if reachable <= best:
            return ""
        return (
            f"cannot be faster than {floor:,.1f} ms (its FLOPs at the GPUs' peak, with the bubble), the best so far "
            f"takes {self.best.step_ms:,.1f} ms"
        )

    def least_step_ms(self, values: Mapping[str, Any]) -> float | None:
        """The step at the peak rate of every GPU, from [prune] flops and bubble."""
        bound = self.space.pruning.bound
        if bound is None or self.program is None:
            return None
        facts = self._facts(values)
        peaks = self.program.gpus().get(facts["gpu"], {}).get("peak_tflops", {})
        peak = peaks.get(bound.dtype)
        if not peak:
            return None
        gpus = self._gpus(values)
        if not gpus:
            return None
        bubble = bound.bubble.value(values) if bound.bubble else 0.0
        return float(bound.flops.value(values)) / (gpus * peak * 1e12) * (1 + max(0.0, bubble)) * 1000

    def _gpus(self, values: Mapping[str, Any]) -> int:
        """Number of GPUs of the job, from [prune] gpus or the node count of the cluster; 0 if neither is given."""
        bound = self.space.pruning.bound
        if bound and bound.gpus:
            return int(bound.gpus.value(values))
        if self.space.cluster_nodes is None and ":" not in self.space.cluster_name.text:
            return 0
        facts = self._facts(values)
        return facts["gpus_per_node"] * facts["nodes"]

    def _facts(self, values: Mapping[str, Any]) -> dict:
        cluster = plans.make(self.space, values).cluster
        return self.program.cluster(cluster)  # type: ignore[union-attr]
