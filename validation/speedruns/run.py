"""Predicts published training scripts, unmodified, and writes the predictions down before anybody compares them.

    python validation/speedruns/run.py --repository CLONE --out predictions.csv [NAME…]

CLONE is a clone of the project whose logs cases.csv names. Each script runs under `maya run --cluster dgx-h100 --ranks
unique --stop-after N` in a virtual environment with the torch release that is nearest to the one it was measured with.
`--late` runs it with another number of iterations, and no other change, up to its end: windows and batches grow with
the share of the iterations that is done, so its last steps are those of the end of the published run.
NAME is a part of a record's name; without one, all cases that have no obstacle are run.
"""

from __future__ import annotations

import argparse
import csv
import datetime
import json
import os
import pathlib
import statistics
import subprocess
import sys
import time

import sources

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
sys.path.insert(0, str(ROOT / "tools"))
from compat.description import Environment  # noqa: E402
from compat.venv import Venvs  # noqa: E402

FIELDS = ("date", "commit", "record", "phase", "torch", "step_ms", "low_ms", "high_ms", "steps", "found_by", "fitted",
          "unknown", "assumed", "seconds", "note")
LATE_ITERATIONS, LATE_STEPS = 40, 2
XFORMERS = {"2.9.0": "0.0.33.post2", "2.10.0": "0.0.34"}  # each wheel works with one torch


def cases() -> list[dict]:
    with (HERE / "cases.csv").open() as file:
        return list(csv.DictReader(file))


def environment_of(torch: str) -> Environment:
    # FlashAttention 3: only the library with its kernels is loaded, which needs nothing else of xformers.
    bare = [f"xformers=={XFORMERS[torch]}"] if torch in XFORMERS else []
    packages = [f"torch=={torch}", "numpy<2" if torch.startswith("2.4") else "numpy", "setuptools<81", "nvidia-ml-py"]
    return Environment(name=f"speedruns-torch-{torch}", python="3.12", packages=packages, bare=bare, workloads=[])


def commit() -> str:
    return subprocess.run(["git", "-C", str(ROOT), "rev-parse", "--short", "HEAD"], capture_output=True,
                          text=True).stdout.strip()


def prepare(case: dict, late: bool, options: argparse.Namespace) -> pathlib.Path:
    """A folder with the script and its data, as in a checkout of the project."""
    folder = options.work / "scripts" / case["record"].replace("/", "-") / ("late" if late else "early")
    folder.mkdir(parents=True, exist_ok=True)
    files = sources.files_of(sources.log_text(options.repository, case["log"]))
    if late:
        files["train_gpt.py"] = sources.shortened(files["train_gpt.py"], LATE_ITERATIONS)
    for name, text in files.items():
        (folder / name).write_text(text)
    for logs in sources.log_folders(files["train_gpt.py"]):
        (folder / logs).mkdir(parents=True, exist_ok=True)
    for place in (folder / "data", folder.parent / "data"):  # one script looks in the folder above
        if not place.exists():
            place.symlink_to(options.work / "data", target_is_directory=True)
    return folder


def run(case: dict, late: bool, options: argparse.Namespace) -> dict:
    venvs = Venvs(options.work / "home")
    environment = environment_of(case["torch"])
    venvs.create(environment)
    bin = venvs.python(environment).parent
    subprocess.run([bin / "python", HERE / "data.py", options.work / "data/fineweb10B"], check=True)
    folder = prepare(case, late, options)
    out = folder / "run"
    caches = options.work / "caches" / case["torch"]
    packages = [*options.packages, *([str(HERE / "packages")] if case["needs"] == "flash-attention-3" else [])]
    variables = {**os.environ, "PATH": f"{bin}:{os.environ['PATH']}", "PYTHONPATH": os.pathsep.join(packages),
                 "TORCHINDUCTOR_CACHE_DIR": str(caches / "inductor"), "TRITON_CACHE_DIR": str(caches / "triton"),
                 "TORCHINDUCTOR_FX_GRAPH_CACHE": "1"}
    command = [options.maya, "run", "--cluster", "dgx-h100", "--ranks", options.ranks, "--out", str(out)]
    if not late:
        command += ["--stop-after", str(options.steps)]
    command += ["--", "torchrun", "--standalone", "--nproc_per_node=8", "train_gpt.py"]
    begin = time.monotonic()
    with (folder / "log.txt").open("w") as log:
        started = subprocess.Popen(command, cwd=folder, env=variables, stdout=log, stderr=subprocess.STDOUT,
                                   stdin=subprocess.DEVNULL, start_new_session=True)
        try:
            code = started.wait(options.timeout)
        except subprocess.TimeoutExpired:
            started.terminate()  # maya run passes it on; killed itself, it would leave the script behind
            started.wait()
            code = 124
    seconds = time.monotonic() - begin
    return row_of(case, late, out, code, seconds)


def row_of(case: dict, late: bool, out: pathlib.Path, code: int, seconds: float) -> dict:
    row = {"date": datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%d %H:%M"), "commit": commit(),
           "record": case["record"], "phase": "late" if late else "early", "torch": case["torch"],
           "seconds": f"{seconds:.0f}"}
    path = out / "prediction.json"
    prediction = json.loads(path.read_text()) if code == 0 and path.exists() else None
    if prediction is None or prediction["step"] is None:
        return {**row, "note": f"exit code {code}" if prediction is None else prediction["no_step"]}
    step, coverage = prediction["step"], prediction["coverage"]
    if late and "each_ms" not in step:
        return {**row, "note": "prediction.json does not have step.each_ms: the last steps cannot be told"}
    assumed = sum(a["share"] or 0 for a in prediction["assumptions"])
    # Of a shortened run the steps grow towards its end: the last of them count.
    counted = step["each_ms"][-LATE_STEPS:] if late else []
    ms = statistics.median(counted) if late else step["ms"]
    return {**row, "step_ms": f"{ms:.2f}", "low_ms": f"{ms * step['low_ms'] / step['ms']:.2f}",
            "high_ms": f"{ms * step['high_ms'] / step['ms']:.2f}", "steps": len(counted) or step["count"],
            "found_by": step["found_by"], "fitted": f"{coverage['fitted']:.3f}",
            "unknown": f"{coverage['unknown']:.4f}", "assumed": f"{assumed:.3f}"}


def write(path: pathlib.Path, row: dict) -> None:
    fresh = not path.exists()
    with path.open("a", newline="") as file:
        writer = csv.DictWriter(file, FIELDS, lineterminator="\n")
        if fresh:
            writer.writeheader()
        writer.writerow(row)


def main() -> None:
    words = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    words.add_argument("--repository", type=pathlib.Path, required=True, help="a clone of the project, bare or not")
    words.add_argument("--out", type=pathlib.Path, default=HERE / "predictions.csv")
    words.add_argument("--work", type=pathlib.Path, default=ROOT / "maya-runs/speedruns",
                       help="environments, data, runs")
    words.add_argument("--maya", default=str(ROOT / ".venv/bin/maya"))
    words.add_argument("--ranks", default="unique")
    words.add_argument("--steps", type=int, default=5)
    words.add_argument("--late", action="store_true")
    words.add_argument("--timeout", type=int, default=3600)
    words.add_argument("--packages", action="append", default=[], help="a folder with packages that a script imports")
    words.add_argument("names", nargs="*")
    options = words.parse_args()
    options.work = options.work.resolve()
    for case in cases():
        if case["obstacle"] or (options.names and not any(name in case["record"] for name in options.names)):
            continue
        row = run(case, options.late, options)
        write(options.out, row)
        print(*(row.get(field, "-") for field in ("record", "phase", "step_ms", "note", "seconds")), flush=True)


if __name__ == "__main__":
    main()
