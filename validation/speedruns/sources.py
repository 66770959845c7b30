"""Training scripts as their published logs hold them.

Each log of the project begins with the full source of the script that wrote it, then a line of equals signs, then the
environment, then a line per step.
"""

from __future__ import annotations

import pathlib
import re
import subprocess

COUNT = r"num_(?:scheduled_)?iterations"


def log_text(repository: pathlib.Path, log: str) -> str:
    """A file of the newest commit; the repository may be bare."""
    return subprocess.run(["git", "-C", str(repository), "show", f"HEAD:{log}"], capture_output=True, check=True,
                          text=True, errors="replace").stdout


def script_of(text: str) -> str:
    """What stands before the first separator, or between the first two where the log begins with one."""
    parts = re.split(r"^={80,}\n", text, flags=re.M)
    return parts[0] if parts[0].strip() else parts[1]


def files_of(text: str) -> dict[str, str]:
    """The script as train_gpt.py, and the modules of its own that later logs hold behind it, each under its name."""
    script, *rest = re.split(r"^-{40}\n# (\w+\.py)\n-{40}\n", script_of(text), flags=re.M)
    return {"train_gpt.py": script, **dict(zip(rest[::2], rest[1::2]))}


def log_folders(script: str) -> list[str]:
    """Folders that its author had made for the logs: a script makes only `logs`, and some put a folder into the name."""
    return [f"logs/{name}" for name in re.findall(r"""^\s*run_id\b.*=\s*f["']([\w/-]+)/\{""", script, flags=re.M)]


def iterations(script: str) -> int:
    """The number of steps that the script is written for."""
    return int(re.search(rf"^\s*{COUNT}\s*(?::\s*int\s*)?=\s*(\d+)", script, flags=re.M)[1])


def shortened(script: str, steps: int) -> str:
    """The script with another number of steps and no other change: schedules go by the share of steps that are done."""
    return re.sub(rf"^(\s*{COUNT}\s*(?::\s*int\s*)?=\s*)\d+", rf"\g<1>{steps}", script, count=1, flags=re.M)


def step_times(text: str) -> dict[int, float]:
    """Milliseconds of each training step, from the running time that the script printed behind it."""
    times, before = {}, (0, 0.0)
    for line in text.splitlines():
        if "val_loss" in line or not (found := re.match(r"step:(\d+)/\d+ .*?train_time:([\d.]+)(m?s)", line)):
            continue
        step, total = int(found[1]), float(found[2]) * (1 if found[3] == "ms" else 1000)
        if step == before[0] + 1 and before[1] > 0 and total > before[1]:
            times[step] = total - before[1]
        before = (step, total)
    return times
