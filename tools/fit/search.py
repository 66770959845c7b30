"""Fits the free parameters of a physical model: bounded, deterministic, robust to outliers."""
import numpy as np
from scipy.optimize import minimize


def fit(predict, measured, base, free, starts=({},), rounds=3, nuisance=(), cap=0.5, weights=None):
    """Minimizes the mean absolute log error (each capped) over `free` = {name: (low, high)}.

    predict(params, nuisances) gives the time of every row. `nuisance` = ((start, low, high), …): numbers of the
    measurement, not of the kernel (launch overhead), fitted along and dropped.
    Returns (params, nuisances, loss).
    """
    names = list(free)
    bounds = [free[n] for n in names] + [(low, high) for _, low, high in nuisance]
    log = np.log(measured)
    weights = np.ones(len(log)) if weights is None else weights
    weights = weights / weights.sum()

    def unpack(x):
        values = [low + (high - low) / (1 + np.exp(-v)) for v, (low, high) in zip(x, bounds)]
        return {**base, **dict(zip(names, map(float, values)))}, [float(v) for v in values[len(names):]]

    def loss(x):
        params, extra = unpack(x)
        return float(np.sum(weights * np.minimum(np.abs(np.log(predict(params, extra)) - log), cap)))

    best = None
    for start in starts:
        point = {**base, **start}
        values = [point[n] for n in names] + [s for s, _, _ in nuisance]
        x = []
        for value, (low, high) in zip(values, bounds):
            share = min(max((value - low) / (high - low), 0.01), 0.99)
            x.append(np.log(share / (1 - share)))
        found = minimize(loss, np.array(x), method="Powell",
                         options=dict(maxiter=rounds, xtol=1e-3, ftol=1e-5))
        if best is None or found.fun < best[0]:
            best = (float(found.fun), found.x)
    params, extra = unpack(best[1])
    # Round as the file will have it, so that what is validated is what is shipped.
    return {k: float(f"{v:.6g}") for k, v in params.items()}, extra, best[0]
