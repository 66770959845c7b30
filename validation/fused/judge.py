"""Compares the tables that run.py kept with the measured ones.

    python validation/fused/judge.py --measured op_bf16_fused_layers.csv.gz OUT [--half look]
"""

import argparse
import collections
import csv
import gzip
import json
import math
import pathlib
import statistics

HERE = pathlib.Path(__file__).resolve().parent
KEYS = ("kernel_provider", "kernel_operation_mode", "metric_name", "x_name", "x_value")


def same_config(a, b):
    """Scripts of later releases say more about a run; what both say has to agree."""
    a, b = (json.loads(text) if text else {} for text in (a, b))
    return all(a[key] == b[key] for key in set(a) & set(b) if key not in ("mode", "sweep_dim", "dtype")
               or (key == "dtype" and str(a[key]) == str(b[key])))


def rows(path):
    opener = gzip.open if str(path).endswith(".gz") else open
    with opener(path, "rt") as file:
        return list(csv.DictReader(file))


def pairs(case, measured, folder):
    path = folder / f"{case['kernel']}-{case['gpu']}.csv"
    if not path.exists():
        return
    found = collections.defaultdict(list)
    for row in rows(path):
        if row["kernel_name"] == case["kernel"]:
            found[tuple(row[key] for key in KEYS)].append(row)
    for row in measured:
        for other in found[tuple(row[key] for key in KEYS)]:
            if same_config(row["extra_benchmark_config_str"], other["extra_benchmark_config_str"]):
                yield row, float(row["y_value_50"]), float(other["y_value_50"])
                break


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--measured", type=pathlib.Path, required=True)
    parser.add_argument("--half", default="both", choices=("look", "proof", "both"))
    parser.add_argument("--rows", action="store_true", help="every row")
    parser.add_argument("--least-ms", type=float, default=0.0, help="only rows that took longer")
    parser.add_argument("folder", type=pathlib.Path)
    options = parser.parse_args()
    names = {"a100-80gb-sxm": "NVIDIA A100-SXM4-80GB", "h100-sxm": "NVIDIA H100 80GB HBM3",
             "h100-pcie": "NVIDIA H100 PCIe", "b200-sxm": "NVIDIA B200", "rtx3090": "NVIDIA GeForce RTX 3090",
             "rtx4090": "NVIDIA GeForce RTX 4090"}
    everything = rows(options.measured)
    total = collections.defaultdict(list)
    print("| kernel | GPU | half | provider | rows | mean error | bias | least | most | memory, worst |")
    print("|---|---|---|---|--:|--:|--:|--:|--:|--:|")
    for case in rows(HERE / "cases.csv"):
        if options.half not in ("both", case["half"]):
            continue
        measured = [row for row in everything if row["kernel_name"] == case["kernel"]
                    and row["gpu_name"] == names[case["gpu"]] and row["liger_version"] == case["measured_version"]]
        speed, memory = collections.defaultdict(list), collections.defaultdict(list)
        for row, was, said in pairs(case, measured, options.folder):
            if not (was > 0 and said > 0 and math.isfinite(was * said)):
                continue
            if row["metric_name"] == "memory":
                memory[row["kernel_provider"]].append(said / was - 1)
            elif was >= options.least_ms:
                speed[row["kernel_provider"]].append(said / was - 1)
                if options.rows:
                    print(f"    {row['kernel_provider']} {row['kernel_operation_mode']} {row['x_name']}="
                          f"{row['x_value']}: {was:.4f} ms measured, {said:.4f} ms, {100 * (said / was - 1):+.0f} %")
        for provider, errors in sorted(speed.items()):
            kind = "eager" if provider in ("torch", "huggingface") else "Triton"
            total[kind, case["half"]] += errors
            worst = max(memory[provider], key=abs, default=None)
            print(f"| {case['kernel']} | {case['gpu']} | {case['half']} | {provider} | {len(errors)} | "
                  f"{100 * statistics.mean(map(abs, errors)):.0f} % | {100 * statistics.mean(errors):+.0f} % | "
                  f"{100 * min(errors):+.0f} % | {100 * max(errors):+.0f} % | "
                  f"{'–' if worst is None else f'{100 * worst:+.1f} %'} |")
    for (kind, half), errors in sorted(total.items()):
        print(f"{kind}, {half}: {len(errors)} rows, mean {100 * statistics.mean(map(abs, errors)):.1f} %, "
              f"median {100 * statistics.median(map(abs, errors)):.1f} %, bias {100 * statistics.mean(errors):+.1f} %")


if __name__ == "__main__":
    main()
