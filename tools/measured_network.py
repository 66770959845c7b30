#!/usr/bin/env python3
"""Writes catalog/network/measured.csv from tables of measured collectives: tools/measured_network.py MEASUREMENTS_DIR

MEASUREMENTS_DIR/ops/<gpu>/nccl-*-nccl_perf.parquet: collectives of 2, 4 and 8 GPUs of one machine. `message_size`
counts elements (rows of 16-bit numbers take as long as rows of 8 bits of twice the size). 16-bit all-reduces may be
reduced in the NVSwitch, those of 8-bit integers are not. A single slow repetition is taken out (the median of three
neighbours), and a size is never faster than a smaller one (the curve that grows and is nearest). Needs the packages of
tools/fit/requirements.txt.
    --without RANKS   leave these numbers of ranks out (to see how well they are predicted)
    --judge           compare `maya net` with the tables instead of writing
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
    "l40s": ("l40s", "pcie-8xl40s"),
}
BYTES = {"half": 2, "int8": 1}
STEEPEST = 2.3  # for twice the size
KINDS = {"all_reduce": "all_reduce", "all_gather": "all_gather", "alltoall": "all_to_all"}
HEAD = """# Collectives within one machine, NCCL 2.27 and 2.29, in loops of their own: aiconfigurator (github.com/ai-dynamo/aiconfigurator, commit
# 095f58a51, Apache-2.0, NVIDIA). Written by tools/measured_network.py. Times in us, from the first size on, doubling.
# gpu,collective,where,ranks,first,us …
"""


def read(folder, gpu):
    paths = sorted((folder / "ops" / gpu).glob("nccl-*-nccl_perf.parquet"))
    if not paths:
        return None
    try:
        table = pd.read_parquet(paths[-1])
    except Exception as error:
        sys.exit(f"measured_network.py: {paths[-1]}: cannot be read ({error}); is it cut short?")
    missing = {"op_name", "nccl_dtype", "num_gpus", "message_size", "latency"} - set(table.columns)
    if missing:
        sys.exit(f"measured_network.py: {paths[-1]}: no column {', '.join(sorted(missing))}")
    table = table[table.latency > 0]
    return table.assign(bytes=table.message_size * table.nccl_dtype.map(BYTES), us=table.latency * 1e3)


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
    # Where NCCL changes its protocol, one size takes up to three times the one before; both give way until it is
    # STEEPEST.
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
            print(f"{name:14s} {KINDS[kind]:10s} {ranks} ranks: mean {100 * np.abs(error).mean():5.1f} %, below 1 MiB "
                  f"{100 * np.abs(error[~large]).mean():5.1f} %, above {100 * np.abs(error[large]).mean():5.1f} %")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("measurements", type=pathlib.Path)
    parser.add_argument("--without", type=int, nargs="*", default=[])
    parser.add_argument("--judge", action="store_true")
    parser.add_argument("--maya", default=str(ROOT / ".venv/bin/maya"))
    arguments = parser.parse_args()
    if arguments.judge:
        judge(arguments.measurements, arguments.maya)
    else:
        write(arguments.measurements, arguments.without)


if __name__ == "__main__":
    main()
