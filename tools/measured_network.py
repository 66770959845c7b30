#!/usr/bin/env python3
"""Writes catalog/network/measured.csv from tables of measured collectives: tools/measured_network.py MEASUREMENTS_DIR

MEASUREMENTS_DIR/ops/<gpu>/nccl-*-nccl_perf.parquet: collectives of 2, 4 and 8 GPUs of one machine;
*-custom_allreduce_perf.parquet: all-reduces that inference engines have of their own. `message_size` counts elements
(rows of 16-bit numbers take as long as rows of 8 bits of twice the size). 16-bit all-reduces may be reduced in the
NVSwitch, those of 8-bit integers are not. A single slow repetition is taken out (the median of three neighbours), and a
size is never faster than a smaller one (the curve that grows and is nearest). Needs the packages of
tools/fit/requirements.txt.
    --without RANKS   leave these numbers of ranks out (to see how well they are predicted)
    --judge           compare `maya net` with the tables instead of writing
    --engines         print how well all-reduces of engines are known: 4 GPUs from 2 and 8, and every second size left out
"""

import argparse
import pathlib
import subprocess
import sys

import numpy as np
import pandas as pd

ROOT = pathlib.Path(__file__).resolve().parents[1]
GPUS = {
    "a100_sxm": ("a100-80gb-sxm", "dgx-a100"),
    "h100_sxm": ("h100-sxm", "dgx-h100"),
    "h200_sxm": ("h200-sxm", "dgx-h200"),
    "b200_sxm": ("b200-sxm", "dgx-b200"),
    "b300_sxm": ("b300-sxm", "dgx-b300"),
    "gb200": ("gb200", "gb200-nvl72"),
    "gb300": ("gb300", "gb300:8"),
    "l40s": ("l40s", "pcie-8xl40s"),
    "rtx_pro_6000_server": ("rtx-pro-6000-server", "rtx-pro-6000-server:8"),
}
ENGINES = ("vllm", "sglang", "trtllm")
BYTES = {"half": 2, "bfloat16": 2, "int8": 1}
STEEPEST = 2.3  # for twice the size
KINDS = {"all_reduce": "all_reduce", "all_gather": "all_gather", "alltoall": "all_to_all"}
HEAD = """# Collectives within one machine, NCCL 2.27 and 2.29 and all-reduces of inference engines, in loops of their own: aiconfigurator (github.com/ai-dynamo/aiconfigurator, commit
# 095f58a51, Apache-2.0, NVIDIA). Written by tools/measured_network.py. Times in us, from the first size on, doubling.
# gpu,collective,where,ranks,first,us …
"""


def read(folder, gpu, name="nccl-*-nccl_perf.parquet", dtype="nccl_dtype"):
    paths = sorted((folder / "ops" / gpu).glob(name))
    if not paths:
        return None
    try:
        table = pd.read_parquet(paths[-1])
    except Exception as error:
        sys.exit(f"measured_network.py: {paths[-1]}: cannot be read ({error}); is it cut short?")
    missing = {"op_name", dtype, "num_gpus", "message_size", "latency"} - set(table.columns)
    if missing:
        sys.exit(f"measured_network.py: {paths[-1]}: no column {', '.join(sorted(missing))}")
    table = table[table.latency > 0]
    return table.assign(bytes=table.message_size * table[dtype].map(BYTES), us=table.latency * 1e3)


def engine(folder, gpu, library):
    """An engine's own all-reduce as CUDA graphs launch it; called one by one, the host's time is in it."""
    table = read(folder, gpu, f"{library}-*-custom_allreduce_perf.parquet", "allreduce_dtype")
    return None if table is None else table[~table.kernel_source.str.contains("eager")]


def growing(us):
    """The curve nearest in logarithms that never falls (pool adjacent violators), single outliers taken out first."""
    value = np.log(us)
    if len(value) > 2:
        value[1:-1] = np.median([value[:-2], value[1:-1], value[2:]], axis=0)
    blocks = []
    for v in value:
        blocks.append([v, 1])
        while len(blocks) > 1 and blocks[-2][0] > blocks[-1][0]:
            (a, n), (b, m) = blocks[-2:]
            blocks[-2:] = [[(a * n + b * m) / (n + m), n + m]]
    value = np.concatenate([[v] * n for v, n in blocks])
    # Where NCCL changes its protocol, one size takes up to three times the one before; both give way until it is STEEPEST.
    for _ in range(200):
        excess = np.maximum(np.diff(value) - np.log(STEEPEST), 0) / 2
        if not (excess > 1e-4).any():
            break
        value[:-1] += excess
        value[1:] -= excess
        value = np.maximum.accumulate(value)
    return np.exp(value)


def curve(name, kind, where, ranks, rows):
    """A line of the file; sizes that are missing between two are drawn on a line of logarithms."""
    each = rows.groupby("bytes").us.apply(lambda x: float(np.exp(np.log(x).mean()))).sort_index()
    first, last = int(each.index[0]), int(each.index[-1])
    sizes = [first << i for i in range(64) if first << i <= last]
    us = np.exp(np.interp(np.log(sizes), np.log(each.index.values.astype(float)), np.log(each.values)))
    return f"{name},{KINDS[kind]},{where},{ranks},{first}," + " ".join(f"{x:.2f}" for x in growing(us))


def write(folder, without):
    lines = []
    for gpu, (name, _) in GPUS.items():
        table = read(folder, gpu)
        for kind in KINDS if table is not None else ():
            for ranks, rows in table[table.op_name == kind].groupby("num_gpus"):
                if ranks in without:
                    continue
                if kind == "all_reduce":
                    for where, dtype in (("switch", "half"), ("ring", "int8")):
                        lines.append(curve(name, kind, where, ranks, rows[rows.nccl_dtype == dtype]))
                else:
                    lines.append(curve(name, kind, "any", ranks, rows))
        for library in ENGINES:
            table = engine(folder, gpu, library)
            for ranks, rows in table.groupby("num_gpus") if table is not None else ():
                if ranks not in without:
                    lines.append(curve(name, "all_reduce", library, ranks, rows))
    (ROOT / "catalog/network/measured.csv").write_text(HEAD + "\n".join(lines) + "\n")


def judge(folder, maya):
    for gpu, (name, cluster) in GPUS.items():
        table = read(folder, gpu)
        if table is None:
            continue
        for (kind, ranks), rows in table[table.nccl_dtype == "half"].groupby(["op_name", "num_gpus"]):
            done = subprocess.run(
                [maya, "net", cluster, KINDS[kind], f"{rows.bytes.min()}..{rows.bytes.max()}", "--ranks", str(ranks)],
                capture_output=True,
                text=True,
                check=True,
            )
            says = {int(w[0]): float(w[1]) for w in map(str.split, done.stdout.splitlines()) if w and w[0].isdigit()}
            error = np.array([says[b] / us - 1 for b, us in zip(rows.bytes, rows.us)])
            large = rows.bytes.values >= 1 << 20
            print(
                f"{name:14s} {KINDS[kind]:10s} {ranks} ranks: mean {100 * np.abs(error).mean():5.1f} %, below 1 MiB "
                f"{100 * np.abs(error[~large]).mean():5.1f} %, above {100 * np.abs(error[large]).mean():5.1f} %"
            )


def times(rows):
    """The curve that would be written of these rows, as a function of bytes."""
    first, us = curve("", "all_reduce", "", 2, rows).split(",")[4:]
    us = np.array(us.split(), dtype=float)
    sizes = float(first) * 2.0 ** np.arange(len(us))
    return lambda at: np.exp(np.interp(np.log(at), np.log(sizes), np.log(us)))


def error(predicted, rows):
    return float(np.abs(predicted / rows.us.values - 1).mean())


def engines(folder):
    print(
        "| GPU | "
        + " | ".join(f"{x}, 4 GPUs | {x}, sizes" for x in ENGINES)
        + " |\n|---"
        + "|--:" * 2 * len(ENGINES)
        + "|"
    )
    for gpu, (name, _) in GPUS.items():
        cells = []
        for library in ENGINES:
            by = dict(list(engine(folder, gpu, library).sort_values("bytes").groupby("num_gpus")))
            cells.append("–")
            if {2, 4, 8} <= set(by):
                at = by[4].bytes.values
                cells[-1] = f"{100 * error(np.sqrt(times(by[2])(at) * times(by[8])(at)), by[4]):.1f} %"
            left = []
            for rows in by.values():
                kept = np.unique(rows.bytes)[::2]
                out = rows[~rows.bytes.isin(kept) & (rows.bytes < kept[-1])]
                left.append((error(times(rows[rows.bytes.isin(kept)])(out.bytes.values), out), len(out)))
            cells.append(f"{100 * np.average([e for e, _ in left], weights=[n for _, n in left]):.1f} %")
        print(f"| {name} | " + " | ".join(cells) + " |")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("measurements", type=pathlib.Path)
    parser.add_argument("--without", type=int, nargs="*", default=[])
    parser.add_argument("--judge", action="store_true")
    parser.add_argument("--engines", action="store_true")
    parser.add_argument("--maya", default=str(ROOT / ".venv/bin/maya"))
    arguments = parser.parse_args()
    if arguments.engines:
        engines(arguments.measurements)
    elif arguments.judge:
        judge(arguments.measurements, arguments.maya)
    else:
        write(arguments.measurements, arguments.without)


if __name__ == "__main__":
    main()
