"""Which configuration comes next."""

from __future__ import annotations

from typing import Any, Iterable, Mapping

from maya import MayaError
from maya.search import enumeration
from maya.search.campaign import Candidate
from maya.search.space import Space
from maya.search.store import Record


def baseline(space: Space) -> enumeration.Values | None:
    """The configuration to compare with: [baseline] of the space."""
    if not space.baseline:
        return None
    try:
        return enumeration.Tree(space).complete(space.baseline)
    except MayaError as problem:
        raise MayaError(
            f"{space.where('baseline', '')}: [baseline] is no configuration of the space: {problem}"
        ) from None


class Listed:
    """Every configuration of a list once, in its order; the baseline first."""

    def __init__(self, space: Space, configurations: Iterable[Mapping[str, Any]], done: Iterable[Record]):
        self.space = space
        self.seen = {enumeration.identity(space, record.values) for record in done}
        everything = list(configurations)
        self.total: int | None = len(everything)
        self.waiting = [c for c in everything if enumeration.identity(space, c) not in self.seen]
        self.first = baseline(space)
        self.order()

    def order(self) -> None:
        """What saves memory at the cost of time comes last: by then it is known where it is not needed."""
        def saving(values: Mapping[str, Any]) -> int:
            total = 0
            for name in self.space.pruning.trades_time_for_memory:
                options = list(self.space.parameters[name].domain.values({}))
                total += options.index(values[name]) if values.get(name) in options else 0
            return total

        self.waiting.sort(key=saving)
        self.waiting.reverse()  # taken from the end

    def next(self) -> Candidate | None:
        if self.first is not None:
            values, self.first = self.first, None
            mark = enumeration.identity(self.space, values)
            if mark not in self.seen:
                self.seen.add(mark)
                return Candidate(values, baseline=True)
        while self.waiting:
            values = self.waiting.pop()
            mark = enumeration.identity(self.space, values)
            if mark not in self.seen:
                self.seen.add(mark)
                return Candidate(values)
        return None

    def tell(self, record: Record) -> None:
        return None
