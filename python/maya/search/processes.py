"""Processes of a trial on this machine: started in a session of their own, measured, and ended with all they
started."""

from __future__ import annotations

import ctypes
import os
import pathlib
import signal
import subprocess
import time
from typing import Iterable, Mapping, Sequence

MARK = "MAYA_SEARCH_TRIAL"
_PR_SET_PDEATHSIG, _PR_SET_CHILD_SUBREAPER = 1, 36
_libc = ctypes.CDLL(None, use_errno=True)


def adopt_orphans() -> None:
    """Processes whose parent ends become ours, so that none of a trial can get away."""
    _libc.prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def start(words: Sequence[str], environment: Mapping[str, str], mark: str, output: pathlib.Path,
          directory: str | None) -> subprocess.Popen:
    def dies_with_us() -> None:
        _libc.prctl(_PR_SET_PDEATHSIG, signal.SIGTERM, 0, 0, 0)

    with open(output, "wb") as file:
        return subprocess.Popen(list(words), stdin=subprocess.DEVNULL, stdout=file, stderr=subprocess.STDOUT,
                                env={**environment, MARK: mark}, cwd=directory, start_new_session=True,
                                preexec_fn=dies_with_us)


def _parents() -> dict[int, int]:
    found = {}
    for name in os.listdir("/proc"):
        if not name.isdigit():
            continue
        try:
            stat = pathlib.Path("/proc", name, "stat").read_bytes()
            found[int(name)] = int(stat[stat.rindex(b")") + 2:].split()[1])
        except (OSError, ValueError, IndexError):
            continue
    return found


def _has_mark(pid: int, mark: str) -> bool:
    try:
        return f"{MARK}={mark}".encode() in pathlib.Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
    except OSError:
        return False


def of_trial(root: int, mark: str) -> list[int]:
    """The processes of a trial: descendants of its first one, and orphans of it that came to us."""
    parents = _parents()
    children: dict[int, list[int]] = {}
    for pid, parent in parents.items():
        children.setdefault(parent, []).append(pid)
    roots = [root] if root in parents else []
    roots += [pid for pid in children.get(os.getpid(), []) if pid != root and _has_mark(pid, mark)]
    found, waiting = [], roots
    while waiting:
        pid = waiting.pop()
        found.append(pid)
        waiting += children.get(pid, [])
    return found


def memory_gib(pids: Sequence[int]) -> float:
    """Memory that these processes hold for themselves."""
    total = 0
    for pid in pids:
        try:
            for line in pathlib.Path(f"/proc/{pid}/status").read_text().splitlines():
                if line.startswith(("RssAnon:", "RssShmem:")):
                    total += int(line.split()[1])
        except (OSError, ValueError, IndexError):
            continue
    return total / 2**20


def end(process: subprocess.Popen, mark: str, grace: float = 5.0) -> None:
    """Ends a trial and all its descendants: SIGTERM first, then SIGKILL."""
    pids = of_trial(process.pid, mark)
    for pid in pids:
        _signal(pid, signal.SIGTERM)
    deadline = time.monotonic() + grace
    while time.monotonic() < deadline:
        process.poll()
        if not [pid for pid in of_trial(process.pid, mark) if not _dead(pid)]:
            break
        time.sleep(0.05)
    for pid in of_trial(process.pid, mark):
        _signal(pid, signal.SIGKILL)
    process.wait()
    collect(pids, process.pid)


def collect(seen: Iterable[int], own: int) -> None:
    """Takes leave of orphans of a trial that came to us and have ended."""
    for pid in seen:
        if pid != own and _dead(pid):
            try:
                os.waitpid(pid, os.WNOHANG)
            except (ChildProcessError, PermissionError):
                continue  # not a child of this process


def _signal(pid: int, number: int) -> None:
    try:
        os.kill(pid, number)
    except (ProcessLookupError, PermissionError):
        pass


def _dead(pid: int) -> bool:
    try:
        stat = pathlib.Path(f"/proc/{pid}/stat").read_bytes()
        return stat[stat.rindex(b")") + 2:].split()[0] in (b"Z", b"X")
    except (OSError, ValueError, IndexError):
        return True


def available_gib() -> float:
    for line in pathlib.Path("/proc/meminfo").read_text().splitlines():
        if line.startswith("MemAvailable:"):
            return int(line.split()[1]) / 2**20
    return 4.0


def cores() -> int:
    return len(os.sched_getaffinity(0))
