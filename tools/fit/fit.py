#!/usr/bin/env python3
"""Fits every kernel model on a folder of measurements: tools/fit/fit.py MEASUREMENTS_DIR

Each step of families.py writes a file of its own, catalog/models/fitted-STEP.model, its rows of docs/accuracy-kernels.csv
and its part of src/estimate/golden.csv; docs/accuracy-kernels.md is made from the rows. Running it again gives the same
bytes. A family is fitted per GPU (parameters of the physical model, then a bounded correction), cross-validated by
leaving out whole models or shapes, and, over all GPUs together, by leaving out whole GPUs.
Needs the packages of requirements.txt and a C++ compiler: the fit runs the C++ models that are shipped.
"""
import os

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[variable] = "1"

import argparse
import pathlib
import sys
import time

import data
import families
import family
import ops
import quantization
import shipped
import tables

import report

ROOT = pathlib.Path(__file__).resolve().parents[2]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("measurements", type=pathlib.Path)
    parser.add_argument("--only", help="only the steps whose name contains this; the others' files stay")
    parser.add_argument("--out", type=pathlib.Path, default=ROOT, help="tree to write into")
    arguments = parser.parse_args()
    if not (arguments.measurements / "gemm_fp16.csv.gz").exists():
        sys.exit(f"fit.py: no gemm_fp16.csv.gz in {arguments.measurements}: expected the measurements folder")
    for folder in ("catalog/models", "src/estimate", "docs"):
        (arguments.out / folder).mkdir(parents=True, exist_ok=True)
    chips = {name: shipped.Chip(sheet) for name, sheet in data.sheets().items()}
    # Steps by name: those of families.py, then a GPU and kind of op each of the tables of current libraries.
    learned = {f"ops_{gpu}_{kind}": (gpu, kind) for gpu in tables.GPUS for kind in tables.READERS}
    order = [step.__name__ for step in families.STEPS] + list(learned) + ["ops_any"]
    for step in families.STEPS:
        name = step.__name__
        if arguments.only and arguments.only not in name:
            continue
        begin = time.time()
        family.GOLDEN.clear()
        plain = report.read_params(arguments.out / "catalog/models/fitted-gemm_plain.model")
        more = (plain,) if step in (families.conv_plain, families.conv_directions) else ()
        sections, rows = step(arguments.measurements, chips, *more)
        for row in rows:
            print(report.line(row), flush=True)
        print(f"# {name}: {time.time() - begin:.0f} s", file=sys.stderr, flush=True)
        (arguments.out / f"catalog/models/fitted-{name}.model").write_text(report.model_file(sections))
        report.replace(arguments.out / "src/estimate/golden.csv", report.GOLDEN, order, name, family.GOLDEN)
        report.replace(arguments.out / "docs/accuracy-kernels.csv", report.ROWS, order, name, map(report.cells, rows))
    measured = {gpu: chips[sheet] for gpu, sheet in tables.GPUS.items()}
    for name in order[len(families.STEPS):]:
        if arguments.only and arguments.only not in name:
            continue
        begin = time.time()
        try:
            if name == "ops_any":
                rows, golden = ops.fit_any(arguments.measurements, arguments.out, measured), []
            else:
                gpu, kind = learned[name]
                rows, golden = ops.fit_gpu(arguments.measurements, arguments.out, gpu, measured[gpu], kind)
        except tables.BadTable as error:
            sys.exit(f"fit.py: {error}")
        print(f"# {name}: {time.time() - begin:.0f} s", file=sys.stderr, flush=True)
        report.replace(arguments.out / "src/estimate/golden.csv", report.GOLDEN, order, name, golden)
        report.replace(arguments.out / "docs/accuracy-kernels.csv", report.ROWS, order, name, map(report.cells, rows))
    if not arguments.only or arguments.only in "quantization":
        quantization.fit(arguments.measurements, arguments.out, measured)
    rows = report.read_rows(arguments.out / "docs/accuracy-kernels.csv")
    (arguments.out / "docs/accuracy-kernels.md").write_text(report.page(rows))


if __name__ == "__main__":
    main()
