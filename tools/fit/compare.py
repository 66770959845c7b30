#!/usr/bin/env python3
"""Learners for 16-bit products on the same left-out layer shapes: tools/fit/compare.py MEASUREMENTS_DIR [GPU …]

What the shipped models use was chosen with this; docs/ACCURACY.md keeps what each reached.
"""
import os

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[variable] = "1"

import sys

import data
import learn
import numpy as np
import ops
import shipped
import tables
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.neural_network import MLPRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import report


def learners(chip, measured):
    """(name, analytic time, features, fit)."""
    number = measured.features
    sizes = number[:, :3]
    peak = measured.limit + 1500
    params = {}
    for name, _, values, _, _ in report.read_params(data.ROOT / "catalog/models/fitted-gemm_tensor.model"):
        if name in ("gemm.tensor", f"gemm.tensor {chip.architecture}", f"gemm.tensor {chip.scope}"):
            params.update(values)
    physics, detail = shipped.evaluate("gemm", chip, shipped.Ops(list(measured.table.text)), params, features=True)

    def trees(x, y):
        return learn.train(x, y)

    def histogram(x, y):
        return HistGradientBoostingRegressor(loss="absolute_error", max_iter=300, max_leaf_nodes=63, random_state=7).fit(x, y)

    def network(x, y):
        return make_pipeline(StandardScaler(), MLPRegressor((64, 64), early_stopping=True, max_iter=150, random_state=7)).fit(x, y)

    yield "boosted trees on m, n, k", peak, sizes, trees
    yield "tiles, waves and splits (gemm_model) with learned residuals", physics, detail, trees
    yield "sheet's peaks with learned residuals, network of 64 × 64", measured.base, number, network
    yield "sheet's peaks with learned residuals, scikit-learn's trees", measured.base, number, histogram
    yield "sheet's peaks with learned residuals, LightGBM (shipped)", measured.base, number, trees


def main():
    folder, gpus = sys.argv[1], sys.argv[2:] or ["h100_sxm", "b200_sxm"]
    for gpu in gpus:
        chip = shipped.Chip(data.sheets()[tables.GPUS[gpu]])
        table = tables.gemm(folder, gpu, tables.LIBRARIES[0])
        measured = ops.Measured(table[table.family == "gemm.16"].reset_index(drop=True), chip, gpu)
        test = np.isin(learn.folds(measured.groups), learn.JUDGED[0])
        for name, base, features, fit in learners(chip, measured):
            model = fit(features[~test], np.log(measured.ns / base)[~test])
            predicted = np.maximum(base[test] * np.exp(model.predict(features[test])), measured.limit[test])
            error = np.abs(predicted / measured.ns[test] - 1)
            long = measured.ns[test] > 1e5
            print(f"{chip.name:14s} {name:62s} {100 * error.mean():5.1f} %  above 100 µs {100 * error[long].mean():5.1f} %", flush=True)


if __name__ == "__main__":
    main()
