"""Runs the sweeps: what others wrote, each operator or model a step or two. Nothing may fail, be unimplemented or
unknown."""

import argparse
import json
import pathlib
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).parent
# "each": one GPU of every compute capability that this torch has code for.
SWEEPS = {"operators": "each", "language_models": "b200", "vision_models": "a100"}

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("names", nargs="*", choices=[[], *SWEEPS], help="all unless named")
parser.add_argument("--maya", default=str(HERE.parents[1] / ".venv/bin/maya"))
parser.add_argument("--gpus", help="GPUs separated by commas, or 'each' for one of every compute capability "
                                   f"(default: {', '.join(f'{n} {g}' for n, g in SWEEPS.items())})")
options = parser.parse_args()


def one_of_each_capability():
    listed = json.loads(
        subprocess.run([options.maya, "gpus", "--json"], capture_output=True, text=True, check=True).stdout
    )
    code = "import torch; torch.zeros(1, device='cuda'); print(*torch.cuda.get_arch_list())"
    archs = subprocess.run(
        [
            options.maya,
            "run",
            "--no-predict",
            "--cluster",
            listed[0]["name"],
            "--out",
            tempfile.mkdtemp(),
            "--",
            sys.executable,
            "-c",
            code,
        ],
        capture_output=True,
        text=True,
        check=True,
    )
    built = [int(a.removeprefix("sm_")) for a in archs.stdout.split() if a.removeprefix("sm_").isdigit()]
    found = {}
    for gpu in listed:
        capability = int(gpu["capability"].replace(".", ""))
        if any(b // 10 == capability // 10 and b <= capability for b in built):
            found.setdefault(capability, gpu["name"])
    return [found[c] for c in sorted(found)]


def sweep(name, gpu):
    with tempfile.TemporaryDirectory() as folder:
        run = f"{folder}/run"
        done = subprocess.run(
            [
                options.maya,
                "run",
                "--cluster",
                gpu,
                "--no-predict",
                "--out",
                run,
                "--",
                sys.executable,
                "-W",
                "ignore",
                str(HERE / f"{name}.py"),
            ],
            stdout=subprocess.PIPE,
            text=True,
        )
        print(f"== {name} on {gpu}\n{done.stdout}", end="")
        answer = subprocess.run(
            [options.maya, "predict", run, "--steps", "1", "--json"], capture_output=True, text=True
        )
    coverage = json.loads(answer.stdout)["coverage"] if answer.returncode == 0 else {}
    strange = [k["name"] for k in coverage.get("unknown_kernels", ())] + [
        c["name"] for c in coverage.get("unimplemented_calls", ())]
    if strange or not coverage:
        print("   unknown or unimplemented:", *strange or [answer.stderr.strip()])
    sys.stdout.flush()
    return done.returncode == 0 and bool(coverage) and not strange


good = True
for name in options.names or SWEEPS:
    gpus = options.gpus or SWEEPS[name]
    for gpu in one_of_each_capability() if gpus == "each" else gpus.split(","):
        good &= sweep(name, gpu)
sys.exit(not good)
