"""A bounded ensemble of small trees on top of a physical model (src/estimate/trees.h reads it)."""
import lightgbm as lgb
import numpy as np

SETTINGS = dict(objective="l1", num_leaves=15, learning_rate=0.1, min_data_in_leaf=40, num_threads=1,
                deterministic=True, force_row_wise=True, seed=7, verbose=-1, lambda_l2=1.0)


class Correction:
    def __init__(self, features, log_ratio, trees=100, bound=0.35, ranged=3, **settings):
        self.bound = bound
        # Outside what was seen of the first features (logarithms of sizes) by more than an octave the correction fades, a half
        # per octave.
        self.range = [float(f"{v:.4g}") for f in features[:, :ranged].T for v in (f.min(), f.max())]
        target = np.clip(log_ratio, -bound, bound)
        self.model = lgb.train({**SETTINGS, **settings}, lgb.Dataset(features.astype(np.float32), target),
                               num_boost_round=trees)

    def factor(self, features):
        outside = np.zeros(len(features))
        for i in range(len(self.range) // 2):
            f = features[:, i]
            outside += np.maximum(0, self.range[2 * i] - f) + np.maximum(0, f - self.range[2 * i + 1])
        sum_ = np.clip(self.model.predict(features.astype(np.float32), num_threads=1), -self.bound, self.bound)
        return np.exp(sum_ * np.exp2(-np.maximum(0, outside - 1)))

    def numbers(self):
        """The flat list of src/estimate/trees.h."""
        out = [self.bound, 0]
        for tree in self.model.dump_model()["tree_info"]:
            splits, leaves = [], []

            def visit(node):
                if "split_feature" not in node:
                    leaves.append(node["leaf_value"])
                    return -len(leaves)
                index = len(splits)
                splits.append(None)
                left = visit(node["left_child"])
                right = visit(node["right_child"])
                splits[index] = (node["split_feature"], node["threshold"], left, right)
                return index

            visit(tree["tree_structure"])
            out.append(len(splits))
            for split in splits:
                out.extend(split)
            out.extend(leaves)
            out[1] += 1
        return out
