"""Attacks Maya from outside and prints the results: `make attack` (about an hour), --short (a minute).

    python tests/attack/run.py [--short] [--kills N] [--mutations N] [--only SECTION…] [--maya PROGRAM]

Sections: kills, disks, mutations, bombs, calls, threads. Exits with 1 if anything did not hold.
"""

from __future__ import annotations

import argparse
import json
import os
import pathlib
import random
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
PYTHON = sys.executable
rows: list[tuple[str, str, str]] = []
wrong: list[str] = []


def hold(section: str, tried: str, result: str, failures: list[str]) -> None:
    rows.append((section, tried, result if not failures else f"{len(failures)} FAILED"))
    for failure in failures:
        print(f"  {section}: {failure}", flush=True)
    wrong.extend(failures)
    print(f"{section}: {tried}: {result if not failures else 'FAILED'}", flush=True)


def recorded_fills(run: pathlib.Path) -> tuple[int, str]:
    done = subprocess.run([str(ROOT / "build/bin/attack_recordings"), "--count-fills", str(run)], capture_output=True, text=True, timeout=60)
    return int(done.stdout or 0), done.stderr


def kills(maya: str, count: int) -> None:
    """A process is killed at a random moment; what it had finished a second before must be in its recording."""
    failures, lost_most, dice = [], 0, random.Random(1)
    folder = pathlib.Path(tempfile.mkdtemp(prefix="maya-kills-"))
    for number in range(count):
        out = folder / "run"
        launcher = subprocess.Popen([maya, "run", "--quiet", "--no-predict", "--cluster", "h100-sxm", "--out", str(out), "--", PYTHON,
                                     str(HERE / "steps.py"), str(1 << 60), "0.0005"], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        pid = int(launcher.stdout.readline())
        moment = time.time() + dice.random() * 0.6
        seen, last = b"", 0
        os.set_blocking(launcher.stdout.fileno(), False)
        while time.time() < moment:
            seen += launcher.stdout.read() or b""
            time.sleep(0.005)
        whole = seen[: seen.rfind(b"\n")]
        last = int(whole.split(b"\n")[-1] or 0) if whole else 0
        os.kill(pid, signal.SIGKILL)
        try:
            launcher.wait(20)
        except subprocess.TimeoutExpired:
            failures.append(f"kill {number}: the launcher did not end")
            launcher.kill()
        # The calls between the last count read and the kill may be lost; those counted may not.
        fills, said = recorded_fills(out)
        lost = max(0, last - fills)
        lost_most = max(lost_most, lost)
        if lost:
            failures.append(f"kill {number}: {last} calls were finished, {fills} are recorded {said}")
        if number % 100 == 99:
            print(f"  {number + 1} kills", flush=True)
    shutil.rmtree(folder)
    hold("kills", f"{count} at random moments", "no finished call lost", failures)


def disks(maya: str) -> None:
    failures = []
    folder = pathlib.Path(tempfile.mkdtemp(prefix="maya-disks-"))

    def limited(size: int):
        def limit():
            signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
            resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))
        return limit

    tried = 0
    for size in (0, 1000, 100_000, 1 << 20, (1 << 20) + 40_000, 3 << 20):
        out = folder / f"r{size}"
        done = subprocess.run([maya, "run", "--quiet", "--cluster", "h100-sxm", "--out", str(out), "--", PYTHON, str(HERE / "steps.py"), "300000"],
                              capture_output=True, text=True, preexec_fn=limited(size), timeout=300)
        tried += 1
        if done.returncode < 0 or done.returncode > 3:
            failures.append(f"disk of {size} bytes: code {done.returncode}: {done.stderr[-300:]}")
        if size and size < 3 << 20 and "maya:" not in done.stderr:
            failures.append(f"disk of {size} bytes: nothing is said")
        if (out / "run.toml").exists() and (out / "prediction.json").exists():
            json.loads((out / "prediction.json").read_text())
    for place in ("/proc/maya-run", "/sys/maya-run"):
        done = subprocess.run([maya, "run", "--out", place, "--", "true"], capture_output=True, text=True, timeout=60)
        tried += 1
        if done.returncode != 1 or "cannot write" not in done.stderr:
            failures.append(f"{place}: code {done.returncode}: {done.stderr}")
    done = subprocess.run([maya, "run", "--no-predict", "--quiet", "--cluster", "h100-sxm", "--out", str(folder / "gone"), "--", "bash", "-c",
                           f"rm -rf {folder}/gone; exit 0"], capture_output=True, text=True, timeout=60)
    tried += 1
    if done.returncode != 0 or "removed" not in done.stderr:
        failures.append(f"directory removed: code {done.returncode}: {done.stderr}")
    shutil.rmtree(folder, ignore_errors=True)
    hold("disks", f"{tried} full, read-only or removed", "the command goes on, the reason is said", failures)


def recordings(count: int, bombs: bool) -> None:
    program = ROOT / "build/bin/attack_recordings"
    words = [str(program), "--mutations", str(count)] + (["--bombs"] if bombs else [])
    done = subprocess.run(words, capture_output=True, text=True)
    print(done.stdout, flush=True)
    tried = f"{count} mutations, half under corrected checksums" if count else "bombs and hostile text"
    failures = [f"attack_recordings ended with {done.returncode}: {done.stderr[-300:]}"] if done.returncode else []
    hold("mutations" if count else "bombs", tried, "a prediction or an error, below 20 s and 1 GB", failures)


def calls(maya: str, every: int) -> None:
    folder = pathlib.Path(tempfile.mkdtemp(prefix="maya-calls-"))
    found = folder / "found.json"
    done = subprocess.run([maya, "run", "--quiet", "--no-predict", "--cluster", "dgx-h100", "--out", str(folder / "run"), "--", PYTHON,
                           str(HERE / "api_calls.py"), "--every", str(every), "--json", str(found)], capture_output=True, text=True)
    print(done.stdout, flush=True)
    result = json.loads(found.read_text()) if found.exists() else {"table": [], "findings": [{"kind": "no result", "what": done.stderr[-500:]}]}
    failures = [" ".join(str(v) for v in f.values()) for f in result["findings"]]
    number = sum(row[2] for row in result["table"])
    shutil.rmtree(folder, ignore_errors=True)
    hold("calls", f"{number} bad calls of {sum(row[1] for row in result['table'])} functions", "no crash, no hang, documented codes", failures)


def threads(maya: str, seconds: float) -> None:
    folder = pathlib.Path(tempfile.mkdtemp(prefix="maya-threads-"))
    done = subprocess.run([maya, "run", "--quiet", "--cluster", "h100-sxm", "--out", str(folder / "run"), "--", PYTHON, str(HERE / "threads.py"),
                           str(seconds)], capture_output=True, text=True, timeout=seconds * 20 + 300)
    failures = [f"code {done.returncode}: {done.stderr[-300:]}"] if done.returncode else []
    line = next((l for l in done.stdout.splitlines() if "calls" in l), "?")
    shutil.rmtree(folder, ignore_errors=True)
    hold("threads", f"16 threads, {line}", "no crash, recording read", failures)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--short", action="store_true")
    parser.add_argument("--kills", type=int)
    parser.add_argument("--mutations", type=int)
    parser.add_argument("--only", nargs="*", default=["kills", "disks", "mutations", "bombs", "calls", "threads"])
    parser.add_argument("--maya", default=str(pathlib.Path(PYTHON).parent / "maya"))
    options = parser.parse_args()
    short = options.short
    if "kills" in options.only:
        kills(options.maya, options.kills or (5 if short else 1000))
    if "disks" in options.only:
        disks(options.maya)
    if "mutations" in options.only:
        recordings(options.mutations or (100 if short else 20000), bombs=False)
    if "bombs" in options.only:
        recordings(0, bombs=True)
    if "calls" in options.only:
        calls(options.maya, 40 if short else 1)
    if "threads" in options.only:
        threads(options.maya, 2 if short else 60)
    print("\n| attack | tried | result |\n|---|---|---|")
    for row in rows:
        print("| " + " | ".join(row) + " |")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
