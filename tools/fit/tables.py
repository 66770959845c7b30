"""The tables of measured kernels (MEASUREMENTS/ops, one parquet file per GPU, framework and table) as ops with times.

A row becomes an op in words, its time, the library it was measured with, and the group that is left out together: a layer
shape, a head geometry, a model. What cannot be right is dropped and said: a time of zero or less, or below what the data
sheet allows. A file that is cut short or lacks a column ends the fit with its name.
"""
import pathlib
import sys

import data
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import shipped

GPUS = {"a100_sxm": "a100-80gb-sxm", "h100_sxm": "h100-sxm", "h200_sxm": "h200-sxm", "b200_sxm": "b200-sxm",
        "b300_sxm": "b300-sxm", "gb200": "gb200", "gb300": "gb300", "l40s": "l40s",
        "rtx_pro_6000_server": "rtx-pro-6000-server"}
# The order is the number a model knows a library by; the first answers where nobody names one: vLLM's 16-bit products are
# torch.nn.functional.linear.
LIBRARIES = ["vllm", "sglang", "trtllm"]
# Of these vLLM's tables have about ten times the others' times for small ops, likely calls around the kernels; SGLang's answers.
KERNELS_ALONE = ("gemm.8.block", "mla.prefill", "mla.decode")


def libraries(family):
    """The libraries in the order of a family's model."""
    return ["sglang", "trtllm", "vllm"] if family in KERNELS_ALONE else LIBRARIES


GEMM_TYPES = {"bfloat16": ("gemm.16", "a=bf16 b=bf16 d=bf16 compute=bf16", ""),
              "fp8": ("gemm.8", "a=f8e4m3 b=f8e4m3 d=bf16 compute=f8e4m3", ""),
              "fp8_block": ("gemm.8.block", "a=f8e4m3 b=f8e4m3 d=bf16 compute=f8e4m3", "fp8_block"),
              "nvfp4": ("gemm.4", "a=f4 b=f4 d=bf16 compute=f4", ""),
              "sq": ("gemm.int8", "a=i8 b=i8 d=bf16 compute=i8", ""),
              "int8_wo": ("gemm.weight.8", "a=i8 b=bf16 d=bf16 compute=bf16", ""),
              "int4_wo": ("gemm.weight.4", "a=f4 b=bf16 d=bf16 compute=bf16", "")}
ATTENTION_TYPES = {"bfloat16": "bf16", "fp8": "f8e4m3"}


class BadTable(Exception):
    """A file that cannot be used; the message names it and says what to do."""


def read(path, columns, limit=None):
    """The table, or every k-th row of it where only some are wanted."""
    try:
        table = pq.read_table(path)
    except (pa.ArrowInvalid, OSError) as error:
        raise BadTable(f"{path}: cannot be read ({str(error).splitlines()[0]}); is it cut short? Copy it again") from error
    missing = [c for c in columns if c not in table.column_names]
    if missing:
        raise BadTable(f"{path}: no column {', '.join(missing)}; it has {', '.join(table.column_names)}")
    table = table.to_pandas()
    return table if limit is None else table.iloc[:: max(1, -(-len(table) // limit))].reset_index(drop=True)


def files(folder, gpu, kind, library=None):
    """{library: path} of a kind of table on a GPU, the newest version of each library."""
    out = {}
    for path in sorted((pathlib.Path(folder) / "ops" / gpu).glob(f"*-{kind}.parquet")):
        out[path.name.split("-")[0]] = path
    return {k: v for k, v in out.items() if library in (None, k)}


def clean(table, label):
    """Drops times that are no times; rows of equal ops become their median."""
    bad = ~(table.ns > 0) | ~np.isfinite(table.ns)
    if bad.any():
        print(f"# {label}: {int(bad.sum())} rows with a time of zero or less left out", file=sys.stderr)
    table = table[~bad]
    return table.groupby(["library", "scheme", "family", "text", "group"], sort=False, as_index=False).ns.median()


def gemm(folder, gpu, library=None, limit=None):
    parts = []
    for name, path in files(folder, gpu, "gemm_perf", library).items():
        t = read(path, ["gemm_dtype", "m", "n", "k", "latency"], limit)
        unknown = set(t.gemm_dtype.unique()) - set(GEMM_TYPES)
        if unknown:
            raise BadTable(f"{path}: products in {', '.join(sorted(unknown))}, which tools/fit/tables.py does not know")
        kinds = [GEMM_TYPES[d] for d in t.gemm_dtype]
        parts.append(pd.DataFrame(dict(
            library=name, scheme=[k[2] for k in kinds], family=[k[0] for k in kinds], ns=t.latency.values * 1e6,
            group=[f"{n}x{k}" for n, k in zip(t.n, t.k)],
            # As torch.nn.functional.linear asks cuBLAS: column-major, the weight transposed.
            text=[f"gemm m={n} n={m} k={k} {kind[1]} transpose_a=1"
                  for m, n, k, kind in zip(t.m, t.n, t.k, kinds)])))
    return clean(pd.concat(parts, ignore_index=True), f"{gpu} gemm_perf") if parts else None


def attention(folder, gpu, library=None, limit=None):
    parts = []
    for kind in ("context_attention_perf", "generation_attention_perf", "encoder_attention_perf"):
        for name, path in files(folder, gpu, kind, library).items():
            needed = ["batch_size", "isl", "num_heads", "head_dim", "attn_dtype", "latency"]
            if kind != "encoder_attention_perf":
                needed += ["num_key_value_heads", "kv_cache_dtype", "step"]
            t = read(path, needed, limit)
            causal = kind != "encoder_attention_perf"
            kv_heads = t.num_key_value_heads if causal else t.num_heads
            window = t.window_size.fillna(0).clip(lower=0).astype(int) if "window_size" in t else np.zeros(len(t), int)
            if kind == "generation_attention_perf":
                rows, keys = np.ones(len(t), int), (t.isl + t.step).values
            elif causal:
                rows, keys = t.isl.values, (t.isl + t.step).values
            else:
                rows = keys = t.isl.values
            types = [ATTENTION_TYPES[a] for a in t.attn_dtype]
            caches = [ATTENTION_TYPES[a] for a in t.kv_cache_dtype] if causal else types
            parts.append(pd.DataFrame(dict(
                library=name, ns=t.latency.values * 1e6,
                scheme=["cache_fp8" if c != "bf16" and a == "bf16" else "" for a, c in zip(types, caches)],
                family=np.where((rows <= 16) & (keys > rows), "attention.decode", "attention.prefill"),
                group=[f"{h}/{v}x{d} window {w} {'causal' if causal else 'full'}"
                       for h, v, d, w in zip(t.num_heads, kv_heads, t.head_dim, window)],
                text=[f"attention batch={b} heads={h} kv_heads={v} seq_q={q} seq_k={k} head_dim={d} head_dim_v={d}"
                      f" dtype={a} window={w} causal={int(causal)}"
                      for b, h, v, q, k, d, a, w in zip(t.batch_size, t.num_heads, kv_heads, rows, keys, t.head_dim,
                                                        types, window)])))
    return clean(pd.concat(parts, ignore_index=True), f"{gpu} attention") if parts else None


EXPERT_TYPES = {"bfloat16": ("experts.16", "bf16", "bf16", ""), "fp8": ("experts.8", "f8e4m3", "f8e4m3", ""),
                "fp8_block": ("experts.8.block", "f8e4m3", "f8e4m3", "fp8_block "), "nvfp4": ("experts.4", "f4", "f4", ""),
                "int4_wo": ("experts.weight.4", "bf16", "f4", ""), "w4a16_mxfp4": ("experts.weight.4", "bf16", "f4", ""),
                "w4a8_mxfp4_mxfp8": ("experts.mixed", "f8e4m3", "f4", "")}


EXPERT_COLUMNS = ["kernel_source", "moe_dtype", "num_tokens", "hidden_size", "inter_size", "topk", "num_experts", "moe_tp_size",
                  "moe_ep_size", "distribution", "latency"]


def layers(table):
    return [f"{h}x{i} {e}/{k}" for h, i, e, k in zip(table.hidden_size, table.inter_size, table.num_experts, table.topk)]


def not_gated(folder, gpu):
    """Layers of two matrices an expert: those that some table calls not gated (the other libraries' tables do not say), unless
    this GPU's times leave room to read three. The older tables of A100 hold the same sizes, gated."""
    named, least = set(), {}
    for path in sorted((pathlib.Path(folder) / "ops").glob("*/*-moe_perf.parquet")):
        t = read(path, EXPERT_COLUMNS)
        t = t.assign(layer=layers(t))
        named.update(t.layer[t.kernel_source.str.contains("nongated")])
        if path.parent.name != gpu:
            continue
        # Every expert has a row, so that all weights are read.
        t = t[(t.moe_dtype == "bfloat16") & (t.distribution == "balanced") & (t.num_tokens * t.topk >= t.num_experts) & (t.latency > 0)]
        matrix = 2.0 * t.num_experts / t.moe_ep_size * t.hidden_size * t.inter_size / t.moe_tp_size
        read_at_most = t.latency * 1e6 * data.sheets()[GPUS[gpu]]["memory_gbps"] / matrix
        for layer, matrices in read_at_most.groupby(t.layer).min().items():
            least[layer] = min(matrices, least.get(layer, np.inf))
    return {layer for layer in named if least.get(layer, 0) < 3}


def experts(folder, gpu, library=None, limit=None):
    parts, plain = [], not_gated(folder, gpu)
    for name, path in files(folder, gpu, "moe_perf", library).items():
        t = read(path, EXPERT_COLUMNS, limit)
        # Dealt evenly to fewer tokens than one round takes, the numbers of experts above 256 were rounded to eight bits (times of
        # 512 experts fall by a quarter there), so that some got two rows and others none.
        few = (t.distribution == "balanced") & (t.num_experts > 256) & (t.num_tokens < -(-t.num_experts // t.topk))
        t = t[~few].reset_index(drop=True)
        kinds = [EXPERT_TYPES[d] for d in t.moe_dtype]
        skew = [d.rsplit("_", 1)[1] if d.startswith("power_law_") else "0" for d in t.distribution]
        named = layers(t)
        matrices = [2 if layer in plain else 3 for layer in named]
        parts.append(pd.DataFrame(dict(
            library=name, family=[k[0] for k in kinds], ns=t.latency.values * 1e6, group=named,
            scheme=[f"{kind[3]}moe tokens={n} experts={e} top={k} matrices={x} skew={s} kernel={source}"
                    for kind, n, e, k, x, s, source in zip(kinds, t.num_tokens, t.num_experts, t.topk, matrices, skew, t.kernel_source)],
            text=[f"gemm m={max(1, n * k // ep)} n={max(1, x * i // tp)} k={h} groups={max(1, e // ep)} a={kind[1]} b={kind[2]} d=bf16 "
                  f"compute={kind[1]}"
                  for n, h, i, e, k, tp, ep, kind, x in zip(t.num_tokens, t.hidden_size, t.inter_size, t.num_experts, t.topk,
                                                            t.moe_tp_size, t.moe_ep_size, kinds, matrices)])))
    return clean(pd.concat(parts, ignore_index=True), f"{gpu} moe_perf") if parts else None


def latent(folder, gpu, library=None, limit=None):
    """Multi-head latent attention: 192 and 128 wide before the cache is compressed, 576 and 512 over it."""
    parts = []
    for kind, family in (("context_mla_perf", "mla.prefill"), ("generation_mla_perf", "mla.decode")):
        for name, path in files(folder, gpu, kind, library).items():
            t = read(path, ["mla_dtype", "kv_cache_dtype", "num_heads", "batch_size", "isl", "step", "latency"], limit)
            keys = (t.isl + t.step).values
            rows = t.isl.values if family == "mla.prefill" else np.ones(len(t), int)
            use = (rows > 16) | (keys <= rows) if family == "mla.prefill" else keys > 1
            wide = "head_dim=192 head_dim_v=128" if family == "mla.prefill" else "head_dim=576 head_dim_v=512"
            types = [ATTENTION_TYPES[a] for a in t.mla_dtype]
            caches = [ATTENTION_TYPES[a] for a in t.kv_cache_dtype]
            parts.append(pd.DataFrame(dict(
                library=name, family=family, ns=t.latency.values * 1e6,
                scheme=["cache_fp8" if c != "bf16" and a == "bf16" else "" for a, c in zip(types, caches)],
                group=[f"{h} heads, batch {b}" for h, b in zip(t.num_heads, t.batch_size)],
                text=[f"attention batch={b} heads={h} kv_heads={h if family == 'mla.prefill' else 1} seq_q={q} seq_k={k} {wide} "
                      f"dtype={a} causal=1"
                      for b, h, q, k, a in zip(t.batch_size, t.num_heads, rows, keys, types)]))[np.asarray(use)])
    return clean(pd.concat(parts, ignore_index=True), f"{gpu} mla") if parts else None


def possible(table, chip, label):
    """The rows a data sheet allows, with what the models are asked about them."""
    family, base, limit, features = shipped.ask(chip, shipped.Ops(list(table.text), [f"any::{s}" for s in table.scheme]))
    names = shipped.learned_names()
    wrong = np.array([names[f] if f >= 0 else "" for f in family]) != table.family.values
    if wrong.any():
        raise BadTable(f"{label}: the models take '{table.text[wrong].iloc[0]}' for another family than {table.family[wrong].iloc[0]}")
    below = table.ns.values < limit
    if below.any():
        worst = int(np.argmax(limit / table.ns.values))
        print(f"# {label}: {int(below.sum())} rows faster than the data sheet's peak left out, the first: "
              f"{table.text.iloc[worst]} in {table.ns.iloc[worst] / 1e3:.2f} µs, at least {limit[worst] / 1e3:.2f}", file=sys.stderr)
    keep = ~below
    return table[keep].reset_index(drop=True), base[keep], limit[keep], features[keep]


def contradictions(table, label):
    """Says where two libraries' tables differ by more than a factor of two for the same op."""
    wide = table.pivot_table(index=["text", "scheme"], columns="library", values="ns", sort=False)
    order = libraries(table.family.iloc[0])
    for i, one in enumerate(order):
        for other in order[i + 1:]:
            if one not in wide or other not in wide:
                continue
            ratio = (wide[other] / wide[one]).dropna()
            apart = ratio[(ratio > 2) | (ratio < 0.5)]
            if len(apart):
                print(f"# {label}: {one} and {other} differ by more than a factor of two in {len(apart)} of {len(ratio)} ops, the "
                      f"first: {apart.index[0][0]} ({apart.iloc[0]:.1f}). Both are kept, each for its library; where none is "
                      f"named, {one} is believed", file=sys.stderr)


READERS = dict(gemm=gemm, attention=attention, latent=latent, experts=experts)
