"""A Gaussian process over configurations: predicts configurations that have not run from the trials so far.

The logarithm of a figure (step time, memory) is a smooth function of the logarithms of the parameters. A linear part
carries the trends beyond what was tried, a Matérn part the curvature; one length scale per feature is chosen by the
likelihood. Plain numpy: a few hundred trials at most.
"""

from __future__ import annotations

import math
from typing import Any, Mapping, Sequence

from maya.search.space import Space


class Features:
    """Configurations as rows of numbers between about -1 and 1."""

    def __init__(self, space: Space, configurations: Sequence[Mapping[str, Any]]):
        import numpy

        self.numpy = numpy
        names = [*space.parameters, *space.derived]
        self.columns: list[tuple[str, Any]] = []
        for name in names:
            found = {values.get(name) for values in configurations}
            numbers = sorted(v for v in found if isinstance(v, (int, float)) and not isinstance(v, bool))
            if numbers and numbers[0] != numbers[-1]:
                self.columns.append((name, "log" if numbers[0] > 0 else "number"))
            for value in sorted((v for v in found if v is None or isinstance(v, (str, bool))), key=str):
                if len(found) > 1:
                    self.columns.append((name, ("is", value)))
        raw = self._raw(configurations)
        self.mean, self.width = raw.mean(0), raw.std(0)
        self.width[self.width == 0] = 1.0

    def _raw(self, configurations: Sequence[Mapping[str, Any]]) -> Any:
        rows = self.numpy.zeros((len(configurations), max(1, len(self.columns))))
        for i, values in enumerate(configurations):
            for j, (name, how) in enumerate(self.columns):
                value = values.get(name)
                if isinstance(how, tuple):
                    rows[i, j] = value == how[1] and type(value) is type(how[1])
                elif isinstance(value, (int, float)) and not isinstance(value, bool):
                    rows[i, j] = math.log2(value) if how == "log" else value
        return rows

    def rows(self, configurations: Sequence[Mapping[str, Any]]) -> Any:
        return (self._raw(configurations) - self.mean) / self.width


class GaussianProcess:
    """Fit on rows x and values y; predicts mean and standard deviation."""

    NOISE = 1e-3  # share of the variance: host times vary a little from run to run
    SCALES = (0.7, 1.5, 3.0, 6.0, 12.0, 50.0)

    def __init__(self) -> None:
        import numpy

        self.numpy = numpy
        self.scales: Any = None
        self.linear = 1.0

    def _kernel(self, a: Any, b: Any) -> Any:
        np = self.numpy
        x, y = a / self.scales, b / self.scales
        square = np.maximum(0.0, (x * x).sum(1)[:, None] + (y * y).sum(1)[None, :] - 2 * x @ y.T)
        r = np.sqrt(5 * square)
        return (1 + r + r * r / 3) * np.exp(-r) + self.linear * (a @ b.T) / a.shape[1]

    def _likelihood(self) -> float:
        np = self.numpy
        kernel = self._kernel(self.x, self.x)
        kernel[np.diag_indices_from(kernel)] += self.NOISE * (1 + self.linear)
        try:
            lower = np.linalg.cholesky(kernel)
        except np.linalg.LinAlgError:
            return -math.inf
        solved = np.linalg.solve(lower, self.y)
        n = len(self.y)
        # The best variance is known in closed form; what remains is the likelihood of the length scales.
        return -0.5 * n * math.log(max(1e-12, float(solved @ solved) / n)) - float(np.log(np.diag(lower)).sum())

    def fit(self, x: Any, y: Any, choose: bool) -> None:
        """`choose`: choose the length scales anew (else those of the last time are kept)."""
        np = self.numpy
        self.x = x
        self.mean = float(y.mean())
        self.y = y - self.mean
        if self.scales is None or choose:
            if self.scales is None:
                self.scales = np.full(x.shape[1], 3.0)
            best = self._likelihood()
            for _ in range(2):
                before = best
                for j in range(x.shape[1]):
                    kept = self.scales[j]
                    for scale in self.SCALES:
                        self.scales[j] = scale
                        value = self._likelihood()
                        if value > best + 1e-9:
                            best, kept = value, scale
                    self.scales[j] = kept
                kept_linear = self.linear
                for linear in (0.1, 1.0, 10.0):
                    self.linear = linear
                    value = self._likelihood()
                    if value > best + 1e-9:
                        best, kept_linear = value, linear
                self.linear = kept_linear
                if best - before < 0.5:
                    break
        kernel = self._kernel(x, x)
        kernel[np.diag_indices_from(kernel)] += self.NOISE * (1 + self.linear)
        self.lower = np.linalg.cholesky(kernel)
        half = np.linalg.solve(self.lower, self.y)
        self.weights = np.linalg.solve(self.lower.T, half)
        self.variance = max(1e-10, float(half @ half) / len(y))

    def predict(self, x: Any) -> tuple[Any, Any]:
        np = self.numpy
        cross = self._kernel(x, self.x)
        solved = np.linalg.solve(self.lower, cross.T)
        own = 1 + self.linear * (x * x).sum(1) / x.shape[1]
        return self.mean + cross @ self.weights, np.sqrt(
            self.variance * np.maximum(1e-9, own - (solved * solved).sum(0))
        )
