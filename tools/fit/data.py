"""The measurements as tables with columns `text` (an op), `ns` and the groups used for leaving out."""
import pathlib

import numpy as np
import pandas as pd

try:
    import tomllib
except ImportError:  # Python 3.10
    import tomli as tomllib

ROOT = pathlib.Path(__file__).resolve().parents[2]
NEUSIGHT = {"Tesla P4": "p4", "Tesla P100-PCIE-16GB": "p100", "Tesla T4": "t4",
            "Tesla V100-PCIE-32GB": "v100-pcie-32gb", "NVIDIA A100-PCIE-40GB": "a100-40gb-pcie",
            "NVIDIA A100 80GB PCIe": "a100-80gb-pcie"}
VIDUR = {"a100": "a100-80gb-sxm", "h100": "h100-sxm", "a40": "a40"}
LIGER = {"NVIDIA H100 80GB HBM3": "h100-sxm", "NVIDIA A100-SXM4-80GB": "a100-80gb-sxm",
         "NVIDIA GeForce RTX 3090": "rtx3090", "NVIDIA GeForce RTX 4090": "rtx4090", "NVIDIA B200": "b200-sxm",
         "NVIDIA H100 PCIe": "h100-pcie"}


def sheets():
    out = {}
    for path in sorted((ROOT / "catalog/gpus").glob("*.toml")):
        sheet = tomllib.loads(path.read_text())
        out[sheet["name"]] = sheet
    return out


def gemm_fp16(folder):
    d = pd.read_csv(folder / "gemm_fp16.csv.gz")
    d = d.groupby(["gpu", "model", "op", "M", "N", "K"], sort=True).median_ms.median().reset_index()
    # y[M×N] = x[M×K] · W[N×K]ᵀ; BLAS sees it transposed.
    d["text"] = [f"gemm m={n} n={m} k={k} a=f16 b=f16 d=f16 compute=f16 transpose_a=1"
                 for m, n, k in zip(d.M, d.N, d.K)]
    d["ns"] = d.median_ms * 1e6
    d["gpu"] = d.gpu.map(VIDUR)
    d["shape_group"] = [f"{n}x{k}" for n, k in zip(d.N, d.K)]
    return d


# The order of kTiles in src/estimate/gemm_model.cpp.
TILES = ("256x128", "128x256", "128x128", "256x64", "64x256", "128x64", "64x128", "64x64", "128x32", "32x128", "64x32",
         "32x64", "32x32")


def tiles(table):
    """The tiles the kernel column names for at least one row in a hundred, as the bits of GemmParams::tiles."""
    named = table.kernel.str.extract(r"gemm_(\d+x\d+)")[0].value_counts(normalize=True)
    return float(sum(1 << i for i, tile in enumerate(TILES) if named.get(tile, 0) >= 0.01))


def fp32(folder, name):
    d = pd.read_csv(folder / "op_fp32_forward" / f"{name}.csv.gz")
    d["gpu"] = d.device.map(NEUSIGHT)
    d["ns"] = d.latency_ms * 1e6
    if name == "linear":
        d["text"] = [f"gemm m={k} n={m} k={n} transpose_a=1" for m, n, k in zip(d.M, d.N, d.K)]
    elif name == "bmm":
        d["text"] = [f"gemm m={k} n={m} k={n} batch={b}" for b, m, n, k in zip(d.B, d.M, d.N, d.K)]
    elif name == "conv":
        d["text"] = [f"convolution n={b} c={c} k={k} h={s} w={s} kh=3 kw=3 pad_h=1 pad_w=1"
                     for b, c, k, s in zip(d.B, d.Input_Channel, d.Output_Channel, d.Input_Size)]
    elif name == "ln":
        d["text"] = [f"normalization kind=layer rows={b} cols={h}" for b, h in zip(d.B, d.H)]
    elif name == "softmax":
        d["text"] = [f"softmax rows={b} cols={h}" for b, h in zip(d.B, d.H)]
    else:
        inputs = 2 if name in ("add", "mul", "div", "pow") else 1
        weight = {"pow": 12, "powu": 12, "gelu": 8, "tanh": 10, "div": 4, "divu": 4}.get(name, 1)
        d["text"] = [f"pointwise elements={b * h} bytes_read={4 * inputs * b * h} bytes_written={4 * b * h} "
                     f"inputs={inputs} flops_per_element={weight}" for b, h in zip(d.B, d.H)]
    if "B" in d and "H" in d:
        d["shape_group"] = [f"{b}x{h}" for b, h in zip(d.B, d.H)]
    return d


def without_drift(sweep):
    """A sweep of convolutions on one GPU, in the order it was measured, without the growth of its launch cost: the calls with
    the least work take 80-120 µs at its beginning and 370-800 µs at its end, evenly on every GPU. What they take at a
    time (the shorter ones of each tenth of the sweep) is a line, of which only the start is left in."""
    work = sweep.B * sweep.Input_Channel * sweep.Output_Channel * sweep.Input_Size ** 2
    place = np.arange(len(sweep)) / len(sweep)
    short = (work <= work.quantile(0.06)).values
    tenth = (place * 10).astype(int)
    level = [np.quantile(sweep.ns.values[short & (tenth == t)], 0.2) for t in range(10)]
    growth = np.polyfit((np.arange(10) + 0.5) / 10, level, 2)
    ns = sweep.ns - (np.polyval(growth, place) - np.polyval(growth, 0))
    return sweep.assign(ns=ns)[ns > 30000].reset_index(drop=True)


def memory_fp16(folder):
    d = pd.read_csv(folder / "memory_bound_fp16.csv.gz")
    d = d.groupby(["gpu", "model", "op", "num_tokens", "hidden", "n_expanded", "n_head", "n_kv_head", "vocab", "tp"],
                  sort=True).median_ms.median().reset_index()
    d["gpu"] = d.gpu.map(VIDUR)
    d["ns"] = d.median_ms * 1e6
    texts = []
    for r in d.itertuples():
        t = r.num_tokens
        if r.op == "add":
            e = t * r.hidden
            texts.append(f"pointwise elements={e} bytes_read={4 * e} bytes_written={2 * e} inputs=2 dtype=f16")
        elif r.op == "mlp_act":
            e = t * (r.n_expanded // r.tp)
            texts.append(f"pointwise elements={e} bytes_read={4 * e} bytes_written={2 * e} inputs=2 dtype=f16 flops_per_element=8")
        elif r.op == "attn_rope":
            e = t * (r.n_head // r.tp + max(1, r.n_kv_head // r.tp)) * (r.hidden // r.n_head)
            texts.append(f"pointwise elements={e} bytes_read={2 * e} bytes_written={2 * e} dtype=f16 flops_per_element=4")
        elif r.op == "emb":
            texts.append(f"gather rows={t} cols={r.hidden} table_rows={r.vocab // r.tp} dtype=f16")
        else:
            texts.append(f"normalization kind=rms rows={t} cols={r.hidden} dtype=f16")
    d["text"] = texts
    return d


def attention(folder):
    d = pd.read_csv(folder / "attention.csv.gz")
    d["gpu"] = d.gpu.map({"A100 80GB SXM4": "a100-80gb-sxm", "H100 80GB SXM5": "h100-sxm"})
    d["ns"] = d.time_ms_derived * 1e6
    return d


def liger(folder):
    d = pd.read_csv(folder / "op_bf16_fused_layers.csv.gz")
    d = d[d.metric_name == "speed"].copy()
    d["gpu"] = d.gpu_name.map(LIGER)
    d["ns"] = d.y_value_50 * 1e6
    return d


# ResNet-50: (channels in, channels out, kernel, input size) -> (stride, how many such layers)
RESNET50 = {(3, 64, 7, 224): (2, 1), (64, 64, 1, 56): (1, 1), (64, 64, 3, 56): (1, 3), (64, 256, 1, 56): (1, 4),
            (256, 64, 1, 56): (1, 2), (256, 128, 1, 56): (1, 1), (128, 128, 3, 56): (2, 1), (128, 512, 1, 28): (1, 4),
            (256, 512, 1, 56): (2, 1), (512, 128, 1, 28): (1, 3), (128, 128, 3, 28): (1, 3), (512, 256, 1, 28): (1, 1),
            (256, 256, 3, 28): (2, 1), (256, 1024, 1, 14): (1, 6), (512, 1024, 1, 28): (2, 1), (1024, 256, 1, 14): (1, 5),
            (256, 256, 3, 14): (1, 5), (1024, 512, 1, 14): (1, 1), (512, 512, 3, 14): (2, 1), (512, 2048, 1, 7): (1, 3),
            (1024, 2048, 1, 14): (2, 1), (2048, 512, 1, 7): (1, 2), (512, 512, 3, 7): (1, 2)}


def conv_resnet50(folder):
    """One call of each convolution of ResNet-50 (V100, fp32, batch 32) in its three directions. The table lists
    kernels; a call is what they take together over the calls of that shape: 24 steps were profiled."""
    import json
    table = pd.read_csv(folder / "kernels/conv_v100_fp32_resnet50.csv.gz")
    rows = []
    for (op, dims), group in table.groupby(["op", "input_dims"], sort=True):
        d = json.loads(dims)
        if op == "aten::cudnn_convolution":
            direction = "forward"
            keys = [k for k in RESNET50 if k == (d[0][1], d[1][0], d[1][2], d[0][2])]
        elif op.endswith("backward_input"):
            direction = "data_gradient"
            keys = [k for k, (s, _) in RESNET50.items() if k[:3] == (d[2][1], d[2][0], d[2][2]) and k[3] // s == d[1][2]]
        else:
            direction = "weight_gradient"
            keys = [k for k, (s, _) in RESNET50.items() if (k[0], k[1], k[3]) == (d[2][1], d[1][1], d[2][2]) and k[3] // s == d[1][2]]
        if len(keys) != 1:
            continue  # two layers share these dims
        c, k, size, h = keys[0]
        stride, layers = RESNET50[keys[0]]
        us = float((group["count"] * group.median_us).sum()) / (24 * layers)
        rows.append(dict(direction=direction, ns=us * 1e3,
                         text=f"convolution n=32 c={c} k={k} h={h} w={h} kh={size} kw={size} stride_h={stride} stride_w={stride} "
                              f"pad_h={size // 2} pad_w={size // 2} direction={direction}"))
    return pd.DataFrame(rows)
