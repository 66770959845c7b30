"""Compares predictions.csv with what the logs say; the only file here that reads measured times.

    python validation/speedruns/judge.py --repository CLONE [--predictions FILE] [--half look|proof]

Early is the median of steps 20 to 120 of the log, late that of its last hundred.
"""

from __future__ import annotations

import argparse
import csv
import pathlib
import statistics

import sources

HERE = pathlib.Path(__file__).resolve().parent


def measured(text: str, phase: str) -> float:
    times = sources.step_times(text)
    last = max(times)
    low, high = (20, 120) if phase == "early" else (last - 100, last)
    return statistics.median(ms for step, ms in times.items() if low <= step <= high)


def mean(values: list[float]) -> str:
    return f"{100 * statistics.mean(values):.1f} %" if values else "-"


def main() -> None:
    words = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    words.add_argument("--repository", type=pathlib.Path, required=True)
    words.add_argument("--predictions", type=pathlib.Path, default=HERE / "predictions.csv")
    words.add_argument("--half", choices=("look", "proof"), help="only this half of the cases")
    options = words.parse_args()
    with (HERE / "cases.csv").open() as file:
        cases = {case["record"]: case for case in csv.DictReader(file)}
    with options.predictions.open() as file:
        rows = list(csv.DictReader(file))
    latest = {(row["record"], row["phase"]): row for row in rows}
    errors: dict[tuple[str, str], list[float]] = {}
    print("| script | torch | half | phase | measured ms | predicted ms | error | 80 % interval ms | assumed |")
    print("|---|---|---|---|--:|--:|--:|---|--:|")
    for (record, phase), row in sorted(latest.items()):
        case = cases[record]
        if options.half and case["half"] != options.half:
            continue
        name = record.split("/")[1] + (" (medium)" if "medium" in record else "")
        if not row["step_ms"]:
            print(f"| {name} | {case['torch']} | {case['half']} | {phase} | | | | | {row['note']} |")
            continue
        truth = measured(sources.log_text(options.repository, case["log"]), phase)
        predicted, low, high = (float(row[key]) for key in ("step_ms", "low_ms", "high_ms"))
        error = predicted / truth - 1
        errors.setdefault((case["half"], phase), []).append(error)
        outside = "" if low <= truth <= high else r" \*"
        print(f"| {name} | {case['torch']} | {case['half']} | {phase} | {truth:.0f} | {predicted:.1f} | "
              f"{100 * error:+.1f} % | {low:.0f} – {high:.0f}{outside} | {100 * float(row['assumed']):.0f} % |")
    print()
    for (half, phase), found in sorted(errors.items()):
        print(f"{half}, {phase}: {len(found)} scripts, mean {mean([abs(e) for e in found])}, bias {mean(found)}")


if __name__ == "__main__":
    main()
