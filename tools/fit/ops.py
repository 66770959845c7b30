"""The learned models of every GPU in MEASUREMENTS/ops: files catalog/models/learned/*.forest, rows of accuracy, golden values."""
import sys
import time

import learn
import numpy as np
import tables
from family import summary

import report

# Of attention: the kernels (src/op) that the measured library stands for on a GPU, beside `any`.
KERNELS = {"ampere": ["flash2"], "ada": ["flash2"], "hopper": ["flash3"], "blackwell-10": ["flash3", "cudnn"],
           "blackwell-12": ["flash2"]}
# Rows for the fit, of the first library and of each other: more change nothing that is seen in the tables. 16-bit products are
# the exception: all there are, because what three tables agree in is the kernel, and what they do not is noise.
ROWS, OTHER_ROWS = 30000, 8000
ALL_ROWS = {"gemm.16"}
FEW_ROWS = (12000, 5000)  # of experts: a layer's rows are much alike, and there are twenty layers
OTHER_WEIGHT = 0.4  # of a row of another library than the default one
LABELS = {"gemm.16": "products, 16 bits", "gemm.8": "products, FP8", "gemm.8.block": "products, FP8 in blocks",
          "gemm.4": "products, NVFP4", "gemm.int8": "products, INT8", "gemm.weight.8": "products, 8-bit weights",
          "gemm.weight.4": "products, 4-bit weights", "attention.prefill": "attention, prefill and encoder",
          "attention.decode": "attention, decode", "mla.prefill": "MLA, prefill", "mla.decode": "MLA, decode",
          "experts.16": "MoE, 16 bits", "experts.8": "MoE, FP8", "experts.8.block": "MoE, FP8 in blocks", "experts.4": "MoE, NVFP4",
          "experts.weight.4": "MoE, 4-bit weights", "experts.mixed": "MoE, MXFP8 by MXFP4"}
LEFT_OUT = {"gemm": "layer shapes (n, k)", "attention": "head geometries", "latent": "heads and batches",
            "experts": "models"}
GOLDEN_ROWS = 4


def kernels(chip):
    for scope in (chip.scope.split(".")[0], chip.architecture):
        if scope in KERNELS:
            return ["any", *KERNELS[scope]]
    return ["any"]


def thinned(table):
    """Every k-th row of a library's too many, the same ones each time."""
    keep = np.zeros(len(table), dtype=bool)
    family = table.family.iloc[0]
    most, others = FEW_ROWS if family.startswith("experts") else (ROWS, OTHER_ROWS)
    for number, library in enumerate(tables.libraries(family)):
        rows = np.flatnonzero(table.library.values == library)
        limit = len(rows) if family in ALL_ROWS else most if number == 0 else others
        keep[rows[:: max(1, -(-len(rows) // max(1, limit)))]] = True
    return table[keep].reset_index(drop=True)


class Measured:
    """One family on one GPU, ready to fit."""

    def __init__(self, table, chip, label):
        tables.contradictions(table, label)
        self.table, self.base, self.limit, features = tables.possible(thinned(table), chip, label)
        # Libraries that have rows, in their order: the model knows only those.
        self.libraries = [x for x in tables.libraries(table.family.iloc[0]) if (self.table.library == x).any()]
        number = np.array([self.libraries.index(x) for x in self.table.library])
        self.features = np.column_stack([features, number]).astype(np.float32)
        self.ns, self.groups = self.table.ns.values, self.table.group.values
        self.target = np.log(self.ns / self.base)
        self.first = number == 0
        self.weight = np.where(self.first, 1.0, OTHER_WEIGHT)


def accuracy(part, label, gpu, left_out, judged):
    """Rows of the page: of the default library, of it above 100 µs, of all."""
    def row(name, use):
        return dict(part=part, family=name, gpu=gpu, left_out=left_out, note=None,
                    summary=summary(judged.measured[use], judged.predicted[use]), inside=float(inside[use].mean()))
    inside = judged.inside()
    default = judged.first
    rows = [row(label, default)] if default.any() else []
    long = default & (judged.measured > 1e5)
    if long.sum() >= 50:
        rows.append(row(label + ", above 100 µs", long))
    if not default.all():
        rows.append(row(label + ", other libraries", ~default))
    return rows


def launched(data):
    """What each library launches most often for the experts of this GPU: where nobody names a kernel."""
    sources = data.table.scheme.str.split(" kernel=").str[-1]
    return [sources[data.table.library == x].mode().iloc[0] for x in data.libraries]


def fit_gpu(folder, out, gpu, chip, kind):
    """Writes the file of one kind of ops on a GPU; returns rows of the page and golden rows (gpu, name, op, ns)."""
    sections, rows, golden = [], [], []
    whole = tables.READERS[kind](folder, gpu)
    for family in [] if whole is None else sorted(whole.family.unique()):
        begin = time.time()
        label = f"{chip.name} {family}"
        data = Measured(whole[whole.family == family].reset_index(drop=True), chip, label)
        if len(data.ns) < 1000 or len(set(data.groups)) < 5:
            print(f"# {label}: only {len(data.ns)} rows, no model", file=sys.stderr)
            continue
        judged = learn.Judged(data, family)
        of_family = accuracy("Tables of current libraries", LABELS[family], chip.name, LEFT_OUT[kind], judged)
        rows += of_family
        model = learn.train(data.features, data.target, family, data.weight)
        names = kernels(chip) if kind in ("attention", "latent") else launched(data) if kind == "experts" else []
        sections.append(learn.section(family, data.libraries, names, judged.steps, model, data.features.shape[1]))
        first = np.flatnonzero(data.table.library.values == data.libraries[0])
        some = first[:: max(1, len(first) // GOLDEN_ROWS)][:GOLDEN_ROWS]
        predicted = np.maximum(data.base[some] * np.exp(model.predict(data.features[some])), data.limit[some])
        golden += [(chip.name, f"{data.libraries[0]}::{data.table.scheme.iloc[i]}", data.table.text.iloc[i], ns)
                   for i, ns in zip(some, predicted)]
        print(f"# {label}: {len(data.ns)} rows, {time.time() - begin:.0f} s; " +
              "; ".join(f"{r['family']} {100 * r['summary']['mean']:.1f} %" for r in of_family), file=sys.stderr, flush=True)
    path = out / f"catalog/models/learned/{chip.scope}_{chip.name}.{kind}.forest"
    path.parent.mkdir(parents=True, exist_ok=True)
    if sections:
        path.write_bytes(learn.file(sections))
    return rows, golden


# Families that a GPU nobody measured gets from all others.
ANYWHERE = ("gemm.16", "gemm.8", "attention.prefill", "attention.decode")
SAMPLE = 3000  # rows of a table, of the default library


def sample(folder, gpu, chip):
    """{family: what is needed of some of the GPU's rows}: the default library's."""
    out = {}
    for reader in (tables.gemm, tables.attention):
        whole = reader(folder, gpu, tables.LIBRARIES[0], SAMPLE)
        for family in [f for f in sorted(whole.family.unique()) if f in ANYWHERE]:
            out[family] = Measured(whole[whole.family == family].reset_index(drop=True), chip, f"{chip.name} {family}")
    return out


def fit_any(folder, out, chips):
    """The file of GPUs nobody measured, and how it does on each GPU when that is left out."""
    samples = {chip.name: sample(folder, gpu, chip) for gpu, chip in chips.items()}
    scope = {chip.name: chip.scope for chip in chips.values()}
    sections, rows, carried = [], [], {}
    for family in ANYWHERE:
        members = {name: s[family] for name, s in samples.items() if family in s}

        def train(names):
            parts = [members[n] for n in names]
            return learn.train(np.concatenate([p.features for p in parts]), np.concatenate([p.target for p in parts]))

        spread = []
        for name, data in members.items():
            # As the estimator chooses: a part of the same architecture, else all the others.
            others = [n for n in members if n != name]
            like = [n for n in others if scope[n] == scope[name]]
            model = train(like[:1] or others)
            predicted = np.maximum(data.base * np.exp(model.predict(data.features)), data.limit)
            if like:
                carried.setdefault("attention" if family.startswith("attention") else "products", []).append(data.ns / predicted)
            else:
                spread.append((predicted, data.ns))
            rows.append(dict(part="Tables of current libraries, a whole GPU left out", family=f"{LABELS[family]}, from {like[0] if like else 'all others'}", gpu=name,
                             left_out="this whole GPU, current libraries", inside=None, note=None,
                             summary=summary(data.ns, predicted)))
            print(f"# {family} without {name}: {100 * rows[-1]['summary']['mean']:.1f} %", file=sys.stderr, flush=True)
        steps = learn.interval(*(np.concatenate(x) for x in zip(*spread)))
        sections.append(learn.section(family, tables.LIBRARIES[:1], ["any"] if family.startswith("attention") else [], steps,
                                      train(list(members)), next(iter(members.values())).features.shape[1]))
    # What a neighbour's models are worth on a GPU of the same architecture.
    wide = [(f"carried.{kind}", "", {}, tuple(np.quantile(np.concatenate(ratios), (0.1, 0.9))), None) for kind, ratios in sorted(carried.items())]
    (out / "catalog/models/fitted-carried.model").write_text(report.model_file(wide))
    (out / "catalog/models/learned").mkdir(parents=True, exist_ok=True)
    (out / "catalog/models/learned/any_gpu.all.forest").write_bytes(learn.file(sections))
    return rows
