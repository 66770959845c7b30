"""maya serve-bench: starts a serving engine on an emulated cluster, runs a load in virtual time and prints the figures.

The command after `--` starts the engine and is not changed. Engine and client share the job's virtual time, so that
TTFT, TPOT, ITL, E2E and throughput are the predicted ones. They are printed, and prediction.json has them under
`serving`."""

from __future__ import annotations

import argparse
import json
import os
import pathlib
import pickle
import socket
import subprocess
import sys
import tempfile

from maya import MayaError, files, program
from maya.serve_bench import load, metrics, table


def words(arguments: list[str]) -> tuple[list[str], list[str]]:
    if "--" not in arguments:
        return arguments, []
    at = arguments.index("--")
    return arguments[:at], arguments[at + 1 :]


def parser() -> argparse.ArgumentParser:
    result = argparse.ArgumentParser(
        prog="maya serve-bench",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        usage="maya serve-bench --cluster SPEC --load FILE|KEY=VALUE… [options] -- ENGINE COMMAND…",
        epilog="Keys of a load:\n"
        + "\n".join(f"  {key + '=':<14}{what}" for key, what in load.KEYS.items())
        + "\n\nFiles: JSON lines with token ids (prompt_token_ids or input_tok_ids, output_len or output_toks,\n"
        "arrival_time in seconds, timestamp in ms or arrival_time_ns), Mooncake's JSON lines (hash_ids),\n"
        "Azure's CSV of 2023.\n\nExample:\n"
        "  maya serve-bench --cluster h100-sxm --load rate=8 requests=64 input=1024 output=128 -- \\\n"
        "    vllm serve MODEL --load-format dummy --port 8123\n\n"
        "{port} in the engine's command stands for a free port.",
    )
    result.add_argument("--cluster", default="h100-sxm", help="as for `maya run`")
    result.add_argument(
        "--load",
        nargs="+",
        action="append",
        required=True,
        metavar="FILE|KEY=VALUE",
        help="what is asked of the engine; several --load run one after the other",
    )
    result.add_argument(
        "--url", help="where the engine answers (default: its --host and --port, else port 8000, SGLang 30000)"
    )
    result.add_argument(
        "--slo", default="", metavar="LIMITS", help='what a good request keeps, for goodput: "ttft<500ms,tpot<20ms"'
    )
    result.add_argument(
        "--capacity",
        default="",
        metavar="LIMIT",
        help='find the highest rate that keeps e.g. "p99_ttft<500ms", with the requests of the first load',
    )
    result.add_argument(
        "--warmup", type=int, default=1, metavar="N", help="requests before the first load that do not count (1)"
    )
    result.add_argument("--out", help="run directory, as for `maya run`")
    result.add_argument("--json", action="store_true", help="print the figures as JSON")
    result.add_argument(
        "--run-option",
        action="append",
        default=[],
        metavar="WORD",
        help="one more word for `maya run`, e.g. --run-option=--no-report",
    )
    return result


def option(command: list[str], name: str) -> str | None:
    for at, word in enumerate(command):
        if word == name and at + 1 < len(command):
            return command[at + 1]
        if word.startswith(name + "="):
            return word.partition("=")[2]
    return None


def url_of(command: list[str]) -> str:
    host = option(command, "--host") or "127.0.0.1"
    default = "30000" if any("sglang" in word for word in command[:3]) else "8000"
    if host in ("0.0.0.0", "::", "localhost"):
        host = "127.0.0.1"
    return f"http://{host}:{option(command, '--port') or default}"


def with_port(command: list[str]) -> list[str]:
    """The command with a free port in place of `{port}`, so that several engines can run at once."""
    if not any("{port}" in word for word in command):
        return command
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = str(probe.getsockname()[1])
    return [word.replace("{port}", port) for word in command]


def rate_of(words_of_load: list[str]) -> float:
    return next((float(word.partition("=")[2]) for word in words_of_load if word.startswith("rate=")), 0.0)


def run_directory(options: argparse.Namespace) -> str:
    if options.out:
        return options.out
    number = 1
    while os.path.exists(f"maya-runs/serve-bench-{number}"):
        number += 1
    return f"maya-runs/serve-bench-{number}"


def run(options: argparse.Namespace, command: list[str]) -> int:
    loads = [load.parse(each) for each in options.load]
    for text, of_load in ((options.slo, False), (options.capacity, True)):
        if text:
            metrics.limits(text, of_load)
    out = run_directory(options)
    command = with_port(command)
    plan = {
        "url": options.url or url_of(command),
        "slo": options.slo,
        "capacity": options.capacity,
        "warmup": options.warmup,
        "seed": 1,
        "first_rate": rate_of(options.load[0]) or 1.0,
    }
    with tempfile.TemporaryDirectory(prefix="maya-serve-bench-") as folder:
        pathlib.Path(folder, "plan.json").write_text(json.dumps(plan))
        with open(pathlib.Path(folder, "loads.pickle"), "wb") as file:
            pickle.dump(loads, file)
        words_of_run = [
            program(),
            "run",
            "--clock",
            "virtual",
            "--cluster",
            options.cluster,
            "--out",
            out,
            *options.run_option,
            "--",
            sys.executable,
            "-m",
            "maya.serve_bench.inside",
            str(pathlib.Path(folder, "plan.json")),
            *command,
        ]
        code = subprocess.call(words_of_run, stdout=sys.stderr if options.json else None)
    found = pathlib.Path(out) / "serving.json"
    if not found.exists():
        return code or 1
    serving = files.parse_json(files.read_text(found))
    print(json.dumps(serving, indent=1) if options.json else "\n" + table.text(serving))
    return 1 if any(each["failed"] for each in serving["loads"]) else code


def main() -> int:
    before, command = words(sys.argv[1:])
    options = parser().parse_args(before)
    if not command:
        print("maya: name the command that starts the engine after `--`", file=sys.stderr)
        return 2
    try:
        return run(options, command)
    except MayaError as problem:
        print(f"maya: {problem}", file=sys.stderr)
        return 2 if isinstance(problem, load.BadLoad) else 1
    except KeyboardInterrupt:
        return 130


if __name__ == "__main__":
    sys.exit(main())
