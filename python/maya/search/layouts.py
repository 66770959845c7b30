"""Which ranks a pipelined layout needs, learned once.

`maya run --ranks unique` runs rank 0 alone until its messages show that it is a stage of a pipeline, and starts the
ranks that are needed then. A trial whose layout is that of an earlier one starts with these ranks. If the guess is
wrong, `maya run` notices and begins as usual.
"""

from __future__ import annotations

from typing import Any, Mapping


class Layouts:
    def __init__(self, names: Any):
        self.names = tuple(names)  # of the parameters
        self.seen: dict[tuple, tuple[int, ...]] = {}
        self.matters: dict[str, bool] = {}  # from pairs of trials that differ in nothing else

    def learn(self, values: Mapping[str, Any], prediction: Mapping[str, Any] | None) -> None:
        stages = (prediction or {}).get("stages") or []
        ranks = tuple(sorted(stage["rank"] for stage in stages if stage.get("recorded")))
        key = self._key(values)
        if not (prediction or {}).get("step") or self.seen.get(key) == ranks:
            return
        for other, its in self.seen.items():
            differing = self._differing(key, other)
            if len(differing) == 1:
                self.matters[differing[0]] = self.matters.get(differing[0], False) or its != ranks
        # A step of more micro-batches may need further stages.
        self.seen[key] = tuple(sorted({*self.seen.get(key, ()), *ranks})) if ranks else ()

    def expected(self, values: Mapping[str, Any]) -> tuple[int, ...]:
        """Ranks to start with; none: not known, or not a pipeline."""
        key = self._key(values)
        if key in self.seen:
            return self.seen[key]
        for other, ranks in reversed(self.seen.items()):
            if all(self.matters.get(name) is False for name in self._differing(key, other)):
                return ranks
        return ()

    def _key(self, values: Mapping[str, Any]) -> tuple:
        return tuple(values.get(name) for name in self.names)

    def _differing(self, a: tuple, b: tuple) -> list[str]:
        return [name for name, x, y in zip(self.names, a, b) if x != y]
