"""Cheap starts for the trials of a search: their Python programs are forked from processes that have imported torch
already and live as long as the search (docs/starts.md)."""

from __future__ import annotations

import atexit
import os
import pathlib
import shutil
import tempfile


class Starts:
    """The directory of these processes, which `maya run` finds in the environment. They end when its owner, this
    process, does."""

    def __init__(self) -> None:
        # Always in /tmp, regardless of TMPDIR, because paths of sockets must be short.
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="maya-start-", dir="/tmp"))
        (self.folder / "owner").write_text(str(os.getpid()))
        atexit.register(self.close)

    @property
    def environment(self) -> dict[str, str]:
        return {"MAYA_START_DIR": str(self.folder)}

    def close(self) -> None:
        shutil.rmtree(self.folder, ignore_errors=True)
