"""Runs public code bases unmodified under `maya run --stop-after 3` and checks what was predicted.

    python tests/codebases/run.py --sources ~/src                      all whose folder is there
    python tests/codebases/run.py --sources ~/src nanogpt dit --bin ~/venvs/train/bin

SOURCES holds clones by their usual names (nanoGPT, DiT, examples, Megatron-LM …); data and tokenizers are synthetic and
are written to --data. A code base passes when the command was ended with code 0 after steps found by their updates, no
kernel or call is unknown, and throughput has the right unit and amount. A table of the results goes to the terminal.
"""

from __future__ import annotations

import argparse
import json
import os
import pathlib
import shlex
import subprocess
import sys
import tempfile
import time

from codebases import CODE_BASES, CodeBase

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]


def link_data(base: CodeBase, folder: pathlib.Path, data: pathlib.Path) -> None:
    """Puts data where the script looks for it, unless something is there."""
    for name, part in base.links:
        place = folder / name
        if not place.exists():
            place.parent.mkdir(parents=True, exist_ok=True)
            place.symlink_to(data / part, target_is_directory=True)


def problems(base: CodeBase, code: int, prediction: dict | None) -> list[str]:
    found = [] if code == 0 else [f"exit code {code}"]
    if prediction is None:
        return found + ["no prediction"]
    if prediction["step"] is None:
        return found + [prediction["no_step"]]
    if prediction["step"]["found_by"] not in base.found_by:
        found.append(f"steps found by {prediction['step']['found_by']}")
    rate = prediction["throughput"] or {"unit": "none", "per_step": 0}
    if rate["unit"] != base.unit or abs(rate["per_step"] - base.per_step) > 0.02 * base.per_step:
        found.append(f"{rate['per_step']:g} {rate['unit']} a step, not {base.per_step:g} {base.unit}")
    coverage = prediction["coverage"]
    if coverage["unknown"] > 0.02:
        found.append(f"{coverage['unknown']:.1%} of the time unknown")
    found += [f"unimplemented: {call['name']}" for call in coverage["unimplemented_calls"]]
    return found


def run(base: CodeBase, options: argparse.Namespace) -> bool:
    data, out = options.data.resolve(), options.out.resolve() / base.name
    bin = options.bin.absolute()
    folder = (options.sources / base.folder).resolve() if base.folder else data
    subprocess.run([bin / "python", HERE / "data.py", data, *base.data], check=True,
                   env={**os.environ, "LD_LIBRARY_PATH": str(ROOT / "build/lib/maya")}, stdout=subprocess.DEVNULL)
    link_data(base, folder, data)
    words = shlex.split(base.command.replace("{data}", str(data)).replace("{here}", str(HERE)))
    environment = {**os.environ, **dict(base.variables), "PATH": f"{bin}:{os.environ['PATH']}", "HF_HUB_OFFLINE": "1",
                   "WANDB_MODE": "disabled"}
    options.out.mkdir(parents=True, exist_ok=True)
    begin = time.monotonic()
    with (options.out / f"{base.name}.log").open("w") as log:
        try:
            code = subprocess.run([options.maya, "run", "--cluster", base.cluster, "--stop-after", "3", "--out", out,
                                   "--", *words], cwd=folder, env=environment, stdout=log, stderr=subprocess.STDOUT,
                                  timeout=base.timeout).returncode
        except subprocess.TimeoutExpired:
            code = 124
    seconds = time.monotonic() - begin
    path = out / "prediction.json"
    prediction = json.loads(path.read_text()) if code != 124 and path.exists() else None
    wrong = problems(base, code, prediction)
    step = prediction["step"] if prediction else None
    rate = prediction["throughput"] if prediction else None
    print(f"| {base.name} | {'yes' if not wrong else '**no**: ' + '; '.join(wrong)} "
          f"| {f'''{step['ms']:,.4g} ms''' if step else ''} "
          f"| {f'''{rate['per_step']:,g} {rate['unit']}''' if rate else ''} "
          f"| {f'''{prediction['coverage']['unknown']:.1%}''' if prediction else ''} | {seconds:.0f} s |", flush=True)
    return not wrong


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", help="all whose folder is there, unless named")
    parser.add_argument("--sources", type=pathlib.Path, default=pathlib.Path(os.environ.get("SOURCES", ".")),
                        help="folder of the clones ($SOURCES)")
    parser.add_argument("--bin", type=pathlib.Path, default=pathlib.Path(sys.executable).parent,
                        help="of the environment they run in")
    parser.add_argument("--maya", default=str(ROOT / ".venv/bin/maya"))
    parser.add_argument("--data", type=pathlib.Path, default=pathlib.Path(tempfile.gettempdir()) / "maya-codebases")
    parser.add_argument("--out", type=pathlib.Path, default=pathlib.Path("maya-runs/codebases"))
    chosen = parser.parse_args()
    known = {base.name: base for base in CODE_BASES}
    if unknown := set(chosen.names) - set(known):
        parser.error(f"no such code base: {', '.join(sorted(unknown))}; there are {', '.join(known)}")
    there = [base for base in CODE_BASES if (chosen.sources / base.folder).is_dir()]
    print("| code base | as expected | step | a step processes | unknown | time |\n|---|---|---|---|---|---|")
    results = [run(base, chosen) for base in ([known[name] for name in chosen.names] or there)]
    sys.exit(0 if all(results) else 1)
