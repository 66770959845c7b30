"""Reads files that other people may have made, and writes files that nobody else can redirect (as src/base/files.h)."""

from __future__ import annotations

import errno
import json
import os
import stat
from typing import Any

MOST_JSON = 256 << 20  # bytes of a prediction.json or of the results of a search


def read_text(path: str | os.PathLike, most: int = MOST_JSON, follow: bool = True) -> str:
    """The text of a regular file of at most `most` bytes. Raises OSError for a FIFO, a device or a larger file, which
    would block the program or exhaust its memory. `follow`: a symbolic link is followed and not an error."""
    flags = os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | (0 if follow else os.O_NOFOLLOW)
    with open(os.open(path, flags), "rb") as file:
        info = os.fstat(file.fileno())
        if not stat.S_ISREG(info.st_mode):
            raise OSError(errno.EINVAL, "it is not a regular file", os.fspath(path))
        data = file.read(most + 1) if info.st_size <= most else b""
        if info.st_size > most or len(data) > most:
            raise OSError(errno.EFBIG, f"it is larger than the {most} bytes such a file may have", os.fspath(path))
        return data.decode(errors="replace")


def parse_json(text: str) -> Any:
    """Parses JSON. Raises ValueError also for what Python accepts although it is not JSON (NaN, Infinity), and for
    nesting that Python's parser cannot follow."""

    def refuse(name: str) -> Any:
        raise ValueError(f"{name} is not a number in JSON")

    try:
        return json.loads(text, parse_constant=refuse)
    except RecursionError:
        raise ValueError("the nesting is too deep") from None


def write_text(path: str | os.PathLike, text: str) -> None:
    """Replaces a file atomically: a reader sees the old or the new text, and a full disk leaves the old one. A symbolic
    link is replaced and not followed. The file is at most as readable as its folder."""
    path = os.fspath(path)
    allowed = os.stat(os.path.dirname(path) or ".").st_mode & 0o666
    for number in range(100):
        temporary = f"{path}.new-{os.getpid()}-{number}"
        try:
            file = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW, allowed)
            break
        except FileExistsError:
            continue
    else:
        raise FileExistsError(errno.EEXIST, "temporary files of earlier attempts are in the way", path)
    try:
        with open(file, "w") as out:
            out.write(text)
        os.replace(temporary, path)
    except BaseException:
        os.unlink(temporary)
        raise
