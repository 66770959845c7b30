"""The strategy for large spaces: a model is fitted to the trials so far and selects the next configuration.

The answer always comes from trials. The model only orders them, and decides when none of the rest can be better: every
configuration that did not run is stored with what the model expects of it. How far the model was off is measured on
every trial before it learns from it, and its error bars are widened by that.
"""

from __future__ import annotations

import math
import random
from typing import Any, Sequence

from maya.search import enumeration, outcome
from maya.search.campaign import Candidate
from maya.search.objective import peak_memory
from maya.search.prune import Pruner
from maya.search.space import Space
from maya.search.store import Record
from maya.search.strategy import baseline
from maya.search.surrogate import Features, GaussianProcess

SIGMAS = 3.0  # a configuration is excluded if it is worse by this many standard deviations
LEAST_AFTER_DESIGN = 12  # trials selected by the model before it may exclude the rest
FIT_AGAIN = 1.15  # length scales are fitted again when the number of trials has grown by this factor


class Guided:
    def __init__(
        self,
        space: Space,
        configurations: Sequence[enumeration.Values],
        done: Sequence[Record],
        pruner: Pruner,
        seed: int,
    ):
        import numpy

        self.numpy, self.space, self.pruner = numpy, space, pruner
        self.random = random.Random(seed)
        self.all = list(configurations)
        self.total: int | None = len(self.all)
        self.index = {enumeration.identity(space, c): i for i, c in enumerate(self.all)}
        self.rows = Features(space, self.all).rows(self.all)
        self.floor = self._floors()
        self.open = set(range(len(self.all)))
        self.pending: set[int] = set()
        self.seen: dict[int, tuple[float | None, float | None]] = {}  # log goal over floor, log memory over capacity
        self.time, self.memory = GaussianProcess(), GaussianProcess()
        self.fitted = 0
        self.order: list[int] = []
        self.changed = True
        self.errors: list[float] = []
        self.chosen_by_model = 0
        self.guess: dict[int, tuple[float, float]] = {}
        self.first = baseline(space)
        self.leaving: list[int] | None = None
        self.best = math.inf  # log goal of the best that fits and keeps the limits
        for record in done:
            self._take(record)
        self.design = self._design()

    def _floors(self) -> Any:
        """The logarithm of the lower bound, where [prune] gives one: the model then learns only the rest."""
        floors = self.numpy.zeros(len(self.all))
        if self.pruner.space.pruning.bound is None or self.space.objective.goals[0] == "memory":
            return floors
        for i, values in enumerate(self.all):
            ms = self.pruner.least_step_ms(values)
            if not ms or ms <= 0:
                return self.numpy.zeros(len(self.all))
            floors[i] = math.log(ms)
        return floors

    def _design(self) -> list[int]:
        """The first trials: far apart from each other."""
        wanted = max(10, 2 * self.rows.shape[1]) - len(self.seen)
        if wanted <= 0 or not self.open:
            return []
        np = self.numpy
        pool = self.random.sample(sorted(self.open), min(len(self.open), 3000))
        chosen = [self.random.choice(pool)]
        distance = np.full(len(pool), np.inf)
        while len(chosen) < min(wanted, len(pool)):
            distance = np.minimum(distance, ((self.rows[pool] - self.rows[chosen[-1]]) ** 2).sum(1))
            chosen.append(pool[int(distance.argmax())])
        return chosen[::-1]

    # --- the strategy

    def next(self) -> Candidate | None:
        if self.first is not None:
            values, self.first = self.first, None
            i = self.index.get(enumeration.identity(self.space, values))
            if i is not None and i in self.open:
                self._start(i)
                return Candidate(self.all[i], baseline=True)
        while self.design:
            i = self.design.pop()
            if i in self.open:
                self._start(i)
                return Candidate(self.all[i])
        if self.leaving is None:
            self._rank()
            if self.order:
                i = self.order.pop(0)
                self.chosen_by_model += 1
                self._start(i)
                return Candidate(self.all[i])
            if self.pending:
                return None  # wait: running trials may change the model
            self.leaving = sorted(self.open)
        if not self.leaving:
            return None
        i = self.leaving.pop()
        self.open.discard(i)
        return Candidate(self.all[i], skip=self._why(i))

    def _start(self, i: int) -> None:
        self.open.discard(i)
        self.pending.add(i)

    def tell(self, record: Record) -> None:
        i = self.index.get(enumeration.identity(self.space, record.values))
        if i in self.guess and record.ok:
            mean, deviation = self.guess[i]
            self.errors.append((self._log_goal(record) - self.floor[i] - mean) / deviation)
        self._take(record)

    def _take(self, record: Record) -> None:
        i = self.index.get(enumeration.identity(self.space, record.values))
        if i is None:
            return
        self.open.discard(i)
        self.pending.discard(i)
        self.changed = True
        if record.prediction.get("step") and record.goals:
            peak, capacity = peak_memory(record.prediction)
            self.seen[i] = (
                self._log_goal(record) - self.floor[i],
                math.log(peak / capacity) if peak and capacity else None,
            )
            if record.ok:
                self.best = min(self.best, self._log_goal(record))
        elif record.kind == outcome.OUT_OF_MEMORY:
            short = record.prediction.get("out_of_memory") or {}
            needed = short.get("in_use_bytes", 0) + short.get("requested_bytes", 0)
            over = (
                max(0.02, math.log(needed / short["capacity_bytes"])) if needed and short.get("capacity_bytes") else 0.1
            )
            self.seen[i] = (None, over)

    def _log_goal(self, record: Record) -> float:
        goal = self.space.objective.goals[0]
        value = math.log(max(1e-12, record.goals[0]))
        return -value if self.space.objective.low_is_good(goal, 1.0) < 0 else value

    # --- the model

    def _widening(self) -> float:
        """How much wider than the model's own the error bars must be: from the trials it chose itself."""
        if len(self.errors) < 5:
            return 1.0
        squares = sorted(e * e for e in self.errors[-60:])
        return max(1.0, math.sqrt(sum(squares) / len(squares)))

    def _rank(self) -> None:
        """Puts into `order` what is worth a trial, most promising first."""
        if not self.changed:
            return
        self.changed = False
        np = self.numpy
        timed = [i for i, (goal, _) in self.seen.items() if goal is not None]
        if len(timed) < 3:
            self.order = self.random.sample(sorted(self.open), min(4, len(self.open)))
            return
        choose = len(self.seen) >= FIT_AGAIN * max(1, self.fitted)
        if choose:
            self.fitted = len(self.seen)
        self.time.fit(self.rows[timed], np.array([self.seen[i][0] for i in timed]), choose)
        sized = [i for i, (_, memory) in self.seen.items() if memory is not None]
        fits = len(sized) >= 3 and any(self.seen[i][1] > 0 for i in sized)
        if fits:
            self.memory.fit(self.rows[sized], np.array([self.seen[i][1] for i in sized]), choose)
        rest = np.array(sorted(self.open))
        if not len(rest):
            self.order = []
            return
        mean, deviation = self.time.predict(self.rows[rest])
        deviation = deviation * self._widening()
        for i, m, d in zip(rest, mean, deviation):
            self.guess[int(i)] = (float(m), float(d))
        best = self.best
        lowest = mean + self.floor[rest] - SIGMAS * deviation
        likely = np.ones(len(rest), bool)
        if fits:
            size, spread = self.memory.predict(self.rows[rest])
            likely = size - SIGMAS * spread < 0
        worth = (lowest < best) & likely
        # Selects the configuration with the best value one standard deviation below its estimate.
        score = (
            (mean + self.floor[rest] - deviation)
            + np.where(likely, 0, 10)
            + (np.where(size > 0, 0.05, 0) if fits else 0)
        )
        ranked = rest[np.argsort(score, kind="stable")]
        if worth.any():
            keep = set(rest[worth].tolist())
            self.order = [int(i) for i in ranked if int(i) in keep][:4]
        else:
            self.order = [int(i) for i in ranked[:2]] if self.chosen_by_model < LEAST_AFTER_DESIGN else []

    def _why(self, i: int) -> str:
        guess = self.guess.get(i)
        if guess is None:
            return "estimated behind the best"
        mean, deviation = guess
        factor = math.exp(mean + self.floor[i] - self.best)
        text = (
            f"estimated {100 * (factor - 1):+.0f} ± {100 * factor * SIGMAS * deviation:.0f} % against the best by a "
            "model of "
            f"{len(self.seen)} trials"
        )
        if self._too_large(i):
            text += "; it is expected not to fit"
        return text

    def _too_large(self, i: int) -> bool:
        if not any(memory is not None and memory > 0 for _, memory in self.seen.values()) or self.memory.scales is None:
            return False
        size, spread = self.memory.predict(self.rows[[i]])
        return bool(size[0] - SIGMAS * spread[0] >= 0)

