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
    # mlp_down_proj multiplies the activation's output, whose values switch fewer transistors: it runs at a
    # higher clock than the others at the same shape. A property of the data, not of the shape.
    d["cool"] = (d.op == "mlp_down_proj").astype(float)
    d["shape_group"] = [f"{n}x{k}" for n, k in zip(d.N, d.K)]
    return d


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
