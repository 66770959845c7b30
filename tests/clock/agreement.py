"""The step times that scripts read from their own clocks, against the prediction from the same run's recording: jobs of
one to eight ranks. Prints a table; ends with 1 if a median is off by more than two hundredths. `make
clock-agreement`."""

import json
import os
import pathlib
import re
import statistics
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
BIN = ROOT / ".venv" / "bin"
GPT = "examples/train_gpt.py --layers 4 --steps 8"
WORKLOADS = "tests/workloads"
JOBS = [(1, GPT), (2, GPT), (4, GPT), (8, GPT), (1, "vision.py --model resnet50"), (1, "lstm.py"),
        (1, "hugging_face.py --model llama"), (1, "hugging_face.py --model bert"), (1, "activation_checkpoint.py"),
        (1, "fp8.py"), (2, "ddp.py"), (4, "ddp.py"), (8, "ddp.py"), (2, "fsdp1.py"), (2, "fsdp2.py"), (4, "fsdp2.py"),
        (8, "fsdp2.py"), (2, "tensor_parallel.py"), (4, "tensor_parallel.py"), (8, "tensor_parallel.py"),
        (2, "tensor_parallel.py --sequence"), (4, "pipeline.py --schedule 1f1b"), (2, "pipeline.py --schedule gpipe"),
        (2, "moe.py"), (2, "zero_redundancy.py"), (2, "context_parallel.py")]
LIMIT = 0.02


def counted(step, times):
    """The script's own times of the steps whose mean is the prediction: leading ones are not part of it, and the
    script's first time is that of the second step."""
    count, each = step["count"], step["each_ms"][1:]
    for i in range(min(len(each), len(times)) - count + 1):
        if abs(statistics.mean(each[i:i + count]) - step["ms"]) < 1e-5 * step["ms"]:
            return times[i:i + count]
    raise RuntimeError(f"the prediction is not the mean of {count} of the script's {len(times)} steps")


def measure(ranks, script, out):
    """The script's own times of the steps that count, and the prediction, in milliseconds."""
    words = script.split()
    if "/" not in words[0]:
        words[0] = f"{WORKLOADS}/{words[0]}"
    command = [BIN / "maya", "run", "--clock", "virtual", "--no-report", "--out", f"{out}/run", "--",
               BIN / "torchrun", "--nproc-per-node", str(ranks), "tests/clock/step_times.py", *words]
    done = subprocess.run([str(word) for word in command], cwd=ROOT, capture_output=True, text=True, timeout=900)
    found = re.search(r"step times (\[.*\])", done.stdout)
    if done.returncode != 0 or not found:
        raise RuntimeError(done.stderr[-1000:])
    step = json.loads(pathlib.Path(f"{out}/run/prediction.json").read_text())["step"]
    return counted(step, [1e3 * seconds for seconds in json.loads(found.group(1))]), step["ms"]


def main():
    """Arguments: parts of the names of jobs; none: all of them."""
    off = []
    print(f"{'job':35} {'ranks':>5} {'own clock':>12} {'predicted':>12} {'ratio':>7}")
    for ranks, script in JOBS:
        name = script.removeprefix("examples/")
        if sys.argv[1:] and not any(part in name for part in sys.argv[1:]):
            continue
        with tempfile.TemporaryDirectory() as out:
            try:
                times, predicted = measure(ranks, script, out)
            except RuntimeError as error:
                print(f"{name}: {error}")
                return 1
        live = statistics.median(times)
        if abs(live / predicted - 1) > LIMIT:
            off.append(name)
        print(f"{name:35} {ranks:5} {live:9.2f} ms {predicted:9.2f} ms {live / predicted:7.3f}", flush=True)
    print(f"load {os.getloadavg()[0]:.0f}; {len(off)} off by more than {LIMIT:.0%}")
    return 1 if off else 0


if __name__ == "__main__":
    sys.exit(main())
