"""One family of ops on one GPU: fit the physics, correct it, and say how good it is on what was left out."""
import zlib

import numpy as np
import search
import shipped
from correct import Correction

SHORT_NS = 20000
GOLDEN = []  # (gpu, kernel name, op, ns): what the C++ evaluation must reproduce


def golden(family, trained, count=12, **level):
    """Notes some predictions of the final model, as Python computes them."""
    rows = thin(np.arange(len(family.ns)), count)
    kernel = family.predict(({**trained[0], **level}, *trained[1:]), rows, kernel_only=True)
    for i, ns in zip(rows, kernel):
        GOLDEN.append((family.chip.name, family.name, family.texts[i], ns))


def folds(groups, count=5):
    """Whole groups (a model, a shape) go to one fold; by name, so that the split never changes."""
    names = np.unique(groups)
    if len(names) <= count + 1:
        return np.searchsorted(names, groups)
    return np.array([zlib.crc32(str(g).encode()) % count for g in groups])


def thin(index, limit):
    """Every k-th row: a subset that keeps the spread and does not depend on chance."""
    return index[:: max(1, -(-len(index) // limit))]


def summary(measured, predicted):
    error = np.abs(predicted / measured - 1)
    return dict(rows=len(error), mean=float(error.mean()), median=float(np.median(error)),
                p95=float(np.quantile(error, 0.95)), worst=float(error.max()),
                bias=float(np.exp(np.mean(np.log(predicted / measured))) - 1)) if len(error) else dict(rows=0)


class Family:
    """`kind`: the model (gemm, memory, conv, attention). `overhead`: the measurement is
    max(F, c + kernel) with F and c fitted along (events around one call from an idle queue)."""

    def __init__(self, kind, chip, table, free, base=None, starts=({},), trees=60, leaves=8, bound=0.25,
                 overhead=False, name="", limit=600, rounds=3, others=None, ranged=3, settings=None):
        self.kind, self.chip, self.free, self.starts = kind, chip, free, starts
        self.base = {**shipped.defaults(kind), **(base or {})}
        self.trees, self.leaves, self.bound = trees, leaves, bound
        self.overhead, self.limit, self.rounds = overhead, limit, rounds
        self.others = others or {}
        self.ns = table.ns.values.astype(float)
        self.texts = list(table.text)
        self.name = name
        self.ops = shipped.Ops(self.texts, name)
        self.ranged = ranged
        self.settings = settings or {}

    def _time(self, kernel, extra):
        return np.maximum(extra[0], extra[1] + kernel) if self.overhead else kernel

    def physics(self, rows, quick=False):
        rows = thin(rows, self.limit)
        ops = shipped.Ops([self.texts[i] for i in rows], self.name)
        measured = self.ns[rows]
        low = float(np.quantile(measured, 0.01))
        nuisance = [(low, 0.5 * low, 1.5 * low), (0.4 * low, 0, 1.2 * low)] if self.overhead else []
        return search.fit(
            lambda p, e: self._time(shipped.evaluate(self.kind, self.chip, ops, p, **self.others), e),
            measured, self.base, self.free, self.starts[:1] if quick else self.starts, 2 if quick else self.rounds, nuisance)

    def train(self, rows, quick=False):
        params, extra, _ = self.physics(rows, quick)
        correction = None
        if self.trees:
            kernel, features = shipped.evaluate(self.kind, self.chip, self.ops, params, features=True, **self.others)
            target = self.ns[rows]
            if self.overhead:
                # Rows the launch hides say nothing of the kernel.
                seen = target > 1.15 * max(extra[0], extra[1])
                rows = rows[seen]
                target = np.maximum(self.ns[rows] - extra[1], 500)
            if len(rows) >= 200:
                correction = Correction(features[rows], np.log(target / kernel[rows]), self.trees, self.bound,
                                        self.ranged, num_leaves=self.leaves, **self.settings)
        return params, extra, correction

    def predict(self, trained, rows=None, kernel_only=False):
        params, extra, correction = trained
        kernel, features = shipped.evaluate(self.kind, self.chip, self.ops, params, features=True, **self.others) \
            if self.kind != "attention" else (
                shipped.evaluate(self.kind, self.chip, self.ops, params), None)
        if correction:
            kernel = kernel * correction.factor(features)
        if not kernel_only and self.overhead:
            kernel = np.maximum(extra[0], extra[1] + kernel)
        return kernel if rows is None else kernel[rows]

    def cross_validate(self, groups, count=5):
        """Predictions of every row by a model that has not seen its group, with intervals from other folds."""
        fold = folds(np.asarray(groups), count)
        out = np.empty(len(self.ns))
        seen = np.zeros(len(self.ns), dtype=bool)
        for f in np.unique(fold):
            rows, test = np.flatnonzero(fold != f), np.flatnonzero(fold == f)
            trained = self.train(rows, quick=True)
            out[test] = self.predict(trained, test)
            if self.overhead:
                seen[test] = self.ns[test] > 1.3 * trained[1][0]
            else:
                seen[test] = True
        self.cv, self.fold, self.seen = out, fold, seen
        ratio = self.ns / out
        inside = np.zeros(len(ratio), dtype=bool)
        for f in np.unique(fold):
            low, high, short_low, short_high = self.interval(ratio[seen & (fold != f)], out[seen & (fold != f)])
            test = fold == f
            brief = out[test] < SHORT_NS
            inside[test] = (ratio[test] >= np.where(brief, short_low, low)) & \
                           (ratio[test] <= np.where(brief, short_high, high))
        self.inside = inside
        self.bounds = self.interval(ratio[seen], out[seen])
        return out

    @staticmethod
    def interval(ratio, predicted):
        def bounds(r):
            if len(r) < 20:
                return None
            return (min(0.99, float(np.quantile(r, 0.1))), max(1.01, float(np.quantile(r, 0.9))))
        brief = predicted < SHORT_NS
        long_, short = bounds(ratio[~brief]), bounds(ratio[brief])
        long_ = long_ or short or (0.8, 1.25)
        short = short or (0.85 * long_[0], 1.15 * long_[1])
        return (*long_, *short)
