"""Predicts every row of a measured sweep and writes the predictions down, without reading what was measured.

    python validation/regret/predict.py FOLDER [--recordings KEPT] 13b-32 65b-64 …

FOLDER holds the tables. Recordings are kept in the folder KEPT and used again: with other kernel models only the second half runs. Each layout is recorded once, one rank of each stage, with steps of PP and of 2·PP micro-batches; a
step of all its micro-batches is the first plus as many rounds as are left. Results go to validation/regret/<job>.csv; layouts
that are there already are not run again. `fits` is 1, 0, or "may", as `maya search` has it: it does not fit, but would in a little more memory (the error of
predicted memory). `--near` runs the rows again that do not fit, to tell these.
"""

from __future__ import annotations

import argparse
import csv
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

from jobs import JOBS, Job, Layout, rows

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
sys.path.insert(0, str(ROOT / "python"))
from maya.search import outcome  # noqa: E402

BIN = pathlib.Path(sys.executable).parent
MAYA = os.environ.get("MAYA_PROGRAM", str(BIN / "maya"))
FIELDS = ("layout", "step_s", "low_s", "high_s", "peak_gib", "capacity_gib", "fits", "note")


def predicted(run: pathlib.Path, steps: str) -> dict:
    done = subprocess.run([MAYA, "predict", str(run), "--steps", steps, "--json"], capture_output=True, text=True)
    if done.returncode != 0:
        raise RuntimeError(done.stderr.strip())
    return json.loads(done.stdout)


def recorded(job: Job, layout: Layout, starts: str, run: pathlib.Path, *options: str) -> str:
    """Records the layout; the line that says that it does not fit, or nothing."""
    memo = run.with_suffix(".txt")
    if memo.exists():
        return memo.read_text()
    nodes = job.gpus // 8
    ranks = ",".join(map(str, layout.ranks(job)))
    command = [MAYA, "run", "--cluster", f"dgx-a100:{nodes}", "--ranks", ranks, "--no-predict", "--quiet", *options, "--out", str(run), "--",
               str(BIN / "torchrun"), "--nnodes", str(nodes), "--nproc-per-node", "8", str(ROOT / "validation/scripts/llama_3d.py"),
               "--rounds", *layout.words(job)]
    environment = {**os.environ, "MAYA_START_DIR": starts} if starts else dict(os.environ)
    done = subprocess.run(command, capture_output=True, text=True, env=environment, stdin=subprocess.DEVNULL, start_new_session=True)
    # torch's own memory, or the buffers of NCCL.
    too_large = next((found[0][:60] for line in done.stderr.splitlines()
                      if (found := re.findall(r"OutOfMemoryError: (.*)|(Failed to CUDA malloc .*: out of memory)", line))
                      and (found := ["".join(found[0])])), "")
    if done.returncode != 0 and not too_large:
        raise RuntimeError("\n".join(done.stderr.splitlines()[-15:]))
    memo.write_text(too_large)
    return too_large


def predict(job: Job, layout: Layout, starts: str, kept: pathlib.Path | None) -> dict:
    folder = kept or pathlib.Path(tempfile.mkdtemp(prefix="maya-regret-"))
    run = folder / f"{job.model}-{job.gpus}-{job.length}-{layout.name}"
    try:
        fits: int | str = 1
        if note := recorded(job, layout, starts, run):
            fits, run = "may", run.with_name(run.name + "-beyond")
            if recorded(job, layout, starts, run, "--memory-slack", f"{outcome.MEMORY_ERROR:g}"):
                return {"layout": layout.name, "fits": 0, "note": note}
        first, second = predicted(run, "step@1"), predicted(run, "step@2")
        rounds = (layout.micro_batches(job) - layout.pipeline) / layout.pipeline
        times = {key: (a + (b - a) * rounds) / 1000 for key, a, b in (
            (key, first["step"][key], second["step"][key]) for key in ("ms", "low_ms", "high_ms"))}
        fullest = max(second["memory"], key=lambda rank: rank["reserved_bytes"])
        return {"layout": layout.name, "step_s": f"{times['ms']:.3f}", "low_s": f"{times['low_ms']:.3f}", "high_s": f"{times['high_ms']:.3f}",
                "peak_gib": f"{fullest['peak_bytes'] / 2**30:.2f}", "capacity_gib": f"{fullest['capacity_bytes'] / 2**30:.2f}", "fits": fits, "note": note}
    finally:
        if not kept:
            shutil.rmtree(folder, ignore_errors=True)


def main() -> None:
    words = argparse.ArgumentParser()
    words.add_argument("folder", type=pathlib.Path)
    words.add_argument("jobs", nargs="*")
    words.add_argument("--recordings", type=pathlib.Path)
    words.add_argument("--near", action="store_true")
    given = words.parse_intermixed_args()
    folder, names = given.folder, given.jobs or list(JOBS)
    if given.recordings:
        given.recordings.mkdir(parents=True, exist_ok=True)
    starts = tempfile.mkdtemp(prefix="maya-start-")
    pathlib.Path(starts, "owner").write_text(str(os.getpid()))
    for name in names:
        table = HERE / f"{name}.csv"
        before = list(csv.DictReader(table.open())) if table.exists() else []
        if given.near:
            before = [row for row in before if row["fits"] != "0"]
            with table.open("w", newline="") as file:
                writer = csv.DictWriter(file, FIELDS)
                writer.writeheader()
                writer.writerows(before)
        known = {row["layout"] for row in before}
        if not known:
            table.write_text(",".join(FIELDS) + "\n")
        for layout in sorted(set(rows(JOBS[name], folder).values()), key=lambda layout: layout.name):
            if layout.name in known:
                continue
            try:
                found = predict(JOBS[name], layout, starts, given.recordings)
            except RuntimeError as problem:
                print(f"{name} {layout.name}: {problem}", file=sys.stderr)
                continue
            with table.open("a", newline="") as file:
                csv.DictWriter(file, FIELDS).writerow(found)
            print(name, layout.name, found.get("step_s", "does not fit"), found.get("peak_gib", ""), flush=True)
    shutil.rmtree(starts)


if __name__ == "__main__":
    main()
