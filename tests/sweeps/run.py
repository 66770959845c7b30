"""Runs the sweeps: what others wrote, each operator or model a step or two. Nothing may fail, be unimplemented or unknown."""

import argparse
import json
import pathlib
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).parent
SWEEPS = {"operators": "h100", "language_models": "b200", "vision_models": "a100"}

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("names", nargs="*", choices=[[], *SWEEPS], help="all unless named")
parser.add_argument("--maya", default=str(HERE.parents[1] / ".venv/bin/maya"))
options = parser.parse_args()

good = True
for name in options.names or SWEEPS:
    with tempfile.TemporaryDirectory() as folder:
        run = f"{folder}/run"
        done = subprocess.run([options.maya, "run", "--cluster", SWEEPS[name], "--no-predict", "--out", run, "--",
                               sys.executable, "-W", "ignore", str(HERE / f"{name}.py")], stdout=subprocess.PIPE, text=True)
        print(f"== {name}\n{done.stdout}", end="")
        answer = subprocess.run([options.maya, "predict", run, "--steps", "1", "--json"], capture_output=True, text=True)
        coverage = json.loads(answer.stdout)["coverage"] if answer.returncode == 0 else {}
        strange = [k["name"] for k in coverage.get("unknown_kernels", ())] + [
            c["name"] for c in coverage.get("unimplemented_calls", ())]
        if strange or not coverage:
            print("   unknown or unimplemented:", *strange or [answer.stderr.strip()])
        good &= done.returncode == 0 and bool(coverage) and not strange
sys.exit(not good)
