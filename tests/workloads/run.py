"""Runs workloads under `maya run` and checks what they leave.

    python tests/workloads/run.py                  the set of `make test`
    python tests/workloads/run.py --set cuda12     the set for the other Python of `make test`
    python tests/workloads/run.py --set all        every one
    python tests/workloads/run.py fsdp2 moe        by name

A workload passes when its command ends with 0, every rank left a recording, the prediction is there and
plausible, and no function was called that has no body. Output of failures is kept in the run's directory.
"""

from __future__ import annotations

import argparse
import json
import os
import pathlib
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import time

from workloads import WORKLOADS, Workload, missing

ROOT = pathlib.Path(__file__).resolve().parents[2]
BIN = pathlib.Path(sys.executable).parent


def command_of(workload: Workload, bin: pathlib.Path = BIN) -> list[str]:
    """The command line, with the programs of the environment whose `bin` this is."""
    words = shlex.split(workload.command)
    if workload.plain:
        program = bin / words[0]
        return [str(program) if program.exists() else words[0], *words[1:]]
    script = words[0] if "/" in words[0] else f"tests/workloads/{words[0]}"
    # Lightning starts its own processes for the other ranks.
    if workload.ranks == 1 or "--devices" in words:
        return [str(bin / "python"), script, *words[1:]]
    launcher = [str(bin / "torchrun"), "--nproc-per-node", str(workload.ranks)]
    if workload.nodes > 1:
        launcher += ["--nnodes", str(workload.nodes), "--node-rank", "0"]
    return [*launcher, script, *words[1:]]


def problems(workload: Workload, run: pathlib.Path) -> list[str]:
    """What is wrong with the run a command left, in words."""
    found = []
    recordings = sorted(run.glob("rank-*.maya"))
    world = workload.ranks * workload.nodes
    if len(recordings) != world:
        found.append(f"{len(recordings)} recordings of {world} ranks")
    path = run / "prediction.json"
    if not path.exists():
        return found + ["no prediction.json"]
    prediction = json.loads(path.read_text())
    if workload.throughput:
        rate = prediction["throughput"] or {}
        if (rate.get("unit"), rate.get("per_step")) != workload.throughput:
            found.append(f"throughput {rate.get('per_step')} {rate.get('unit')} a step, expected {workload.throughput}")
    calls = prediction["coverage"]["unimplemented_calls"]
    if calls:
        found.append(
            "unimplemented: " + ", ".join(str(c.get("name", c)) if isinstance(c, dict) else str(c) for c in calls)
        )
    unknown = prediction["coverage"]["unknown_kernels"]
    if workload.all_known and unknown:
        found.append("unknown: " + ", ".join(kernel["name"] for kernel in unknown))
    work = prediction["flops_per_step"]
    if workload.work and abs(work - workload.work) > 0.02 * workload.work:
        found.append(f"{work:.4g} FLOPs a step, expected {workload.work:.4g}")
    if prediction["world_size"] != world:
        found.append(f"world_size {prediction['world_size']}, not {world}")
    step = prediction["step"]
    if not step or not 0 < step["ms"] < 60_000:
        found.append(f"implausible step {step}")
    elif not step["low_ms"] <= step["ms"] <= step["high_ms"]:
        found.append(f"the step lies outside its interval: {step}")
    for rank in prediction["memory"]:
        if not 0 < rank["peak_bytes"] <= rank["capacity_bytes"]:
            found.append(f"implausible memory of rank {rank['rank']}")
            break
    return found


def run_one(workload: Workload, runs: pathlib.Path, maya: str, patience: float) -> tuple[str, float, str]:
    """(pass | FAIL | skip, seconds, words)"""
    lacking = missing(workload)
    if lacking:
        return "skip", 0.0, f"{lacking} is not here"
    out = runs / workload.name
    log = runs / f"{workload.name}.log"
    began = time.monotonic()
    with log.open("w") as output:
        process = subprocess.Popen(
            [maya, "run", "--cluster", workload.cluster, "--out", str(out), "--", *command_of(workload)], cwd=ROOT,
            env={**os.environ, "MAYA_LOG": "warn", **workload.environment}, stdout=output, stderr=subprocess.STDOUT,
            start_new_session=True)
        try:
            code = process.wait(workload.timeout * patience)
        except subprocess.TimeoutExpired:
            process.send_signal(signal.SIGTERM)
            try:
                process.wait(20)
            except subprocess.TimeoutExpired:
                process.kill()
            return "FAIL", time.monotonic() - began, f"not done after {workload.timeout * patience:.0f} s; see {log}"
    seconds = time.monotonic() - began
    if code != 0:
        return "FAIL", seconds, f"code {code}: {last_error(log)}; see {log}"
    found = problems(workload, out)
    if found:
        return "FAIL", seconds, "; ".join(found)
    prediction = json.loads((out / "prediction.json").read_text())
    coverage = prediction["coverage"]
    unknown = sum(k.get("share", 0) for k in coverage["unknown_kernels"] if isinstance(k, dict))
    return "pass", seconds, f"step {prediction['step']['ms']:.2f} ms, unknown kernels {100 * unknown:.1f} %"


def last_error(log: pathlib.Path) -> str:
    lines = log.read_text(errors="replace").splitlines()
    for line in reversed(lines):
        if "Error" in line and "ChildFailedError" not in line and "error_file" not in line:
            return line.strip()[:160]
    return lines[-1][:160] if lines else "no output"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*")
    parser.add_argument("--set", choices=["test", "cuda12", "all"], default="test")
    parser.add_argument("--out", help="keep the runs here")
    parser.add_argument("--maya", default=str(BIN / "maya"))
    parser.add_argument("--patience", type=float, default=1, help="multiplies the time limits, for a busy machine")
    args = parser.parse_args()
    unknown = set(args.names) - {w.name for w in WORKLOADS}
    if unknown:
        parser.error(f"no workload {', '.join(sorted(unknown))}")
    chosen = [
        w for w in WORKLOADS if (w.name in args.names if args.names else args.set == "all" or getattr(w, args.set))
    ]
    runs = pathlib.Path(args.out or tempfile.mkdtemp(prefix="maya-workloads-"))
    runs.mkdir(parents=True, exist_ok=True)
    failed = 0
    for workload in chosen:
        state, seconds, words = run_one(workload, runs, args.maya, args.patience)
        failed += state == "FAIL"
        print(
            f"{state:4}  {workload.name:30} {workload.ranks * workload.nodes:3} ranks {seconds:6.1f} s  {words}",
            flush=True,
        )
    print(f"{len(chosen) - failed} of {len(chosen)} workloads passed or were skipped")
    if failed:
        print(f"recordings and output: {runs}")
    elif not args.out:
        shutil.rmtree(runs, ignore_errors=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
