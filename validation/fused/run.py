"""Runs Liger-Kernel's own benchmark scripts, unmodified, on emulated GPUs and keeps the tables that they write.

    python validation/fused/run.py --repository CLONE --python VENV/bin/python --out OUT [KERNEL …]

CLONE is a clone of github.com/linkedin/Liger-Kernel with its tags; a script is taken with the kernels of the release
that cases.csv names. Each case becomes OUT/KERNEL-GPU.csv, the rows that the script measured with Triton's do_bench.
"""

import argparse
import csv
import pathlib
import shutil
import subprocess
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent


def cases(names, half):
    with open(HERE / "cases.csv") as file:
        for row in csv.DictReader(file):
            if (not names or row["kernel"] in names) and half in ("both", row["half"]):
                yield row


def release(tag, packages, options):
    """The benchmark's scripts and the package of one release, with packages of its time."""
    target = options.work / tag
    if not (target / "benchmark").exists():
        target.mkdir(parents=True, exist_ok=True)
        listed = subprocess.run(["git", "-C", str(options.repository), "ls-tree", "-r", "--name-only", tag, "benchmark",
                                 "test"], check=True, capture_output=True, text=True).stdout.split("\n")
        wanted = [name for name in listed if name.endswith(".py")]  # some scripts import the tests' references
        with subprocess.Popen(["git", "-C", str(options.repository), "archive", tag, *wanted],
                              stdout=subprocess.PIPE) as archive:
            subprocess.run(["tar", "-x", "-C", str(target)], stdin=archive.stdout, check=True)
    if not (target / "package").exists():
        subprocess.run([options.python, "-m", "pip", "install", "-q", "--disable-pip-version-check", "--no-deps",
                        "--target", str(target / "package"), f"liger-kernel=={tag[1:]}", *packages], check=True)
    return target


def run(case, options):
    source = release(case["scripts"], case["packages"].split(), options)
    data = source / "benchmark" / "data" / "all_benchmark_data.csv"
    data.parent.mkdir(parents=True, exist_ok=True)
    data.unlink(missing_ok=True)  # of the authors' GPUs; the script writes its own
    out = options.work / f"{case['kernel']}-{case['gpu']}"
    shutil.rmtree(out, ignore_errors=True)
    command = [options.maya, "run", "--cluster", case["gpu"], "--clock", "virtual", "--out", str(out), "--quiet",
               "--no-report", "--",
               "env", f"PYTHONPATH={source / 'package'}:{source}", options.python, f"benchmark_{case['script']}.py", "--overwrite"]
    began = time.monotonic()
    with open(options.out / f"{case['kernel']}-{case['gpu']}.log", "w") as log:
        try:
            code = subprocess.run(command, cwd=source / "benchmark" / "scripts", stdin=subprocess.DEVNULL, stdout=log,
                                  stderr=subprocess.STDOUT, timeout=options.timeout).returncode
        except subprocess.TimeoutExpired:
            code = "timeout"
    if data.exists():
        shutil.copy(data, options.out / f"{case['kernel']}-{case['gpu']}.csv")
    print(f"{case['kernel']} on {case['gpu']}: code {code}, {time.monotonic() - began:.0f} s", flush=True)
    if not options.keep:
        shutil.rmtree(out, ignore_errors=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repository", type=pathlib.Path, required=True)
    parser.add_argument("--python", default=sys.executable, help="has torch, triton and transformers")
    parser.add_argument("--maya", default="maya")
    parser.add_argument("--out", type=pathlib.Path, required=True)
    parser.add_argument("--work", type=pathlib.Path, default=pathlib.Path("/tmp/maya-fused"))
    parser.add_argument("--half", default="both", choices=("look", "proof", "both"))
    parser.add_argument("--timeout", type=float, default=1200)
    parser.add_argument("--keep", action="store_true", help="keep the recordings")
    parser.add_argument("kernels", nargs="*")
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    options.work.mkdir(parents=True, exist_ok=True)
    options.out, options.work = options.out.resolve(), options.work.resolve()
    for case in cases(options.kernels, options.half):
        run(case, options)


if __name__ == "__main__":
    main()
