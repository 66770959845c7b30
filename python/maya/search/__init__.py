"""maya search: finds the best configuration of a training command by running trials.

    import maya
    result = maya.search("space.toml", jobs=2)
    result.best.values, result.ranked[:5], result.pareto

`maya.search` is this package and can be called: `maya search` on the command line is `python -m maya.search`.
"""

from __future__ import annotations

import os
import sys
import types
from typing import Any


def search(
    space: str | os.PathLike, *, out: str | os.PathLike | None = None, quiet: bool = False, **settings: Any
) -> Any:
    """Searches the space of a SPACE.toml and returns a SearchResult, which a notebook can display.

    Settings are those of the command line: method, trials, seconds, jobs, engine, prune, seed, command, cluster.
    """
    from maya.search import session, view

    chosen = session.Settings(out=os.fspath(out) if out else None, view=view.make(quiet=quiet), **settings)
    return session.perform(space, chosen)


class _Callable(types.ModuleType):
    """`maya.search(...)` calls the function above."""

    def __call__(self, *words: Any, **settings: Any) -> Any:
        return search(*words, **settings)


sys.modules[__name__].__class__ = _Callable
