"""Predicts the measured serving cases of cases.toml, one after the other.

    python runner.py --measurements DIR --venv 0.19.0=VENV [--venv 0.12.0=VENV …] [--out DIR] [--first N] [CASE …]

A venv has the named version of vLLM, or of SGLang (sglang-0.5.8.post1); cases whose version has none are left out, and
that is said. Each case leaves
CASE.json (what was predicted, and how long that took), for judge.py. Runs with time stamps share no compiled code: an
engine that compiles for the first time takes more memory while it profiles itself, and so has fewer blocks for its
cache. Closed loops of one model share it, which saves minutes.
"""

import argparse
import csv
import json
import os
import pathlib
import shutil
import subprocess
import sys
import time

import tomllib

HERE = pathlib.Path(__file__).resolve().parent
TREE = HERE.parent.parent
MAYA = TREE / ".venv" / "bin" / "maya"


def cases(names):
    with open(HERE / "cases.toml", "rb") as text:
        found = tomllib.load(text)
    chosen = [dict(case, kind=kind) for kind in ("requests", "closed") for case in found.get(kind, [])]
    unknown = set(names) - {case["name"] for case in chosen}
    if unknown:
        sys.exit(f"runner: no such case: {', '.join(sorted(unknown))}")
    return [case for case in chosen if not names or case["name"] in names]


def engine_words(case, model, measurements):
    """Arguments of the engine as they were measured, with random weights."""
    known = json.loads((measurements / case["measured"] / "meta.json").read_text())["engine_kwargs"]
    known = {key: value for key, value in known.items() if value is not None}
    return known | dict(model=str(model), load_format="dummy")


def row_of(case, measurements):
    with open(measurements / "engines.csv") as text:
        return next(row for row in csv.DictReader(text) if row["id"] == case["id"])


def requests_command(case, model, venv, out, options):
    words = [str(MAYA), "run", "--clock", "virtual", "--cluster", case["cluster"], "--out", str(out / case["name"]),
             "--no-report", "--", str(venv / "bin" / "python"), str(HERE / "replay.py"),
             str(options.measurements / case["workload"]), str(out / f"{case['name']}.jsonl"),
             "--engine", json.dumps(engine_words(case, model, options.measurements))]
    return words + (["--first", str(options.first)] if options.first else [])


def lengths(tokens, spread):
    """As InferenceX draws them: between `spread` of the nominal length and all of it."""
    return tokens if spread == 1 else f"{round(int(tokens) * spread)}-{tokens}"


def server(case, model, venv, row):
    """The engine's own command, as far as the row says how it was started."""
    python = str(venv / "bin" / "python")
    if case["engine"].startswith("sglang-"):
        return [python, "-m", "sglang.launch_server", "--model-path", str(model), "--load-format", "dummy", "--port", "8123",
                "--tp-size", row["tp_size"], "--disable-radix-cache"]
    return [python, "-m", "vllm.entrypoints.openai.api_server", "--model", str(model), "--load-format", "dummy",
            "--port", "8123", "--tensor-parallel-size", row["tp_size"], "--no-enable-prefix-caching"]


def closed_command(case, model, venv, out, options):
    row = row_of(case, options.measurements)
    requests = options.first or case["requests"]
    spread = case.get("spread", 0.8)
    return [str(MAYA), "serve-bench", "--cluster", case["cluster"], "--out", str(out / case["name"]),
            "--run-option=--no-report", "--warmup", "2", "--load", f"concurrency={row['batch_size']}",
            f"requests={requests}", f"input={lengths(row['isl'], spread)}", f"output={lengths(row['osl'], spread)}", "--",
            *server(case, model, venv, row), *case.get("arguments", [])]


def environment(venv, out, case):
    caches = out / "compiled" / (case["name"] if case["kind"] == "requests" else case["model"])
    if case["kind"] == "requests":
        shutil.rmtree(caches, ignore_errors=True)
    return dict(os.environ, PATH=f"{venv / 'bin'}:{os.environ['PATH']}", TORCHINDUCTOR_CACHE_DIR=str(caches),
                PYTHONPATH=str(TREE / "python"))


def predict(case, venv, out, options):
    model = out / "models" / case["model"]
    subprocess.run([sys.executable, str(TREE / "examples" / "serving" / "model.py"), str(model), case["model"]],
                   check=True)
    command = {"requests": requests_command, "closed": closed_command}[case["kind"]](case, model, venv, out, options)
    began = time.monotonic()
    with open(out / f"{case['name']}.log", "w") as log:
        code = subprocess.call(command, stdout=log, stderr=subprocess.STDOUT, env=environment(venv, out, case))
    result = dict(case=case, code=code, seconds=round(time.monotonic() - began, 1))
    serving = out / case["name"] / "serving.json"
    figures = out / f"{case['name']}.jsonl"
    if case["kind"] == "closed" and serving.exists():
        result["predicted"] = json.loads(serving.read_text())["loads"][-1]
    elif case["kind"] == "requests" and figures.exists():
        result["predicted"] = [json.loads(line) for line in figures.read_text().splitlines()]
        result["engine"] = json.loads(figures.with_suffix(".engine.json").read_text())
    return result


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("cases", nargs="*", metavar="CASE")
    parser.add_argument("--measurements", type=pathlib.Path, required=True)
    parser.add_argument("--venv", action="append", default=[], metavar="VERSION=FOLDER")
    parser.add_argument("--out", type=pathlib.Path, default=pathlib.Path("maya-runs/serving"))
    parser.add_argument("--first", type=int, help="only so many requests")
    options = parser.parse_args()
    options.measurements, options.out = options.measurements.resolve(), options.out.resolve()
    venvs = dict(word.split("=", 1) for word in options.venv)
    options.out.mkdir(parents=True, exist_ok=True)
    for case in cases(options.cases):
        if case["engine"] not in venvs:
            print(f"{case['name']}: left out, no --venv for {case['engine']}")
            continue
        result = predict(case, pathlib.Path(venvs[case["engine"]]).absolute(), options.out, options)
        (options.out / f"{case['name']}.json").write_text(json.dumps(result, indent=1) + "\n")
        print(f"{case['name']}: code {result['code']}, {result['seconds']} s")


if __name__ == "__main__":
    main()
