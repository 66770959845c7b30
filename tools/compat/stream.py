"""Two runs, op by op: the same work was asked of the device, in the same order on every stream."""

from __future__ import annotations

import csv
import io
import pathlib
import subprocess

# Times differ from run to run; everything else must not.
COMPARED = ("ranks", "stream", "kind", "name", "sizes", "collective")


def ops(run: pathlib.Path, maya: pathlib.Path) -> list[tuple[str, ...]]:
    done = subprocess.run([str(maya), "trace", str(run), "--format", "csv"], capture_output=True, text=True, check=True)
    rows = list(csv.DictReader(io.StringIO(done.stdout)))
    # The listing is in order of predicted time; what was asked has the order of the records.
    rows.sort(key=lambda row: (row["ranks"], row["stream"], int(row["record"] or 0)))
    return [tuple(row[column] for column in COMPARED) for row in rows]


def compare(left: pathlib.Path, right: pathlib.Path, maya: pathlib.Path) -> tuple[bool, str]:
    """(the same?, one line)"""
    try:
        a, b = ops(left, maya), ops(right, maya)
    except (subprocess.CalledProcessError, OSError) as error:
        return False, f"could not be compared: {error}"
    for index, (one, other) in enumerate(zip(a, b)):
        if one != other:
            column = next(c for c, x, y in zip(COMPARED, one, other) if x != y)
            x, y = one[COMPARED.index(column)], other[COMPARED.index(column)]
            return False, f"op {index} of {len(a)} differs in {column}: {x[:80]} | {y[:80]}"
    if len(a) != len(b):
        return False, f"{len(a)} ops and {len(b)}"
    return bool(a), f"{len(a):,} ops the same" if a else "no op to compare"
