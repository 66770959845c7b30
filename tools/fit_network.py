#!/usr/bin/env python3
"""Fits the time.* numbers of catalog/network to published NCCL measurements.

    fit_network.py --points BUILD/bin/maya_network_points --data FOLDER [--write] [--report FILE]

A file "@cluster" is a key of that cluster's own description; "+harness" is not of the model: it is what
a way of measuring adds to every call (events and a synchronization around each one, instead of the
average over many in a row), so that sweeps of different harnesses can be used together.

The model is not repeated here: the program maya_network_points evaluates it for numbers that this
script proposes (coordinate descent in the logarithm, mean absolute log error). Whole systems are left
out in turn to show how the model carries over to a machine it has not seen; then everything is
fitted and written. Standard library only.
"""
import argparse
import collections
import csv
import gzip
import math
import os
import statistics
import subprocess

MIB = 1 << 20
GLOBAL = "nccl"
# file of catalog/network, key, start, lowest, highest
PARAMETERS = [
    (GLOBAL, "time.start_us", 8.0, 2, 20),
    (GLOBAL, "time.latency.nvlink", 1.0, 0.3, 4),
    (GLOBAL, "time.latency.pci", 1.0, 0.3, 4),
    (GLOBAL, "time.pcie_efficiency", 0.76, 0.5, 0.95),
    (GLOBAL, "time.fill_bytes.tree", 3e7, 1e4, 3e8),
    (GLOBAL, "time.fill_half_bytes.tree", 3e7, 1e6, 3e8),
    (GLOBAL, "time.fill_bytes.nvls_tree", 6e7, 1e5, 6e8),
    (GLOBAL, "time.fill_half_bytes.nvls_tree", 3e7, 1e6, 3e8),
    (GLOBAL, "time.p2p.start_us", 7.0, 2, 30),
    (GLOBAL, "time.p2p.fill_bytes", 1e6, 1e3, 2e7),
    (GLOBAL, "time.p2p.half_bytes", 2e6, 1e5, 5e7),
    ("gpu-ampere", "time.efficiency.ring_simple", 1.0, 0.6, 1.15),
    ("gpu-ampere", "time.efficiency.ring_ll", 1.0, 0.2, 2),
    ("gpu-ampere", "time.efficiency.ring_ll128", 0.9, 0.2, 2),
    ("gpu-ampere", "time.efficiency.tree_ll", 1.0, 0.2, 2),
    ("gpu-ampere", "time.efficiency.tree_ll128", 1.0, 0.2, 2),
    ("gpu-ampere", "time.efficiency.tree_simple", 1.0, 0.4, 1.3),
    ("gpu-ampere", "time.fill_bytes.ring", 3e7, 1e5, 3e8),
    ("gpu-ampere", "time.fill_half_bytes.ring", 3e7, 1e6, 3e8),
    ("gpu-ampere", "time.p2p.nvlink_efficiency", 0.82, 0.5, 1),
    ("gpu-hopper", "time.efficiency.ring_simple", 1.0, 0.6, 1.15),
    ("gpu-hopper", "time.efficiency.ring_ll", 1.0, 0.2, 2),
    ("gpu-hopper", "time.efficiency.ring_ll128", 0.9, 0.2, 2),
    ("gpu-hopper", "time.efficiency.tree_ll", 1.0, 0.2, 2),
    ("gpu-hopper", "time.efficiency.tree_ll128", 1.0, 0.2, 2),
    ("gpu-hopper", "time.efficiency.nvls", 0.82, 0.4, 1),
    ("gpu-hopper", "time.efficiency.nvls_tree", 0.79, 0.4, 1),
    ("gpu-hopper", "time.fill_bytes.ring", 3e7, 1e5, 3e8),
    ("gpu-hopper", "time.fill_half_bytes.ring", 3e7, 1e6, 3e8),
    ("gpu-hopper", "time.fill_bytes.nvls", 2e7, 1e5, 3e8),
    ("gpu-hopper", "time.fill_half_bytes.nvls", 1e7, 1e6, 3e8),
    ("gpu-hopper", "time.latency.nvls_us", 14.0, 1, 40),
    ("gpu-hopper", "time.p2p.nvlink_efficiency", 0.82, 0.5, 1),
    ("gpu-blackwell", "time.efficiency.nvls_wide", 0.60, 0.4, 1),
    ("gpu-blackwell", "time.efficiency.nvls_tree", 0.58, 0.4, 1),
    ("gpu-blackwell", "time.fill_bytes.nvls_wide", 2.9e8, 1e5, 1e9),
    (GLOBAL, "time.latency.net", 1.0, 0.3, 4),
    (GLOBAL, "time.short_ring", 0.6, 0.1, 1.5),
    ("@p4de", "network.nic_latency_us", 30.0, 2, 100),
    ("@p5", "network.nic_latency_us", 12.0, 2, 100),
    ("+ml-engineering", "us", 15.0, 0.1, 40),
    ("+Vidur", "us", 3.0, 0.1, 40),
    ("fabric-efa", "time.nic_efficiency", 0.84, 0.5, 1),
    ("fabric-infiniband", "time.p2p.nic_efficiency", 0.8, 0.4, 1),
    ("fabric-infiniband", "time.efficiency.collnet", 0.85, 0.3, 1.2),
]
ARCHITECTURE = {"dgx-a100": "ampere", "p4de": "ampere", "coreweave-a100-hdr": "ampere",
                "pcie-4xa100-nvlink-pairs": "ampere", "pcie-8xa40": "ampere"}

Point = collections.namedtuple("Point", "system spec environment kind ranks stride bytes us")


def published(folder):
    """nccl-tests runs, by the table's own columns."""
    points = []
    for row in csv.DictReader(gzip.open(os.path.join(folder, "nccl_tests.csv.gz"), "rt")):
        gpu, n, nodes = row["gpu"], int(row["n_gpus"]), int(row["nodes"])
        environment = "NCCL_NVLS_ENABLE=0" if "NVLS_ENABLE=0" in row["note"] else ""
        if gpu.startswith("H100 80GB"):
            system, spec = "8xH100 (dgxc)", "dgx-h100"
        elif gpu.startswith("H200"):
            system, spec = "8xH200 (ml-engineering)", "hgx-h200"
        elif gpu.startswith("A100 (8x"):
            system, spec = "8xA100 of ml-engineering", "dgx-a100"
        elif "p4de" in gpu:
            system, spec = "2xp4de EFA", "p4de:2"
        elif "p5" in gpu:
            system, spec = "2xp5 EFA", "p5:2"
        elif gpu == "GB200":
            system, spec = "GB200 NVL72", "gb200-nvl72:%d" % nodes
        elif gpu.startswith("A100-SXM4"):
            system, spec, environment = "4x8 A100 HDR SHARP", "coreweave-a100-hdr:4", "NCCL_COLLNET_ENABLE=1"
        else:
            continue  # hardware not named
        points.append(Point(system, spec, environment, row["collective"], n, 1, int(row["bytes"]),
                            float(row["time_us"])))
    return points


def vidur(folder):
    """Dense sweeps: the median of the nearest sizes around each power of two."""
    points = []
    files = [("a100_dgx", "dgx-a100", "A100 DGX (Vidur)"), ("h100_dgx", "dgx-h100", "H100 DGX (Vidur)"),
             ("a100_pairwise_nvlink", "pcie-4xa100-nvlink-pairs", "A100 NVLink pairs (Vidur)"),
             ("h100_pairwise_nvlink", "pcie-4xh100-nvlink-pairs", "H100 NVLink pairs (Vidur)")]
    for name, spec, system in files:
        for kind in ("all_reduce", "send_recv"):
            path = os.path.join(folder, "%s_%s.csv.gz" % (name, kind))
            if not os.path.exists(path) or (kind == "send_recv" and "pair" in name):
                continue  # the two files of pairs are one file
            sweeps = collections.defaultdict(list)
            for row in csv.DictReader(gzip.open(path, "rt")):
                workers, here = int(row["num_workers"]), int(row["devices_per_node"])
                if workers != here:
                    continue  # crosses a network nobody describes
                sweeps[workers].append((int(row["size"]),
                                        float(row["time_stats.%s.median" % kind]) * 1e3))
            for workers, sweep in sweeps.items():
                size = 4 * MIB  # below, the rows jump between 7 and 60 us: ranks that start late
                while size <= max(s for s, _ in sweep):
                    near = sorted(sweep, key=lambda p: abs(p[0] - size))[:7]
                    near = [p for p in near if abs(p[0] - size) <= 0.15 * size] or near[:1]
                    us = statistics.median(t * size / s if size > 8 * MIB else t for s, t in near)
                    points.append(Point(system, spec, "", kind, workers, 1, size, us))
                    size *= 2
    return points


def insitu(folder):
    """Kernels inside a training job wait for their peers: only the shortest of each size counts."""
    best = {}
    bytes_of = {"BFloat16": 2, "Float": 4}
    kinds = {"_reduce_scatter_base": "reduce_scatter", "_allgather_base": "all_gather"}
    for row in csv.DictReader(gzip.open(os.path.join(folder, "insitu_nccl_8xH100.csv.gz"), "rt")):
        if row["collective"] not in kinds or row["dtype"] not in bytes_of:
            continue
        size = max(int(row["in_nelems"]), int(row["out_nelems"])) * bytes_of[row["dtype"]]
        if size < MIB:
            continue
        key = (kinds[row["collective"]], size)
        best[key] = min(best.get(key, 1e12), float(row["dur_us"]))
    return [Point("8xH100 in a job (modded-nanogpt)", "dgx-h100", "", kind, 8, 1, size, us)
            for (kind, size), us in best.items()]


def harness(point):
    name = point.system
    return name[name.index("(") + 1:-1] if "(" in name else "nccl-tests"


def extra(path):
    """Further sweeps, one line each: system,spec,collective,ranks,bytes,microseconds."""
    return [Point(r[0], r[1], "", r[2], int(r[3]), 1, int(r[4]), float(r[5])) for r in csv.reader(open(path))]


class Model:
    def __init__(self, program):
        self.pipe = subprocess.Popen([program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def times(self, points, numbers):
        lines, last = [], None
        for p in points:
            head = (p.spec, p.environment)
            if head != last:
                name = p.spec.split(":")[0]
                arch = ARCHITECTURE.get(name, "blackwell" if "gb200" in name else "hopper")
                fabric = "efa" if name in ("p4de", "p5") else "infiniband"
                files = (GLOBAL, "gpu-" + arch, "fabric-" + fabric, "@" + name)
                sets = " ".join("%s%s=%.9g" % ("" if file[0] == "@" else "network.model.", key, v)
                                for (file, key), v in numbers.items() if file in files)
                lines.append("environment " + p.environment)
                lines.append("cluster %s %s" % (p.spec, sets))
                last = head
            lines.append("point %s %d %d %d" % (p.kind, p.ranks, p.stride, p.bytes))
        self.pipe.stdin.write("\n".join(lines) + "\n")
        self.pipe.stdin.flush()
        answers = [self.pipe.stdout.readline().split() for _ in points]
        return [(float(a[0]) + numbers.get(("+" + harness(p), "us"), 0), a[1], a[2])
                for p, a in zip(points, answers)]


def in_band(p):
    return MIB <= p.bytes <= 4096 * MIB


def loss(points, times):
    """Every system counts the same; the latency range, where runs of one machine differ by half,
    counts less."""
    sums = collections.defaultdict(lambda: [0.0, 0.0])
    for p, (us, _, _) in zip(points, times):
        weight = 1.0 if p.bytes >= MIB else 0.3
        error = min(abs(math.log(us / p.us)), 0.5)  # a jittered row must not rule
        sums[p.system][0] += weight * error
        sums[p.system][1] += weight
    return statistics.mean(s / w for s, w in sums.values())


def held(numbers):
    """What few points say little about stays near what is known without them: a factor of two costs
    0.2 points of error."""
    return 0.004 * sum(math.log(numbers[(file, key)] / start) ** 2 for file, key, start, _, _ in PARAMETERS
                       if "bytes" not in key and file[0] != "+")


def fit(model, points, rounds):
    numbers = {(file, key): start for file, key, start, _, _ in PARAMETERS}

    def value_of(trial):
        return loss(points, model.times(points, trial)) + held(trial)

    best = value_of(numbers)
    step = {(file, key): 0.25 for file, key, *_ in PARAMETERS}
    for _ in range(rounds):
        for file, key, _, low, high in PARAMETERS:
            name = (file, key)
            for sign in (1, -1):
                trial = dict(numbers)
                trial[name] = min(high, max(low, numbers[name] * math.exp(sign * step[name])))
                if trial[name] == numbers[name]:
                    continue
                value = value_of(trial)
                if value < best - 1e-7:
                    numbers, best = trial, value
                    step[name] *= 1.3
                    break
            else:
                step[name] *= 0.5
    return numbers, best


def error(points, times, wanted):
    errors = [abs(t[0] / p.us - 1) for p, t in zip(points, times) if wanted(p)]
    return (100 * statistics.mean(errors), len(errors)) if errors else (None, 0)


COLUMNS = [
    ("all-reduce 1 MiB-4 GiB", lambda p: p.kind == "all_reduce" and in_band(p)),
    ("all-reduce below", lambda p: p.kind == "all_reduce" and p.bytes < MIB),
    ("all-gather, reduce-scatter", lambda p: p.kind in ("all_gather", "reduce_scatter") and p.bytes >= MIB),
    ("send-receive 1 MiB up", lambda p: p.kind == "send_recv" and p.bytes >= MIB),
]


def row(name, points, times):
    cells = []
    for _, wanted in COLUMNS:
        value, count = error(points, times, wanted)
        cells.append("%.1f (%d)" % (value, count) if count else "")
    return "| %s | %s |" % (name, " | ".join(cells))


def write(numbers, folder):
    """Puts the numbers into the files between the marks, leaving everything else."""
    by_file = collections.defaultdict(list)
    for (file, key), value in numbers.items():
        by_file[file].append((key, value))
    for file, pairs in by_file.items():
        if file[0] == "+":
            continue
        path = os.path.join(folder, file + ".toml")
        if file[0] == "@":
            path = os.path.join(folder, "..", "clusters", file[1:] + ".toml")
        lines = open(path).read().split("\n")
        for key, value in pairs:
            lines = replace(lines, key, "%.4g" % value)
        open(path, "w").write("\n".join(lines))


def replace(lines, key, value):
    """The line of a dotted key in a TOML file that has tables and dotted keys; appended if new."""
    table = ""
    for i, line in enumerate(lines):
        text = line.split("#")[0].strip()
        if text.startswith("["):
            table = text.strip("[]") + "."
        elif "=" in text and table + text.split("=")[0].strip() == key:
            name = line.split("=")[0]
            comment = "  #" + line.split("#", 1)[1] if "#" in line else ""
            lines[i] = "%s= %s%s" % (name, value, comment)
            return lines
    head, _, last = key.rpartition(".")
    text = "[%s]" % head
    marks = [i for i, line in enumerate(lines) if line.split("#")[0].strip() == text]
    if marks:
        lines.insert(marks[0] + 1, "%s = %s" % (last, value))
        return lines
    while lines and not lines[-1].strip():
        lines.pop()
    return lines + ["", text, "%s = %s" % (last, value), ""]


def write_errors(path, points, times, numbers):
    """What validation/network keeps: the harness's own part is taken off both sides."""
    with open(path, "w") as out:
        out.write("system,cluster,environment,collective,ranks,bytes,predicted_us,ratio\n")
        for p, (us, _, _) in zip(points, times):
            extra_us = numbers.get(("+" + harness(p), "us"), 0)
            out.write("%s,%s,%s,%s,%d,%d,%.4g,%.4f\n" % (
                p.system, p.spec, p.environment, p.kind, p.ranks, p.bytes, us - extra_us,
                (us - extra_us) / max(1.0, p.us - extra_us)))


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--points", required=True, help="the program maya_network_points")
    parser.add_argument("--data", required=True, help="folder with the measurements")
    parser.add_argument("--extra", help="CSV with further sweeps")
    parser.add_argument("--catalog", default=os.path.join(os.path.dirname(__file__), "..", "catalog"))
    parser.add_argument("--rounds", type=int, default=14)
    parser.add_argument("--write", action="store_true", help="write the fit into catalog/network")
    parser.add_argument("--report", help="Markdown file for the tables of error")
    parser.add_argument("--errors", help="CSV file for every point's prediction and its ratio to the measurement")
    parser.add_argument("--only", action="store_true", help="no leave-one-out, only the fit")
    parser.add_argument("--harness", nargs=2, action="append", metavar=("NAME", "US"))
    parser.add_argument("--evaluate", action="store_true", help="no fit: the catalogue as it is")
    parser.add_argument("--dump", action="store_true", help="print every point")
    arguments = parser.parse_args()
    os.environ["MAYA_CATALOG"] = arguments.catalog
    model = Model(arguments.points)
    points = published(arguments.data) + vidur(arguments.data) + insitu(arguments.data)
    if arguments.extra:
        points += extra(arguments.extra)
    points.sort(key=lambda p: (p.system, p.spec, p.environment, p.kind, p.ranks, p.bytes))
    systems = sorted({p.system for p in points})
    head = ["| system | %s |" % " | ".join(name for name, _ in COLUMNS), "|---" * (1 + len(COLUMNS)) + "|"]
    out = []
    if arguments.evaluate:
        numbers = {(file, key): start for file, key, start, _, _ in PARAMETERS if file[0] == "+"}
        for key, value in arguments.harness or []:
            numbers[("+" + key, "us")] = float(value)
        times = model.times(points, numbers)
        print("\n".join(head))
        for system in systems:
            chosen = [(p, t) for p, t in zip(points, times) if p.system == system]
            print(row(system, [p for p, _ in chosen], [t for _, t in chosen]))
        print(row("**all**", points, times))
        if arguments.errors:
            write_errors(arguments.errors, points, times, numbers)
        return
    if not arguments.only:
        out += ["### Left out of the fit, one system at a time", ""] + head
        everything = []
        for system in systems:
            seen = [p for p in points if p.system != system]
            new = [p for p in points if p.system == system]
            numbers, _ = fit(model, seen, arguments.rounds)
            times = model.times(new, numbers)
            everything += list(zip(new, times))
            out.append(row(system, new, times))
            print(out[-1], flush=True)
        out.append(row("**all**", [p for p, _ in everything], [t for _, t in everything]))
    numbers, value = fit(model, points, arguments.rounds + 6)
    times = model.times(points, numbers)
    out += ["", "### Within the fit", ""] + head
    for system in systems:
        chosen = [(p, t) for p, t in zip(points, times) if p.system == system]
        out.append(row(system, [p for p, _ in chosen], [t for _, t in chosen]))
    out.append(row("**all**", points, times))
    print("\n".join(out))
    for (file, key), v in numbers.items():
        print("  %-20s %-34s %.4g" % (file, key, v))
    if arguments.dump:
        for p, (us, algorithm, protocol) in zip(points, times):
            print("%-28s %-14s %3d %12d %10.1f %10.1f %6.2f %s/%s %s" % (
                p.system, p.kind, p.ranks, p.bytes, p.us, us, us / p.us, algorithm, protocol, p.environment))
    if arguments.write:
        write(numbers, os.path.join(arguments.catalog, "network"))
    if arguments.report:
        open(arguments.report, "w").write("\n".join(out) + "\n")


if __name__ == "__main__":
    main()
