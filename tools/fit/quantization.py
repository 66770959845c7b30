"""What the tables of products with 8- and 4-bit operands hold besides the product.

They time a linear layer: its activations come in 16 bits and are converted before they are multiplied. In a recording the
conversion is a kernel of its own, so that the product alone must be charged for less. Two things show it. Products that
take no time (a few rows of a small matrix) take some microseconds longer than with 16 bits: another launch. And long
products take, beyond their arithmetic and their result, the time that several bytes need for each element of the
activations, however narrow the matrix.
"""
import numpy as np
import pandas as pd
import tables

import report

# Sizes of elements that the product itself reads.
BYTES = {"fp8": ("gemm.8", 1), "fp8_block": ("gemm.8.block", 1), "nvfp4": ("gemm.4", 0.5)}
FEW_ROWS, SMALL = 16, 1 << 20    # of these what is constant is told
MANY_ROWS, LARGE = 4096, 3e7     # of these what each element takes
ENOUGH = 50                      # rows


def measured(path):
    """{type: its rows, the fastest of several kernels for one product}"""
    table = tables.read(path, ["gemm_dtype", "m", "n", "k", "latency"])
    table = table[table.latency > 0]
    keys = ["gemm_dtype", "m", "n", "k"]
    return dict(tuple(table.groupby(keys, as_index=False).latency.min().groupby("gemm_dtype")))


def constant_ns(narrow, wide):
    def small(t):
        return t[(t.m <= FEW_ROWS) & (t.n * t.k <= SMALL)]

    both = pd.merge(small(narrow), small(wide), on=["m", "n", "k"])
    return float(max(0, np.median(both.latency_x - both.latency_y) * 1e6)) if len(both) >= ENOUGH else 0.0


def bytes_each(narrow, chip):
    """By least squares of relative errors: elements of the activations, FLOPs and bytes of the result, each at a price."""
    t = narrow[(narrow.m >= MANY_ROWS) & (narrow.m * narrow.k >= LARGE)]
    if len(t) < ENOUGH:
        return None
    parts = np.stack([t.m * t.k / chip.sheet["memory_gbps"], 2.0 * t.m * t.n * t.k, 2.0 * t.m * t.n], 1) / (t.latency.values[:, None] * 1e6)
    return float(np.linalg.lstsq(parts, np.ones(len(t)), rcond=None)[0][0])


def fit(folder, out, chips):
    sections, alike = [], {}
    for gpu, chip in chips.items():
        for library, path in tables.files(folder, gpu, "gemm_perf").items():
            rows = measured(path)
            for kind, (family, size) in BYTES.items():
                if kind not in rows or "bfloat16" not in rows or (each := bytes_each(rows[kind], chip)) is None:
                    continue
                name = f"quantization.{family}.{library}"
                params = dict(constant_ns=constant_ns(rows[kind], rows["bfloat16"]), bytes=max(0, each - size))
                sections.append((f"{name} {chip.name}", f"ops {gpu} {path.name}", params, None, None))
                alike.setdefault((name, chip.scope), []).append(params)
    # GPUs of the architecture that nobody measured are answered by a neighbour's forest.
    for (name, scope), several in alike.items():
        params = {key: float(np.median([p[key] for p in several])) for key in several[0]}
        sections.append((f"{name} {scope}", f"ops {len(several)} GPUs", params, None, None))
    (out / "catalog/models/fitted-quantization.model").write_text(report.model_file(sorted(sections, key=lambda s: s[0])))
