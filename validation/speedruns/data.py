"""Token shards in the project's format, with documents of the lengths that FineWeb has.

The masks of these scripts depend on where documents begin, so their lengths matter. FineWeb's sample of 10 billion
tokens has about 15 million documents, some 690 tokens each on average, most of them shorter: a log-normal distribution
with that mean and a deviation of one in the logarithm is assumed. The tokens themselves do not matter.
"""

from __future__ import annotations

import math
import pathlib
import sys

import numpy

MAGIC, VERSION, HEADER = 20240520, 1, 256
FIRST_OF_DOCUMENT, VOCABULARY = 50256, 50256
MEAN_LENGTH, DEVIATION = 690, 1.0


def write_shard(path: pathlib.Path, tokens: int, seed: int = 0) -> None:
    chosen = numpy.random.default_rng(seed)
    values = chosen.integers(0, VOCABULARY, tokens, dtype=numpy.uint16)
    typical = math.log(MEAN_LENGTH) - DEVIATION**2 / 2
    lengths = chosen.lognormal(typical, DEVIATION, 2 * tokens // MEAN_LENGTH).astype(numpy.int64)
    begins = numpy.concatenate([[0], numpy.cumsum(numpy.maximum(lengths, 8))])
    values[begins[begins < tokens]] = FIRST_OF_DOCUMENT
    header = numpy.zeros(HEADER, numpy.int32)
    header[:3] = MAGIC, VERSION, tokens
    with path.open("wb") as file:
        file.write(header.tobytes())
        file.write(values.tobytes())


def make(folder: pathlib.Path, shards: int = 40, tokens: int = 100_000_000) -> None:
    """Shards as the project's download leaves them. All are one file: a step sees other tokens than the one before."""
    folder.mkdir(parents=True, exist_ok=True)
    shard = folder / "shard"
    if not shard.exists():
        part = folder / "part"
        write_shard(part, tokens)
        part.rename(shard)
    names = ["fineweb_val_000000.bin", *(f"fineweb_train_{i:06}.bin" for i in range(1, shards + 1))]
    for name in names:
        if not (folder / name).exists():
            (folder / name).symlink_to("shard")


if __name__ == "__main__":
    make(pathlib.Path(sys.argv[1]))
