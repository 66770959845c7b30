"""The step times that scripts read from their own clocks, against the prediction from the same run's recording: jobs of
one to eight ranks. Prints a table; ends with 1 if the median is off by more than two hundredths. `make
clock-agreement`."""

import json
import pathlib
import re
import statistics
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
BIN = ROOT / ".venv" / "bin"
GPT = "examples/train_gpt.py --layers 4 --steps 8"
JOBS = [("gpt", 1, GPT), ("ddp", 2, GPT), ("ddp", 4, GPT), ("ddp", 8, GPT),
        ("pipeline", 4, "tests/workloads/pipeline.py --schedule 1f1b")]
LIMIT = 0.02


def main():
    worst = 0.0
    print(f"{'job':10} {'ranks':>5} {'own clock':>12} {'predicted':>12} {'ratio':>7}")
    for name, ranks, script in JOBS:
        with tempfile.TemporaryDirectory() as out:
            command = [BIN / "maya", "run", "--clock", "virtual", "--no-report", "--out", f"{out}/run", "--",
                       BIN / "torchrun", "--nproc-per-node", str(ranks), "tests/clock/step_times.py", *script.split()]
            done = subprocess.run([str(word) for word in command], cwd=ROOT, capture_output=True, text=True, timeout=900)
            found = re.search(r"step times (\[.*\])", done.stdout)
            if done.returncode != 0 or not found:
                print(f"{name}: {done.stderr[-1000:]}")
                return 1
            times = json.loads(found.group(1))[1:]
            live = 1e3 * statistics.median(times)
            predicted = json.loads(pathlib.Path(f"{out}/run/prediction.json").read_text())["step"]["ms"]
        worst = max(worst, abs(live / predicted - 1))
        print(f"{name:10} {ranks:5} {live:9.2f} ms {predicted:9.2f} ms {live / predicted:7.3f}", flush=True)
    return 1 if worst > LIMIT else 0


if __name__ == "__main__":
    sys.exit(main())
