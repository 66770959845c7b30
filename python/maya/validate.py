"""maya validate: compares Maya's predictions with published measurements of whole training steps.

A case is a TOML file in validation/cases: a published measurement of a training step, and a command that does the same
work here. It is recorded once with `maya run` and predicted from its recording. If its command, scripts and framework
did not change, it is only predicted again, which takes a second. A sweep (validation/sweeps) is many cases that share a
command: each row is one configuration, and one process records several of them.
"""
from __future__ import annotations

import argparse
import concurrent.futures
import hashlib
import json
import os
import pathlib
import re
import shlex
import statistics
import subprocess
import sys
import time

from maya import MayaError, program

try:
    import tomllib
except ImportError:  # before Python 3.11
    from pip._vendor import tomli as tomllib

LEVEL = 0.8  # of the intervals


class Case:
    """One comparison: a measured step and where its prediction comes from.

    With `micro_batches`, the recording holds steps of one and of two micro-batches (ranges `…@1`, `…@2`) and the step
    of n is drawn through both: a long accumulation need not be recorded."""

    def __init__(self, id, recording, measured_ms, cluster, settings, steps, file, table, micro_batches=None):
        self.id, self.recording, self.measured_ms, self.micro_batches = id, recording, measured_ms, micro_batches
        self.cluster, self.settings, self.steps = cluster, settings, steps
        self.file, self.table = file, table
        self.set = table.get("set", file.stem)
        self.seen = ""  # which constant was set with this figure in view; then it proves nothing of that constant

    def text(self, key):
        return self.table.get(key, "")


class Recording:
    """A recording by `maya run` from which one or several cases are predicted."""

    def __init__(self, name, command, cluster, python, root, environment, patience, ranks, at_once):
        self.name, self.command, self.cluster, self.python, self.ranks, self.at_once = (
            name,
            command,
            cluster,
            python,
            ranks,
            at_once,
        )
        self.root, self.environment, self.patience = root, environment, patience

    def words(self):
        words = shlex.split(self.command)
        beside = pathlib.Path(self.python).parent / words[0]
        if words[0] in ("python", "python3"):
            words[0] = self.python
        elif beside.exists():
            words[0] = str(beside)
        return words

    def key(self, framework):
        digest = hashlib.sha256(json.dumps([self.command, self.cluster, framework, self.environment]).encode())
        for word in shlex.split(self.command):
            path = self.root / word
            if word.endswith(".py") and path.exists():
                for source in sorted({path, path.parent / "common.py"}):
                    digest.update(source.read_bytes() if source.exists() else b"")
        return f"{self.name}-{digest.hexdigest()[:10]}"


def frameworks(python):
    """The versions of the framework and the model packages, which decide the ops of a command."""
    code = ("import importlib.metadata as m\n"
            "for n in ('torch','triton','torchvision','timm','transformers'):\n"
            "  try: print(n, m.version(n))\n"
            "  except m.PackageNotFoundError: pass")
    done = subprocess.run([python, "-c", code], capture_output=True, text=True)
    if done.returncode or not done.stdout.startswith("torch"):
        raise MayaError(f"{python} has no torch to run the cases with; name another with --python")
    return dict(line.split() for line in done.stdout.splitlines())


def milliseconds(value, unit, per_step):
    """Converts a published figure to the time of a step. Rates need the amount of work of a step."""
    if unit.startswith("ms"):
        return float(value)
    if unit.startswith("s/") or unit == "s":
        return 1000.0 * float(value)
    if unit.endswith("/s") or "/s/" in unit or "/s " in unit:
        if not per_step:
            raise MayaError(f"a rate in {unit} needs `per_step`")
        return 1000.0 * per_step / float(value)
    raise MayaError(f"unknown unit '{unit}'; expected ms…, s/… or a rate …/s")


def load(path, options):
    """The cases of one file."""
    table = tomllib.loads(path.read_text())
    wanted = str(table.get("environment", {}).get("torch", ""))
    python = next((p for v, p in options.pythons.items() if wanted.startswith(v)), options.python)
    cluster = table["cluster"]
    settings = [f"{k}={v}" for k, v in table.get("settings", {}).items()]
    environment = {k: str(v) for k, v in table.get("variables", {}).items()}
    recorded_on = table.get("record_on", cluster)

    def recording(name, command):
        return Recording(
            name,
            command,
            recorded_on,
            python,
            options.root,
            environment,
            table.get("patience", 600),
            table.get("ranks", "all"),
            table.get("at_once"),
        )

    if "rows" not in table:
        ms = milliseconds(table["measured"], table["unit"], table.get("per_step"))
        case = Case(table.get("id", path.stem), recording(path.stem, table["command"]), ms, cluster, settings,
                    table.get("steps", "step"), path, table, table.get("micro_batches"))
        case.seen = table.get("seen", "")
        return [case]
    cases, size = [], table.get("together", 8)
    rows = [dict(zip(table["columns"], row)) for row in table["rows"]]
    if options.rows:
        every = max(1, len(rows) // options.rows)
        rows = rows[::every][: options.rows]
    # What is recorded together does not depend on the rows chosen; files on several GPUs with the same `specs` share
    # recordings.
    column = table["columns"].index("spec")
    specs = table.get("specs") or list(dict.fromkeys(row[column] for row in table["rows"]))
    of_spec = {}
    name = table.get("recordings", path.stem)
    for i in range(0, len(specs), size):
        chunk = specs[i:i + size]
        one = recording(f"{name}-{i // size:03d}", table["command"].replace("{specs}", " ".join(chunk)))
        of_spec.update(dict.fromkeys(chunk, one))
    for row in rows:
        ms = milliseconds(row["measured"], table["unit"], row.get("per_step", table.get("per_step")))
        steps = row["spec"] if table.get("steps", "spec") == "spec" else table["steps"]
        own = settings + [f"{k}={row[k]}" for k in row if "." in k]
        name = f"{path.stem}/{row['spec']}" + (f" {row['cluster']}" if "cluster" in row else "")
        cases.append(
            Case(
                name,
                of_spec[row["spec"]],
                ms,
                row.get("cluster", cluster),
                own,
                steps,
                path,
                table,
                row.get("micro_batches"),
            )
        )
        # A sweep names the rows by a pattern, or those up to a name in the alphabet.
        pattern, last = table.get("seen_rows"), table.get("seen_until")
        if (pattern and re.search(pattern, row["spec"])) or (last and row["spec"] <= last):
            cases[-1].seen = table.get("seen", "yes")
    return cases


def record(recording, directory, quiet):
    """Runs the command. Returns an error message, or None."""
    log = directory.with_suffix(".log")
    command = [
        program(),
        "run",
        "--cluster",
        recording.cluster,
        "--out",
        str(directory),
        "--no-predict",
        "--quiet",
        "--ranks",
        recording.ranks,
        *(["--at-once", str(recording.at_once)] if recording.at_once else []),
        "--",
        *recording.words(),
    ]
    if not quiet:
        print(f"recording {directory.name}", file=sys.stderr, flush=True)
    began = time.monotonic()
    with log.open("w") as output:
        try:
            code = subprocess.run(
                command,
                cwd=recording.root,
                env={**os.environ, **recording.environment},
                stdout=output,
                stderr=subprocess.STDOUT,
                timeout=recording.patience,
            ).returncode
        except subprocess.TimeoutExpired:
            return f"not recorded within {recording.patience} s; see {log}"
    if code or not list(directory.glob("rank-*.maya")):
        return f"the command ended with code {code}; see {log}"
    (directory / "validated.json").write_text(
        json.dumps({"seconds": time.monotonic() - began, "command": recording.command})
    )
    return None


def predict(case, directory, extra):
    """The result of a case for the table: the prediction, or a `problem`."""
    def one(steps):
        command = [program(), "predict", str(directory), "--cluster", case.cluster, "--steps", steps, "--json", *extra]
        for setting in case.settings:
            command += ["--set", setting]
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode:
            lines = done.stderr.strip().splitlines()
            # The page is committed, so it must not contain paths of this machine.
            said = lines[-1].removeprefix("maya: ").replace(f"{directory}: ", "") if lines else ""
            raise MayaError(said or f"code {done.returncode}")
        # Kept beside the recording: its table of ops is where to look for the cause of an error.
        (directory / f"{re.sub('[^A-Za-z0-9_.-]+', '_', case.id + '-' + steps)}.json").write_text(done.stdout)
        prediction = json.loads(done.stdout)
        if not prediction.get("step"):
            raise MayaError("out of memory in the prediction")
        return prediction

    try:
        if case.micro_batches:
            single, prediction = one(f"{case.steps}@1"), one(f"{case.steps}@2")
            for part in ("step", "breakdown_ms"):
                for key, value in prediction[part].items():
                    if isinstance(value, float):
                        first = single[part].get(key, 0.0)
                        prediction[part][key] = first + (case.micro_batches - 1) * (value - first)
        else:
            prediction = one(case.steps)
    except MayaError as error:
        return {"problem": str(error)}
    step, coverage = prediction["step"], prediction["coverage"]
    return {
        "predicted_ms": step["ms"],
        "low_ms": step["low_ms"],
        "high_ms": step["high_ms"],
        "error": step["ms"] / case.measured_ms - 1,
        "inside": step["low_ms"] <= case.measured_ms <= step["high_ms"],
        "breakdown_ms": prediction["breakdown_ms"],
        "peak_bytes": max((m["peak_bytes"] for m in prediction["memory"]), default=0),
        "reserved_bytes": max((m["reserved_bytes"] for m in prediction["memory"]), default=0),
        "coverage": {k: coverage[k] for k in ("measured", "fitted", "first_principles")},
        "unknown": len(coverage["unknown_kernels"]),
        "unimplemented": len(coverage["unimplemented_calls"]),
    }


def run(cases, options):
    """One result per case, in order."""
    versions = {p: frameworks(p) for p in {c.recording.python for c in cases}}
    places, todo = {}, {}
    for case in cases:
        key = case.recording.key(versions[case.recording.python])
        places[case] = options.runs / key
        if options.fresh or not (options.runs / key / "validated.json").exists():
            todo.setdefault(key, case.recording)
    failures = {}
    if todo and not options.no_record:
        options.runs.mkdir(parents=True, exist_ok=True)
        with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
            jobs = {key: pool.submit(record, r, options.runs / key, options.json) for key, r in todo.items()}
            failures = {key: job.result() for key, job in jobs.items()}
    elif todo:
        failures = dict.fromkeys(todo, "not recorded yet")

    def result(case):
        found = {
            "id": case.id,
            "set": case.set,
            "seen": case.seen,
            "measured_ms": case.measured_ms,
            "cluster": case.cluster,
            "torch": versions[case.recording.python]["torch"],
            "asked_torch": str(case.table.get("environment", {}).get("torch", "")),
            "directory": str(places[case]),
        }
        problem = failures.get(places[case].name)
        return {**found, **({"problem": problem} if problem else predict(case, places[case], options.extra))}

    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        return list(pool.map(result, cases))


def quantile(values, q):
    values = sorted(values)
    at = q * (len(values) - 1)
    low = int(at)
    return values[low] + (at - low) * (values[min(low + 1, len(values) - 1)] - values[low])


def summary(results):
    errors = [r["error"] for r in results if "error" in r]
    if not errors:
        return None
    absolute = [abs(e) for e in errors]
    return {"cases": len(errors), "failed": len(results) - len(errors), "mean": statistics.mean(absolute),
            "median": statistics.median(absolute), "p90": quantile(absolute, 0.9), "worst": max(absolute),
            "bias": statistics.median(errors), "within_5": sum(a <= 0.05 for a in absolute) / len(errors),
            "within_15": sum(a <= 0.15 for a in absolute) / len(errors),
            "inside": sum(r["inside"] for r in results if "error" in r) / len(errors)}


def percent(x):
    return f"{100 * x:.1f} %"


def show(results):
    print(f"{'case':44s} {'measured':>10s} {'predicted':>10s} {'error':>8s}  {'80 % interval':>21s}     fitted")
    for r in results:
        if "problem" in r:
            print(f"{r['id']:44s} {r['measured_ms']:7.1f} ms  {r['problem']}")
            continue
        print(
            f"{r['id']:44s} {r['measured_ms']:7.1f} ms {r['predicted_ms']:7.1f} ms {100 * r['error']:+7.1f}%  "
            f"{r['low_ms']:8.1f} – {r['high_ms']:8.1f}  {'  ' if r['inside'] else '* '} "
            f"{100 * (r['coverage']['measured'] + r['coverage']['fitted']):4.0f} %"
            + (f", {r['unknown']} unknown kernels" if r["unknown"] else "")
        )
    for name in dict.fromkeys(r["set"] for r in results):
        s = summary([r for r in results if r["set"] == name])
        if s:
            print(
                f"{name}: {s['cases']} cases, mean {percent(s['mean'])}, median {percent(s['median'])}, 90th "
                f"{percent(s['p90'])}, worst "
                f"{percent(s['worst'])}, bias {percent(s['bias'])}, within 5 %: {percent(s['within_5'])}, inside the "
                f"interval: {percent(s['inside'])}"
                + (f"; {s['failed']} without a result" if s["failed"] else "")
            )


def main(arguments=None):
    tree = pathlib.Path(__file__).resolve().parents[2]
    parser = argparse.ArgumentParser(
        prog="maya validate", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "cases", nargs="*", metavar="CASE", help="names or files of cases and sweeps; default: those of --set"
    )
    parser.add_argument(
        "--set",
        choices=["quick", "all"],
        default="quick",
        dest="which",
        help="quick: single cases of one GPU; all: every case and sweep",
    )
    parser.add_argument("--rows", type=int, help="at most so many rows of a sweep, spread over it")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--folder", type=pathlib.Path, default=tree / "validation", help="holds cases/ and sweeps/")
    parser.add_argument(
        "--runs", type=pathlib.Path, default=pathlib.Path("maya-runs/validate"), help="where the recordings are kept"
    )
    parser.add_argument(
        "--python",
        action="append",
        default=[],
        metavar="[VERSION=]PATH",
        help="interpreter to run cases with, or those measured with this torch",
    )
    parser.add_argument("--fresh", action="store_true", help="record again")
    parser.add_argument("--no-record", action="store_true", help="only what is recorded already")
    parser.add_argument("--calibration", help="file of `maya calibrate`")
    parser.add_argument(
        "--what-if", action="append", default=[], metavar="KEY=VALUE", help="as `maya predict --set`, for every case"
    )
    parser.add_argument("--write", type=pathlib.Path, metavar="FILE.md", help="write the tables of the documentation")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args(arguments)
    options.root = options.folder.resolve().parent
    options.runs = options.runs.resolve()
    options.python_words, options.python, options.pythons = options.python, sys.executable, {}
    for word in options.python_words:
        version, equals, path = word.partition("=")
        if equals:
            options.pythons[version] = path
        else:
            options.python = word
    options.extra = ["--calibration", options.calibration] if options.calibration else []
    for setting in options.what_if:
        options.extra += ["--set", setting]
    try:
        known = {p.stem: p for folder in ("cases", "sweeps") for p in sorted((options.folder / folder).glob("*.toml"))}
        if not known:
            raise MayaError(f"no cases in {options.folder}; name the folder with --folder")
        chosen = []
        for name in options.cases or known:
            path = pathlib.Path(name) if name.endswith(".toml") else known.get(name)
            if not path or not path.exists():
                raise MayaError(f"no case {name}; there are {', '.join(known)}")
            cases = load(path, options)
            if options.cases or options.which == "all" or cases[0].table.get("quick"):
                chosen += cases
        results = run(chosen, options)
    except (MayaError, tomllib.TOMLDecodeError, KeyError) as error:
        print(f"maya: {f'a case lacks {error}' if isinstance(error, KeyError) else error}", file=sys.stderr)
        return 1
    if options.write:
        from maya import validate_report

        options.write.write_text(validate_report.page(chosen, results))
    if options.json:
        print(
            json.dumps(
                {
                    "level": LEVEL,
                    "summary": {
                        n: summary([r for r in results if r["set"] == n])
                        for n in dict.fromkeys(r["set"] for r in results)
                    },
                    "results": results,
                },
                indent=1,
            )
        )
    else:
        show(results)
    return 1 if all("problem" in r for r in results) else 0


if __name__ == "__main__":
    sys.exit(main())
