"""The families: their data, the parameters that are free, and the order in which they are fitted."""
import data
import numpy as np
import pandas as pd
import search
import shipped
from family import SHORT_NS, Family, golden, summary, thin

GEMM = dict(floor_ns=(1000, 8000), efficiency=(0.5, 1.15), medium=(0.6, 1.1), narrow=(0.4, 1.1), small=(0.25, 1.0),
            k_prologue=(0, 600), epilogue=(0, 2), dram_efficiency=(0.6, 1.0), l2_efficiency=(0.3, 8),
            overlap=(0, 0.5), tail=(0, 1), split_ns=(0, 6000), split_bandwidth=(0.05, 2), keep=(0, 1.5),
            latency_bytes=(8000, 100000))
GEMM_BASE = dict(occupancy=1, overlap=0.05, tail=0.9, latency_bytes=50000, k_prologue=40, l2_efficiency=3)
GEMM_STARTS = (GEMM_BASE, {**GEMM_BASE, "l2_efficiency": 1.2, "tail": 0.5})
# As good as three times as many of 31 leaves, and evaluated in a quarter of the time.
FEW_DEEP = dict(max_depth=8, learning_rate=0.2, min_data_in_leaf=20)
F32 = {**GEMM, "swizzle": (0, 1), "efficiency": (0.15, 1.15), "tiny": (0.2, 1.0), "l2_efficiency": (0.1, 8), "dram_efficiency": (0.4, 1.0)}
F32_BASE = dict(max_area=16384, min_side=32, occupancy=2, efficiency=0.9, medium=1.0, narrow=0.95, small=0.85, tiny=0.7,
                tail=0.9, l2_efficiency=3, latency_bytes=30000, overlap=0.05)
FLAT = dict(floor_ns=(500, 8000), dram_efficiency=(0.5, 1.0), l2_efficiency=(0.1, 1.2), resident=(0, 1), keep=(0.2, 2),
            instructions=(0, 3), ramp_bytes=(0, 3e6))
# Streams far larger than L2 get 0.84-0.92 of an HBM part's sheet (gpu-benches STREAM); a sweep that runs over the same tensors again
# and again finds more of them in L2 than a job would, which must not be taken for bandwidth.
STREAM = {**FLAT, "dram_efficiency": (0.5, 0.92), "fade": (1, 4)}
# Kernels of an inference engine, some of which issue far more than they move. On a GPU of their own the bandwidth stands for whatever
# holds them back; what is carried to another GPU must tell the two apart: a stream gets what streams get, data is read twice at most.
ISSUED = {**FLAT, "dram_efficiency": (0.75, 1.0), "instructions": (0, 600)}
CARRIED = {"dram_efficiency": (0.88, 1.0), "passes": (0, 1)}
ROWS = {**FLAT, "passes": (0, 2), "row_ns": (0, 8000), "row_element_ns": (0, 2), "instructions": (0, 40)}
MEMORY_STARTS = (dict(instructions=1), dict(instructions=1, resident=0.1), dict(dram_efficiency=0.85, instructions=100))


def result(part, family, gpu, left_out, measured, predicted, inside=None, note=None):
    return dict(part=part, family=family, gpu=gpu, left_out=left_out, summary=summary(measured, predicted),
                inside=None if inside is None or not len(inside) else float(np.mean(inside)), note=note)


def validated(part, label, family, gpu, left_out, groups, count=5, note=None):
    predicted = family.cross_validate(groups, count)
    use = family.seen & (family.ns >= SHORT_NS)
    rows = [result(part, label, gpu, left_out, family.ns[use], predicted[use], family.inside[use], note)]
    short = family.seen & (family.ns < SHORT_NS)
    if short.sum() >= 50:
        rows.append(result(part, label + ", under 20 µs", gpu, left_out, family.ns[short], predicted[short],
                           family.inside[short]))
    return rows


def jointly(kind, members, free, base, starts, limit=300, rounds=2):
    """One set of parameters for several GPUs: what a GPU nobody measured gets."""
    parts = []
    for family, extra in members:
        rows = thin(np.flatnonzero(family.ns >= (SHORT_NS if not family.overhead else 1.3 * extra[0])), limit)
        ops = shipped.Ops([family.texts[i] for i in rows], family.name)
        parts.append((family, extra, rows, ops))
    measured = np.concatenate([f.ns[r] for f, _, r, _ in parts])

    def predict(params, _):
        return np.concatenate([f._time(shipped.evaluate(kind, f.chip, o, params, **f.others), e)
                               for f, e, r, o in parts])

    params, _, _ = search.fit(predict, measured, {**shipped.defaults(kind), **base}, free, starts, rounds)
    return params


def leave_gpus_out(part, label, kind, members, free, base, starts, rounds=2):
    rows = []
    for i, (family, extra) in enumerate(members):
        others = [m for j, m in enumerate(members) if j != i]
        params = jointly(kind, others, free, base, starts[:1], rounds=rounds)
        predicted = family._time(shipped.evaluate(kind, family.chip, family.ops, params, **family.others), extra)
        use = family.ns >= (SHORT_NS if not family.overhead else max(SHORT_NS, 1.3 * extra[0]))
        rows.append(result(part, label, family.chip.name, "this whole GPU", family.ns[use], predicted[use]))
    return rows


def only(params, free, *more):
    return {k: params[k] for k in params if k in free or k in more}


def gemm_tensor(folder, chips):
    table = data.gemm_fp16(folder)
    traces = pd.read_csv(folder / "kernels/gemm_from_traces.csv.gz")
    sections, rows, members = [], [], []
    part, label = "Matrix products, fp16 / bf16", "gemm fp16"
    for gpu, scope in (("a100-80gb-sxm", "ampere-8.0"), ("a40", "ampere-8.6"), ("h100-sxm", "hopper")):
        d = table[(table.gpu == gpu) & (table.ns >= 8000)].reset_index(drop=True)
        family = Family("gemm", chips[gpu], d, GEMM, GEMM_BASE, GEMM_STARTS, trees=48, leaves=200, bound=0.35,
                        limit=700, rounds=3, ranged=4, settings=FEW_DEEP)
        rows += validated(part, label, family, gpu, "whole models", d.model.values)
        bounds = family.bounds
        trained = family.train(np.arange(len(d)))
        params = only(trained[0], GEMM, "occupancy")
        if gpu == "h100-sxm":
            # Level under continuous load: large bf16 products inside a training job against the model of bursts.
            t = traces[(traces.device == "NVIDIA H100 80GB HBM3") & traces.dtype.eq("c10::BFloat16") & (traces.median_us > 60)]
            job = pd.DataFrame(dict(
                text=[f"gemm m={n} n={m} k={k} batch={b} a=bf16 b=bf16 d=bf16 compute=bf16 transpose_a=1"
                      for b, m, n, k in zip(t.batch, t.M, t.N, t.K)], ns=t.median_us.values * 1e3))
            inside = Family("gemm", chips[gpu], job, GEMM, {**GEMM_BASE, **params}, trees=0)
            predicted = family_predict(inside, trained)
            weight = job.ns.values * t["count"].values
            ratio = float(np.exp(np.sum(weight * np.log(predicted / job.ns.values)) / weight.sum()))
            params["sustained"] = float(f"{min(1.1, ratio):.3f}")
            level = {**trained[0], "sustained": params["sustained"]}
            rows.append(result(part, "gemm bf16 in a training job", gpu, "only its level is fitted", job.ns.values,
                               family_predict(inside, (level, trained[1], trained[2]))))
        sections.append((f"gemm.tensor {scope}", f"gemm_fp16 {gpu}", params, bounds, trained[2]))
        golden(family, trained, sustained=params.get("sustained", 1.0))
        members.append((family, trained[1]))
    rows += leave_gpus_out("A whole GPU left out", "gemm fp16", "gemm", members, GEMM, GEMM_BASE, GEMM_STARTS)
    generic = jointly("gemm", members, GEMM, GEMM_BASE, GEMM_STARTS)
    spread = np.concatenate([f.ns / shipped.evaluate("gemm", f.chip, f.ops, generic) for f, _ in members])
    wide = (float(np.quantile(spread, 0.06)), float(np.quantile(spread, 0.94)))
    wide = (*wide, 0.8 * wide[0], 1.2 * wide[1])
    sections.insert(0, ("gemm.tensor", "", only(generic, GEMM, "occupancy"), wide, None))
    # Nobody measured single products on Ada; its SM is that of the parts with 8.6 and a larger L2 behind it.
    sections.append(("gemm.tensor ada", "", next(s[2] for s in sections if s[0] == "gemm.tensor ampere-8.6"), wide, None))
    return sections, rows


def family_predict(family, trained):
    return family.predict(trained)


def gemm_plain(folder, chips):
    sections, rows = [], []
    part = "Matrix products, fp32"
    tables = {n: data.fp32(folder, n) for n in ("linear", "bmm")}
    members = []
    # P4, P100 and T4 speak for themselves only: a card of their architecture with three times the power is another thing.
    for gpu, scope in (("p4", "p4"), ("p100", "p100"), ("t4", "t4"), ("v100-pcie-32gb", "volta"),
                       ("a100-40gb-pcie", "ampere-8.0")):
        trained_linear = None
        for name, label in (("linear", "linear fp32"), ("bmm", "batched gemm fp32")):
            d = tables[name][tables[name].gpu == gpu].reset_index(drop=True)
            base = F32_BASE if trained_linear is None else {**F32_BASE, **trained_linear[0]}
            base = {**base, "tiles": data.tiles(d)}
            family = Family("gemm", chips[gpu], d, F32, base, (base,), trees=150, leaves=31, bound=1.0,
                            overhead=True, limit=600, rounds=2, ranged=4)
            groups = [f"{int(np.log2(max(1, a)) * 2)}.{int(np.log2(max(1, b)) * 2)}.{int(np.log2(max(1, c)) * 2)}"
                      for a, b, c in zip(d.M, d.N, d.K)]
            rows += validated(part, label, family, gpu, "half-octave M×N×K cells", groups, 4)[:1]
            trained = family.train(np.arange(len(d)))
            golden(family, trained)
            if name == "linear":
                trained_linear, bounds = trained, family.bounds
                members.append((family, trained[1]))
                sections.append((f"gemm.f32 {scope}", f"op_fp32_forward/linear {gpu}",
                                 only(trained[0], F32, "occupancy", "max_area", "min_side", "tiles"), bounds, trained[2]))
            else:
                sections.append((f"gemm.f32.batched {scope}", f"op_fp32_forward/bmm {gpu}",
                                 only(trained[0], F32, "occupancy", "max_area", "min_side", "tiles"), family.bounds, trained[2]))
    rows += leave_gpus_out("A whole GPU left out", "linear fp32", "gemm", members, F32, F32_BASE, (F32_BASE,))
    # P4, T4 and P100 are held back by power or age; a part nobody measured is more like the last two.
    generic = jointly("gemm", members[3:], F32, F32_BASE, (F32_BASE,))
    sections.insert(0, ("gemm.f32", "", only(generic, F32, "occupancy", "max_area", "min_side"), (0.65, 1.45, 0.55, 1.6), None))
    return sections, rows


def memory_fp32(folder, chips):
    sections, rows = [], []
    part = "Memory-bound, fp32"
    sweeps = (("pointwise", "pointwise", ("add", "mul", "div", "addu", "mulu", "relu", "tanh", "gelu"), FLAT),
              ("layer_norm_forward", "layer norm", ("ln",), ROWS), ("softmax_forward", "softmax", ("softmax",), ROWS))
    for section, label, names, free in sweeps:
        members = []
        for gpu, scope in (("p4", "pascal-6.1"), ("p100", "pascal-6.0"), ("t4", "turing"), ("v100-pcie-32gb", "volta"),
                           ("a100-40gb-pcie", "a100-40gb-pcie")):
            parts = []
            for n in names:
                d = data.fp32(folder, n)
                d = d[d.gpu == gpu]
                if len(names) > 1:
                    d = d.iloc[::3]
                    # Each op has its own launch cost: take it off here, by its shortest calls.
                    least = float(d.ns.quantile(0.01))
                    d = d[d.ns > 1.6 * least].copy()
                    d["ns"] = d.ns - 0.45 * least
                parts.append(d)
            d = pd.concat(parts, ignore_index=True)
            if len(names) > 1:
                family = Family("memory", chips[gpu], d, {**free, "floor_ns": (500, 25000)}, {}, MEMORY_STARTS, trees=0)
            else:
                family = Family("memory", chips[gpu], d, free, {"floor_ns": 2500}, MEMORY_STARTS, trees=40, overhead=True)
            rows += validated(part, label + " fp32", family, gpu, "whole shapes", d.shape_group.values, 4)[:1]
            rows += larger(part, label + " fp32", family, gpu)
            trained = family.train(np.arange(len(d)))
            params = only(trained[0], free)
            params["floor_ns"] = 2500.0
            sections.append((f"memory.{section} {scope}", f"op_fp32_forward/{'+'.join(names)} {gpu}", params, family.bounds,
                             trained[2]))
            members.append((family, trained[1]))
        rows += leave_gpus_out("A whole GPU left out", label + " fp32", "memory", members, free, {}, (dict(dram_efficiency=0.85, instructions=30.0 if free["instructions"][1] > 3 else 1.0),))
    return sections, rows


def larger(part, label, family, gpu):
    """Fit on the smaller three quarters, predict the largest quarter: does the physics carry?"""
    order = np.argsort(family.ns, kind="stable")
    if family.overhead:  # of those whose kernel outlasts its launch
        order = order[family.ns[order] > 1.5 * np.quantile(family.ns, 0.02)]
    cut = int(0.75 * len(order))
    trained = family.train(np.sort(order[:cut]))
    test = order[cut:]
    predicted = family.predict(trained, test)
    use = family.ns[test] >= SHORT_NS
    return [result(part, label, gpu, "the largest quarter", family.ns[test][use], predicted[use])]


def memory_fp16(folder, chips):
    table = data.memory_fp16(folder)
    # phi-2 runs other kernels under the same names (layer norm, partial rotary, two additions).
    table = table[table.model != "microsoft/phi-2"]
    sections, rows = [], []
    part = "Memory-bound, fp16"
    sweeps = (("add", ("add",), "pointwise", "", FLAT), ("silu·mul (vLLM)", ("mlp_act",), "vllm_silu_and_mul", "vllm::silu_and_mul", ISSUED),
              ("rotary (vLLM)", ("attn_rope",), "vllm_rotary", "vllm::rotary", ISSUED),
              ("embedding (vLLM)", ("emb",), "vllm_embedding", "vllm::embedding", ISSUED),
              ("rms norm (vLLM)", ("input_layernorm", "post_attention_layernorm"), "vllm_rms_norm", "vllm::rms_norm", {**ROWS, **ISSUED}))
    for label, ops, section, name, own in sweeps:
        shared = own if section == "pointwise" else {k: CARRIED.get(k, v) for k, v in own.items()}
        members = []
        for gpu, scope in (("a100-80gb-sxm", "ampere-8.0"), ("a40", "ampere-8.6"), ("h100-sxm", "hopper")):
            d = table[(table.gpu == gpu) & table.op.isin(ops) & (table.ns >= 6000)]
            d = d.groupby(["model", "text"], sort=True).ns.median().reset_index()
            free = STREAM if section == "pointwise" and gpu != "a40" else own
            family = Family("memory", chips[gpu], d, free, {}, MEMORY_STARTS, trees=40, leaves=8, bound=0.25, name=name, rounds=4)
            rows += validated(part, label, family, gpu, "whole models", d.model.values)
            rows += larger(part, label, family, gpu)
            trained = family.train(np.arange(len(d)))
            golden(family, trained)
            sections.append((f"memory.{section} {scope}", f"memory_bound_fp16/{'+'.join(ops)} {gpu}",
                             only(trained[0], free), family.bounds, trained[2]))
            members.append((family, trained[1]))
        rows += leave_gpus_out("A whole GPU left out", label + " fp16", "memory", members, shared, {}, (dict(dram_efficiency=0.85, instructions=30.0 if shared["instructions"][1] > 3 else 1.0),))
        generic = jointly("memory", members, shared, {}, MEMORY_STARTS)
        if section.startswith("vllm"):
            sections.append((f"memory.{section}", "", only(generic, shared), (0.8, 1.25), None))
    return sections, rows


ATTENTION = dict(floor_ns=(2000, 8000), forward=(0.1, 1.1), backward=(0.1, 1.1), head64=(0.5, 1.2), head256=(0.5, 1.3),
                 causal=(0.7, 1.15), start=(0, 900), start_backward=(0, 1500), tail=(0, 1), mask=(0, 2))


class AttentionSweep(Family):
    """Forward alone or forward and backward together, as the charts give them."""

    def __init__(self, chip, table, free, base, kernel, ratio=None):
        # Where only the sum of both directions was measured, the ratio of their rates comes from another GPU.
        self.ratio = ratio

        def text(r, direction):
            return (f"attention batch={r.batch} heads={r.n_heads} kv_heads={r.n_heads} seq_q={r.seqlen} seq_k={r.seqlen} "
                    f"head_dim={r.head_dim} dtype=f16 causal={r.causal} direction={direction} kernel={kernel}")
        table = table.assign(text=[text(r, "forward") for r in table.itertuples()])
        super().__init__("attention", chip, table, free, base, (base,), trees=0, rounds=6)
        self.back = [text(r, "backward") for r in table.itertuples()]
        self.both = (table["mode"] == "fwd_bwd").values.astype(float)
        self.back_ops = shipped.Ops(self.back)

    def tied(self, params):
        if not self.ratio:
            return params
        return {**params, "backward": float(f"{params['forward'] * self.ratio[0]:.6g}"),
                "start_backward": float(f"{params['start'] * self.ratio[1]:.6g}")}

    def times(self, params, rows=None):
        params = self.tied(params)
        ns = shipped.evaluate("attention", self.chip, self.ops, params)
        ns = ns + self.both * shipped.evaluate("attention", self.chip, self.back_ops, params)
        return ns if rows is None else ns[rows]

    def physics(self, rows, quick=False):
        return search.fit(lambda p, _: self.times(p, rows), self.ns[rows], self.base, self.free, self.starts, self.rounds)

    def predict(self, trained, rows=None, kernel_only=False, **_):
        if kernel_only:  # the forward kernel alone
            return shipped.evaluate("attention", self.chip, self.ops, trained[0])[rows]
        return self.times(trained[0], rows)


def attention(folder, chips):
    table = data.attention(folder)
    sections, rows = [], []
    part = "Attention"
    ratio = None
    for gpu, scope, impl, section in (("h100-sxm", "hopper", "flash2", "flash2"), ("a100-80gb-sxm", "ampere", "flash2", "flash2"),
                                      ("h100-sxm", "hopper", "flash3", "flash3"), ("h100-sxm", "hopper", "cudnn", "cudnn"),
                                      ("a100-80gb-sxm", "ampere", "xformers", "memory_efficient")):
        d = table[(table.gpu == gpu) & (table.impl == impl)].reset_index(drop=True)
        free = dict(ATTENTION)
        base = dict(floor_ns=5000, forward=0.5, backward=0.4)
        if (d["mode"] == "fwd").all():
            for key in ("backward", "start_backward"):
                free.pop(key)
        if not (d["mode"] == "fwd").any():
            # Only the sum is known: keep the split of the other GPU's fit.
            for key in ("head256", "backward", "start_backward"):
                free.pop(key)
            base["head256"] = 0.95
        family = AttentionSweep(chips[gpu], d, free, base, section, None if (d["mode"] == "fwd").any() else ratio)
        rows += validated(part, f"attention {impl}", family, gpu, "sequence lengths", d.seqlen.values, 6)[:1]
        params, _, _ = family.physics(np.arange(len(d)))
        if impl == "flash2" and gpu == "h100-sxm":
            ratio = (params["backward"] / params["forward"], 1.4)  # of the start: assumed
        if "backward" not in free:
            family.ratio = ratio
            params = family.tied(params)
            free["backward"] = free["start_backward"] = None
        golden(family, (params, [], None))
        sections.append((f"attention.{section} {scope}", f"attention {impl} {gpu}", only(params, free, "head256"),
                         family.bounds, None))
    return sections, rows


CONV = dict(forward=(0.2, 1.5), fused=(0.1, 1.5), staged=(0.1, 1.5), stages=(0.1, 1.5), hide=(0, 3), floor_ns=(2000, 40000))


def batched(fitted, scope):
    """What C++ has for the f32 products of a convolution: the batched products' parameters."""
    return {**F32_BASE, **fitted.get(f"gemm.f32 {scope}", {}), **fitted.get(f"gemm.f32.batched {scope}", {})}


def conv_plain(folder, chips, gemm_sections=None):
    table = data.fp32(folder, "conv")
    sections, rows = [], []
    fitted = {name: params for name, _, params, _, _ in gemm_sections or []}
    for gpu, scope in (("p4", "p4"), ("p100", "p100"), ("t4", "t4"), ("v100-pcie-32gb", "volta"),
                       ("a100-80gb-pcie", "ampere-8.0")):
        d = data.without_drift(table[table.gpu == gpu])
        family = Family("conv", chips[gpu], d, CONV, {}, trees=150, leaves=31, bound=1.0, overhead=True, ranged=4, limit=500,
                        others=dict(gemm=batched(fitted, scope), memory={}))
        groups = [f"{int(2 * np.log2(a))}.{int(2 * np.log2(b))}.{int(2 * np.log2(c))}"
                  for a, b, c in zip(d.Input_Channel, d.Output_Channel, d.Input_Size)]
        rows += validated("Convolution, fp32 forward", "conv 3×3 fp32", family, gpu, "half-octave C×K×size cells", groups, 4)[:1]
        trained = family.train(np.arange(len(d)))
        params = only(trained[0], CONV)
        params["floor_ns"] = min(params["floor_ns"], 6000.0)
        sections.append((f"conv.f32 {scope}", f"op_fp32_forward/conv {gpu}", params, family.bounds, trained[2]))
    return sections, rows


DIRECTIONS = dict(forward=(0.3, 1.3), data_gradient=(0.2, 1.3), weight_gradient=(0.2, 1.3), pointwise=(0.4, 1.4),
                  fused=(0.3, 1.2), staged=(0.3, 1.2), strided_data=(0.15, 1.0))


def conv_directions(folder, chips, gemm_sections=None):
    """Backward convolutions against forward ones, 1×1 against 3×3: from one real training job with a tuned cuDNN."""
    d = data.conv_resnet50(folder)
    fitted = {name: params for name, _, params, _, _ in gemm_sections or []}
    family = Family("conv", chips["v100-sxm2-32gb"], d, DIRECTIONS, dict(data_gradient=0.8, weight_gradient=0.8),
                    trees=0, rounds=5, others=dict(gemm=batched(fitted, "volta"), memory={}))
    rows = validated("Convolution, fp32, in a training job", "ResNet-50 layers", family, "v100-sxm2-32gb", "every fifth layer",
                     d.text.values, 5)
    params, _, _ = family.physics(np.arange(len(d)))
    shared = only(params, DIRECTIONS)
    # Other GPUs, libraries and batches spread more than the layers of one job: as against DeepBench on 1080 Ti and Titan Xp.
    return [("conv.f32", "", shared, (0.65, 1.6, 0.55, 1.8), None)], rows


def fused_layers(folder, chips):
    """Norms of training: torch's layer norm and Liger's Triton rms norm, bf16 and fp32, five GPUs; one set for all."""
    import json
    table = data.liger(folder)
    sections, rows = [], []
    for kernel, provider, mode, kind, section in (
            ("rms_norm", "liger", "forward", "rms", "rms_norm_forward"), ("rms_norm", "liger", "backward", "rms", "rms_norm_backward"),
            ("layer_norm", "huggingface", "forward", "layer", "layer_norm_forward"),
            ("layer_norm", "huggingface", "backward", "layer", "layer_norm_backward")):
        members = []
        for gpu, d in table[(table.kernel_name == kernel) & (table.kernel_provider == provider) &
                            (table.kernel_operation_mode == mode)].groupby("gpu", sort=True):
            texts, keep = [], []
            for r in d.itertuples():
                config = json.loads(r.extra_benchmark_config_str)
                dtype = {"torch.float32": "f32", "torch.bfloat16": "bf16", "torch.float16": "f16"}[config.get("dtype", "torch.float32")]
                texts.append(f"normalization kind={kind} rows={config['M']} cols={r.x_value} dtype={dtype} direction={mode}")
                keep.append(r.ns)
            d = pd.DataFrame(dict(text=texts, ns=keep)).groupby("text", sort=True).ns.median().reset_index()
            if kind == "layer" and mode == "backward":
                # torch reduces the weights' gradients in a kernel of its own; the benchmark timed both.
                second = [t.replace("kind=layer", "kind=weight_reduction") for t in d.text]
                d["ns"] -= shipped.Models(chips[gpu], shipped.ROOT / "catalog/models")(shipped.Ops(second))[0]
            members.append((Family("memory", chips[gpu], d, {}, trees=0), [0, 0]))
        free = dict(floor_ns=(2000, 20000), dram_efficiency=(0.3, 1.0), resident=(0, 1), instructions=(0, 200), passes=(0, 1.5))
        base = dict(row_ns=0, row_element_ns=0, resident=0.2)
        if len(members) > 1:
            rows += leave_gpus_out("A whole GPU left out", f"{kernel} {mode} ({'Liger' if provider == 'liger' else 'torch'})", "memory",
                                   members, free, base, ({},), rounds=4)
        params = jointly("memory", members, free, base, ({}, dict(dram_efficiency=0.7)), rounds=5)
        ratio = np.concatenate([f.ns / shipped.evaluate("memory", f.chip, f.ops, params) for f, _ in members])
        wide = (float(np.quantile(ratio, 0.1)), float(np.quantile(ratio, 0.9)))
        sections.append((f"memory.{section}", f"op_bf16_fused_layers {kernel} {provider}", only(params, free, *base), wide, None))
    return sections, rows


STEPS = [gemm_tensor, gemm_plain, attention, conv_plain, conv_directions, memory_fp32, memory_fp16, fused_layers]
