"""Where in a space's file a mistake is."""

from __future__ import annotations

import difflib
import pathlib
import re
from typing import Iterable

from maya import MayaError


class SpaceError(MayaError):
    """SPACE.toml is wrong; the message names the file, the line and what to do."""


class Locator:
    """Line numbers of tables and keys: the TOML reader keeps none."""

    def __init__(self, path: pathlib.Path, text: str):
        self.path, self.lines = path, text.splitlines()

    def of(self, table: str, key: str = "") -> str:
        current, fallback = "", 0
        for number, line in enumerate(self.lines, 1):
            header = re.match(r"\s*\[+\s*([^\]]+?)\s*\]+", line)
            if header and "=" not in line.split("]")[0]:
                current = header[1].replace('"', "").replace("'", "")
                if current == table or (key and current == f"{table}.{key}"):
                    fallback = fallback or number
                    if not key or current == f"{table}.{key}":
                        return f"{self.path}:{number}"
                continue
            if key and current == table and re.match(rf"""\s*["']?{re.escape(key)}["']?\s*=""", line):
                return f"{self.path}:{number}"
        return f"{self.path}:{fallback}" if fallback else str(self.path)


def suggestion(word: str, known: Iterable[str]) -> str:
    near = difflib.get_close_matches(word, list(known), 1)
    return f"; did you mean `{near[0]}`?" if near else ""
