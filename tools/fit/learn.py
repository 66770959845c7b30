"""A forest on top of an analytic time: fitted, judged on whole groups left out, written as src/estimate/learned_model.h reads it."""
import struct
import zlib

import lightgbm as lgb
import numpy as np

FOLDS = 7
# Folds left out together of a model that is judged. Of experts there are few layers, so that all are left out in turn.
JUDGED = ((0, 1),)
IN_TURN = ((0, 1), (2, 3), (4, 5, 6))
SETTINGS = dict(objective="l1", num_leaves=127, max_depth=9, min_data_in_leaf=10, lambda_l2=1.0,
                feature_fraction=0.5, bagging_fraction=0.8, bagging_freq=1, max_bin=255, num_threads=1, deterministic=True,
                force_row_wise=True, seed=7, verbose=-1)
# (trees, learning rate): what everything else stands on is learned more finely; the others are large enough that more
# trees change their second decimal only.
TREES = (200, 0.11)
FINE = {"gemm.16": (400, 0.08)}
STEPS_NS = (8e3, 2e4, 6e4, 2e5, 1e6, 1e30)


def folds(groups):
    """Whole groups go to one fold; by name, so that the split never changes."""
    return np.array([zlib.crc32(g.encode()) % FOLDS for g in groups])


def train(features, target, family="", weight=None):
    trees, rate = FINE.get(family, TREES)
    return lgb.train({**SETTINGS, "learning_rate": rate}, lgb.Dataset(features, target, weight=weight), num_boost_round=trees)


def rounds(family):
    return IN_TURN if family.startswith("experts") else JUDGED


class Judged:
    """Predictions of rows whose groups were left out, and the interval they give."""

    def __init__(self, data, family):
        fold = folds(data.groups)
        self.rows = np.flatnonzero(np.isin(fold, np.concatenate(rounds(family))))
        factor = np.empty(len(fold))
        for left_out in rounds(family):
            test = np.isin(fold, left_out)
            if test.any():
                model = train(data.features[~test], data.target[~test], family, data.weight[~test])
                factor[test] = model.predict(data.features[test])
        test = self.rows
        self.predicted = np.maximum(data.base[test] * np.exp(factor[test]), data.limit[test])
        self.measured, self.fold = data.ns[test], fold[test]
        # The interval is that of the library which answers where nobody names one.
        self.first = data.first[test]
        self.steps = interval(self.predicted[self.first], self.measured[self.first])

    def inside(self):
        """Of each fold, the share within the interval that the other folds give."""
        out = np.zeros(len(self.rows), dtype=bool)
        for f in np.unique(self.fold):
            test = self.fold == f
            other = ~test & self.first if (~test & self.first).any() else self.first
            steps = interval(self.predicted[other], self.measured[other])
            ratio = self.measured[test] / self.predicted[test]
            at = np.searchsorted([s[0] for s in steps], self.predicted[test], side="right")
            at = np.minimum(at, len(steps) - 1)
            low, high = np.array([s[1] for s in steps])[at], np.array([s[2] for s in steps])[at]
            out[test] = (ratio >= low) & (ratio <= high)
        return out


def interval(predicted, measured):
    """80 % of measured over predicted, by predicted duration."""
    steps, begin = [], 0.0
    whole = np.quantile(measured / predicted, (0.1, 0.9)) if len(predicted) >= 20 else (0.8, 1.25)
    for until in STEPS_NS:
        ratio = (measured / predicted)[(predicted >= begin) & (predicted < until)]
        low, high = np.quantile(ratio, (0.1, 0.9)) if len(ratio) >= 40 else whole
        steps.append((until, float(min(0.99, low)), float(max(1.01, high))))
        begin = until
    return steps


def threshold(node):
    """A split's threshold as a 32-bit float that parts the same 32-bit features: rounded down, never to the nearest."""
    value = np.float32(node["threshold"])
    return value if float(value) <= node["threshold"] else np.nextafter(value, np.float32(-np.inf))


def text(value):
    raw = value.encode()
    return struct.pack("<B", len(raw)) + raw


def section(name, libraries, kernels, steps, model, width):
    """One model of a .forest file."""
    out = [text(name), struct.pack("<B", len(libraries)), *map(text, libraries), struct.pack("<B", len(kernels)),
           *map(text, kernels), struct.pack("<BB", width, len(steps))]
    out += [struct.pack("<fff", *step) for step in steps]
    trees = [t["tree_structure"] for t in model.dump_model()["tree_info"]]
    thresholds, largest = [set() for _ in range(width)], [1e-9]

    def visit(node):
        if "split_feature" not in node:
            largest[0] = max(largest[0], abs(node["leaf_value"]))
            return 0
        thresholds[node["split_feature"]].add(threshold(node))
        return 1 + visit(node["left_child"]) + visit(node["right_child"])

    splits = [visit(tree) for tree in trees]
    numbers = []
    for values in thresholds:
        ordered = sorted(values)
        assert len(ordered) < 255
        out.append(struct.pack("<B", len(ordered)) + np.array(ordered, dtype="<f4").tobytes())
        numbers.append({v: i for i, v in enumerate(ordered)})
    scale = np.float32(largest[0] / 32767)
    out.append(struct.pack("<fH", scale, len(trees)))

    def write(node):
        if "split_feature" not in node:
            out.append(struct.pack("<Bh", 255, int(round(node["leaf_value"] / float(scale)))))
            return
        feature = node["split_feature"]
        out.append(struct.pack("<BB", feature, numbers[feature][threshold(node)]))
        write(node["left_child"])
        write(node["right_child"])

    for tree, count in zip(trees, splits):
        out.append(struct.pack("<H", count))
        write(tree)
    return b"".join(out)


def file(sections):
    return b"MAYAFST1" + struct.pack("<I", len(sections)) + b"".join(sections)
