"""One workload of one environment under `maya run`: what it left, and what it took."""

from __future__ import annotations

import hashlib
import json
import os
import pathlib
import signal
import subprocess
import threading
import time

from run import command_of, last_error, problems
from workloads import Workload

from .description import Environment

ROOT = pathlib.Path(__file__).resolve().parents[2]
# The same machine with the other GPU. Both GPUs of the page are served from this table.
A100 = {"dgx-h100": "dgx-a100", "h100-sxm": "a100-80gb-sxm", "p5": "p4de"}
H100 = {a: h for h, a in A100.items()}


def inputs(environment_inputs: str, environment: Environment, workload: Workload) -> str:
    """What a result depends on, besides the build of Maya."""
    digest = hashlib.sha256(environment_inputs.encode())
    digest.update(repr((workload, sorted(environment.variables.items()))).encode())
    script = next((w for w in workload.command.split() if w.endswith((".py", ".sh"))), "")
    for path in (ROOT / script, ROOT / "tests/workloads" / script, ROOT / "tests/workloads/common.py"):
        if path.is_file():
            digest.update(path.read_bytes())
    return digest.hexdigest()[:16]


def build_of(maya: pathlib.Path) -> str:
    """Which Maya: its program and libraries, by content."""
    maya = maya.resolve()
    digest = hashlib.sha256(maya.read_bytes())
    for library in sorted((maya.parents[1] / "lib" / "maya").glob("*.so*")):
        if not library.is_symlink():
            digest.update(library.read_bytes())
    return digest.hexdigest()[:16]


class Watch(threading.Thread):
    """The largest private memory any process of a command had, sampled."""

    def __init__(self, root: int):
        super().__init__(daemon=True)
        self.root, self.peak, self.done = root, 0, threading.Event()

    def run(self) -> None:
        while not self.done.wait(1.0):
            for process in descendants(self.root):
                self.peak = max(self.peak, private_bytes(process))


def descendants(root: int) -> list[int]:
    parents: dict[int, int] = {}
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            try:
                fields = pathlib.Path(f"/proc/{entry}/stat").read_text().rpartition(")")[2].split()
                parents[int(entry)] = int(fields[1])
            except OSError:
                pass
    found = {root}
    grew = True
    while grew:
        more = {p for p, parent in parents.items() if parent in found} - found
        found |= more
        grew = bool(more)
    return sorted(found)


def private_bytes(process: int) -> int:
    try:
        lines = pathlib.Path(f"/proc/{process}/smaps_rollup").read_text().splitlines()
    except OSError:
        return 0
    return sum(int(line.split()[1]) << 10 for line in lines if line.startswith(("Private_Clean:", "Private_Dirty:")))


def run_on(cluster: str, workload: Workload, environment: Environment, venv: pathlib.Path, maya: pathlib.Path,
           out: pathlib.Path, patience: float) -> dict:
    """One `maya run`. The result's `state` is ran, failed or slow; `words` say why it failed."""
    log = out.with_suffix(".log")
    log.parent.mkdir(parents=True, exist_ok=True)
    surroundings = {
        k: v for k, v in os.environ.items() if k not in ("VIRTUAL_ENV", "PYTHONPATH", "PYTHONHOME", "LD_PRELOAD")
    }
    surroundings.update(
        MAYA_LOG="warn",
        PATH=f"{venv / 'bin'}:{surroundings.get('PATH', '/usr/bin:/bin')}",
        VIRTUAL_ENV=str(venv),
        TRITON_CACHE_DIR=str(venv / "cache/triton"),
        TORCHINDUCTOR_CACHE_DIR=str(venv / "cache/inductor"),
        HF_HUB_OFFLINE="1",
        TOKENIZERS_PARALLELISM="false",
        TORCH_EXTENSIONS_DIR=str(venv / "cache/extensions"),
    )
    # of a run that was stopped while it built one: others would wait
    for lock in (venv / "cache/extensions").glob("**/lock"):
        lock.unlink()
    surroundings.update(workload.environment)
    surroundings.update(environment.variables)
    began = time.monotonic()
    limit = workload.timeout * patience
    before = os.times()
    with log.open("w") as output:
        process = subprocess.Popen(
            [str(maya), "run", "--cluster", cluster, "--out", str(out), "--", *command_of(workload, venv / "bin")],
            cwd=ROOT,
            env=surroundings,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        watch = Watch(process.pid)
        watch.start()
        try:
            code = process.wait(limit)
        except subprocess.TimeoutExpired:
            code = None
            process.send_signal(signal.SIGTERM)
            try:
                process.wait(30)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        finally:
            watch.done.set()
            watch.join()
    after = os.times()
    result = {
        "seconds": round(time.monotonic() - began, 1),
        "private_bytes": watch.peak,
        "cluster": cluster,
        "host_seconds": round(
            after.children_user - before.children_user + after.children_system - before.children_system, 1
        ),
    }
    if code is None:
        return {**result, "state": "slow", "words": f"not done after {limit:.0f} s"}
    if code:
        return {**result, "state": "failed", "words": f"exit code {code}: {last_error(log)}"}
    path = out / "prediction.json"
    found = problems(workload, out)
    if not path.exists():
        return {**result, "state": "failed", "words": "; ".join(found)}
    result.update(summary(json.loads(path.read_text())))
    # Calls without a body have a column of their own, and what else is wrong is a failure.
    others = [p for p in found if not p.startswith("unimplemented")]
    return {**result, "state": "failed" if others else "ran", "words": "; ".join(others)}


def summary(prediction: dict) -> dict:
    coverage = prediction["coverage"]
    calls = [c.get("name", "?") if isinstance(c, dict) else str(c) for c in coverage["unimplemented_calls"]]
    kernels = [k.get("name", "?") if isinstance(k, dict) else str(k) for k in coverage["unknown_kernels"]]
    step = prediction["step"] or {}
    return {"unimplemented": calls, "unknown": coverage.get("unknown", 0.0), "unknown_kernels": kernels,
            "step_ms": step.get("ms"), "peak_bytes": max((m["peak_bytes"] for m in prediction["memory"]), default=0)}


def repredict(run: pathlib.Path, cluster: str, maya: pathlib.Path) -> dict:
    """The recording on another GPU, without running again."""
    out = run / f"prediction-{cluster}.json"
    done = subprocess.run(
        [str(maya), "predict", str(run), "--cluster", cluster, "--out", str(out)], capture_output=True, text=True
    )
    if done.returncode:
        return {"state": "failed", "words": done.stderr.strip()[-200:], "cluster": cluster}
    return {"state": "ran", "words": "", "cluster": cluster, **summary(json.loads(out.read_text()))}


def try_out(workload: Workload, environment: Environment, venv: pathlib.Path, maya: pathlib.Path, runs: pathlib.Path,
            patience: float, second: str) -> dict:
    """The workload on an H100 machine, then on an A100 one: by a run of its own, or from the same recording."""
    h100 = H100.get(workload.cluster, workload.cluster)
    first = run_on(h100, workload, environment, venv, maya, runs / workload.name, patience)
    result = {"h100": first, "a100": None, "a100_by": None}
    if first["state"] != "ran" or h100 not in A100:
        return result
    again = second == "run" or (second == "auto" and workload.ranks * workload.nodes == 1)
    result["a100_by"] = "run" if again else "predict"
    if again:
        result["a100"] = run_on(A100[h100], workload, environment, venv, maya, runs / f"{workload.name}-a100", patience)
    else:
        result["a100"] = repredict(runs / workload.name, A100[h100], maya)
    return result
