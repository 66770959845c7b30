"""Uses Optuna's samplers on a space with constraints.

A sampler proposes a value for each parameter without knowing the constraints. The proposal is moved to the nearest
valid configuration that has not been tried, and the sampler learns from what was really tried.
"""

from __future__ import annotations

import math
import random
import warnings
from typing import Any, Mapping

from maya import MayaError
from maya.search import domain, enumeration
from maya.search.campaign import Candidate
from maya.search.space import Space
from maya.search.store import Record, Store, distribution, optuna
from maya.search.strategy import baseline

NAMES = ("random", "tpe", "cmaes")
POOL = 200_000  # largest number of listed valid configurations; of a larger space a random sample is listed
STALLED = 200  # after this many consecutive proposals without a new configuration, the space is exhausted


def _inner(name: str, seed: int, several: bool) -> Any:
    samplers = optuna().samplers
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if name == "random":
            return samplers.RandomSampler(seed=seed)
        if name == "tpe":
            return samplers.TPESampler(seed=seed, multivariate=True, group=True, constant_liar=not several,
                                       n_startup_trials=10)
        if several:
            raise MayaError("CMA-ES searches for one goal; use --method tpe for several")
        return samplers.CmaEsSampler(seed=seed, n_startup_trials=8, warn_independent_sampling=False,
                                     independent_sampler=samplers.RandomSampler(seed=seed))


class Sampled:
    """Configurations that a sampler proposes."""

    def __init__(self, space: Space, store: Store, name: str, seed: int):
        self.space, self.store, self.random = space, store, random.Random(seed)
        self.numeric = name == "cmaes"
        self.tree = enumeration.Tree(space)
        self.pool = self._list_pool()
        self.total: int | None = len(self.pool) if space.finite and len(self.pool) < POOL else None
        self.scale = self._scales()
        self.points = {mark: self._point(values) for mark, values in self.pool.items()}
        for record in store.records:
            self.pool.pop(enumeration.identity(space, record.values), None)
        self.first = baseline(space)
        self.distributions = {n: distribution(p, self.numeric) for n, p in space.parameters.items()}
        store.study.sampler = _Moved(_inner(name, seed, len(space.objective.goals) > 1), self)
        self.chosen: enumeration.Values | None = None

    def _list_pool(self) -> dict[tuple, enumeration.Values]:
        pool: dict[tuple, enumeration.Values] = {}
        for values in self.tree.walk():
            pool[enumeration.identity(self.space, values)] = values
            if len(pool) >= POOL:
                break
        if len(pool) < POOL:
            return pool
        pool.clear()  # too many: use a random sample instead
        while len(pool) < POOL // 20:
            values = next(self.tree.walk(shuffle=self.random))
            pool[enumeration.identity(self.space, values)] = values
        return pool

    def next(self) -> Candidate | None:
        if self.first is not None:
            values, self.first = self.first, None
            if self.pool.pop(enumeration.identity(self.space, values), None):
                return Candidate(values, baseline=True)
        if not self.pool:
            return None
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            asked = self.store.study.ask(self.distributions)
        assert self.chosen is not None
        return Candidate(self.chosen, asked=asked)

    def tell(self, record: Record) -> None:
        return None

    # --- moving a proposal

    def _scales(self) -> dict[str, Any]:
        """Numbers lie on a line from 0 to 1 (by their logarithm, where they are positive), other values by their
        place."""
        scales: dict[str, Any] = {}
        for name in self.space.parameters:
            found = {values.get(name) for values in self.pool.values()} - {None}
            numbers = all(isinstance(v, (int, float)) and not isinstance(v, bool) for v in found)
            if numbers and found:
                use_log = min(found) > 0
                low, high = min(found), max(found)
                scales[name] = (
                    use_log,
                    math.log(low) if use_log else low,
                    (math.log(high / low) if use_log else high - low) or 1,
                )
            else:
                scales[name] = None
        return scales

    def _point(self, values: Mapping[str, Any]) -> tuple:
        point = []
        for name in self.space.parameters:
            value, scale = values.get(name), self.scale[name]
            if value is None or scale is None:
                point.append(value)
            else:
                use_log, low, width = scale
                point.append(((math.log(value) if use_log and value > 0 else value) - low) / width)
        return tuple(point)

    def move(self, proposed: Mapping[str, Any]) -> dict[str, Any]:
        """The nearest untried configuration; its parameters."""
        goal = self._point(proposed)

        def distance(mark: tuple) -> float:
            total = 0.0
            for a, b in zip(self.points[mark], goal):
                if isinstance(a, float) and isinstance(b, float):
                    total += (a - b) ** 2
                elif a is None or b is None:
                    total += 0.0  # one of them does not have this parameter
                else:
                    total += a != b
            return total

        marks = list(self.pool)
        if len(marks) > 20000:
            marks = self.random.sample(marks, 20000)
        best = min(marks, key=lambda mark: (distance(mark), str(mark)))
        values = dict(self.pool.pop(best))
        for name, parameter in self.space.parameters.items():  # real numbers keep the value of the sampler
            if isinstance(parameter.domain, domain.Floats) and values.get(name) is not None and name in proposed:
                values[name] = proposed[name]
        self.chosen = self.tree.complete(values) if not self.space.finite else values
        return {name: value for name, value in values.items() if name in self.space.parameters and value is not None}


def _Moved(inner: Any, owner: Sampled) -> Any:
    """A sampler that gives what `inner` proposes, moved to a configuration of the space."""
    package = optuna()

    class Moved(package.samplers.BaseSampler):
        def infer_relative_search_space(self, study: Any, trial: Any) -> dict[str, Any]:
            return dict(owner.distributions)

        def sample_relative(self, study: Any, trial: Any, search_space: dict[str, Any]) -> dict[str, Any]:
            inner_space = inner.infer_relative_search_space(study, trial)
            proposed = dict(inner.sample_relative(study, trial, inner_space))
            for name, where in owner.distributions.items():
                if name not in proposed:
                    proposed[name] = inner.sample_independent(study, trial, name, where)
            moved = owner.move(proposed)
            # Optuna needs a value for every parameter. For one that the configuration does not have, use the proposed
            # value.
            return {name: moved.get(name, proposed[name]) for name in owner.distributions}

        def sample_independent(self, study: Any, trial: Any, name: str, where: Any) -> Any:
            return inner.sample_independent(study, trial, name, where)

        def before_trial(self, study: Any, trial: Any) -> None:
            inner.before_trial(study, trial)

        def after_trial(self, study: Any, trial: Any, state: Any, values: Any) -> None:
            inner.after_trial(study, trial, state, values)

    return Moved()
