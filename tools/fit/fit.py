#!/usr/bin/env python3
"""Fits every kernel model on a folder of measurements: tools/fit/fit.py MEASUREMENTS_DIR

Writes catalog/models/fitted.model, docs/accuracy-kernels.md and src/estimate/golden.csv; running it again gives the same bytes. Each family
is fitted per GPU (parameters of the physical model, then a bounded correction), cross-validated by leaving out whole
models or shapes, and, over all GPUs together, by leaving out whole GPUs.
Needs numpy, scipy, pandas, lightgbm and a C++ compiler: the fit runs the C++ models that are shipped.
"""
import os

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[variable] = "1"

import argparse
import pathlib
import sys
import time

import numpy as np

import data
import families
import family
import report
import shipped

ROOT = pathlib.Path(__file__).resolve().parents[2]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("measurements", type=pathlib.Path)
    parser.add_argument("--only", help="families whose name contains this, for a quick look; writes nothing")
    parser.add_argument("--out", type=pathlib.Path, default=ROOT, help="tree to write into")
    arguments = parser.parse_args()
    if not (arguments.measurements / "gemm_fp16.csv.gz").exists():
        sys.exit(f"fit.py: no gemm_fp16.csv.gz in {arguments.measurements}: expected the measurements folder")
    chips = {name: shipped.Chip(sheet) for name, sheet in data.sheets().items()}
    sections, rows = [], []
    for step in families.STEPS:
        if arguments.only and arguments.only not in step.__name__:
            continue
        begin = time.time()
        more = (sections,) if step in (families.conv_plain, families.conv_directions) else ()
        made_sections, made_rows = step(arguments.measurements, chips, *more)
        sections += made_sections
        rows += made_rows
        for row in made_rows:
            print(report.line(row), flush=True)
        print(f"# {step.__name__}: {time.time() - begin:.0f} s", file=sys.stderr, flush=True)
    if arguments.only:
        return
    for folder in ("catalog/models", "src/estimate"):
        (arguments.out / folder).mkdir(parents=True, exist_ok=True)
    (arguments.out / "catalog/models/fitted.model").write_text(report.model_file(sections))
    (arguments.out / "src/estimate/golden.csv").write_text(report.golden(family.GOLDEN))
    (arguments.out / "docs").mkdir(exist_ok=True)
    (arguments.out / "docs/accuracy-kernels.md").write_text(report.page(rows))


if __name__ == "__main__":
    main()
