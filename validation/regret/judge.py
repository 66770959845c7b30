"""Compares written-down predictions with what was measured: is the configuration we would choose the best one?

    python validation/regret/judge.py FOLDER [JOB…]

Regret: measured time of our first choice over that of the measured best, less one. A first choice that ran out of memory has
no measured time: the next of our list is taken, and the job is marked. Rows that may fit are in the list, as a user would
try them. They, and rows that fit by less than the error of predicted memory, are left out where it is counted how often
"fits" was right. The rank correlation is Spearman's, over rows that were
measured and predicted to fit. Rows with equal layouts (a sweep repeats some) count once, with their mean.
"""

from __future__ import annotations

import csv
import pathlib
import sys
from collections import defaultdict
from statistics import mean

from jobs import JOBS, rows

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parents[1] / "python"))
from maya.search.outcome import MEMORY_ERROR  # noqa: E402


def measured(job, folder) -> dict[str, float | None]:
    """Seconds a step by layout; None: out of memory."""
    layouts, times = rows(job, folder), defaultdict(list)
    with open(folder / job.file, newline="") as file:
        for row in csv.DictReader(file):
            if row["trial"] in layouts:
                try:
                    times[layouts[row["trial"]].name].append(float(row["step_s"]))
                except ValueError:
                    times[layouts[row["trial"]].name].append(None)
    return {name: None if None in values else mean(values) for name, values in times.items()}


def ranks(values):
    order = sorted(range(len(values)), key=values.__getitem__)
    place = [0] * len(values)
    for position, index in enumerate(order):
        place[index] = position
    return place


def correlation(a, b):
    a, b = ranks(a), ranks(b)
    count = len(a)
    return 1 - 6 * sum((x - y) ** 2 for x, y in zip(a, b)) / (count * (count**2 - 1)) if count > 2 else 1.0


def judge(name, folder, detail):
    truth = measured(JOBS[name], folder)
    with (HERE / f"{name}.csv").open() as file:
        ours = {row["layout"]: row for row in csv.DictReader(file)}
    both = sorted(set(truth) & set(ours))
    times = {layout: float(ours[layout]["step_s"]) if ours[layout]["fits"] != "0" else None for layout in both}
    chosen = sorted((layout for layout in both if times[layout]), key=times.__getitem__)
    best = min((layout for layout in both if truth[layout]), key=truth.__getitem__)
    first = next(layout for layout in chosen if truth[layout])
    unsure = [layout for layout in both if ours[layout]["fits"] == "may" or times[layout]
              and float(ours[layout]["peak_gib"]) > (1 - MEMORY_ERROR) * float(ours[layout]["capacity_gib"])]
    too_good = [layout for layout in both if times[layout] and not truth[layout] and layout not in unsure]
    too_bad = [layout for layout in both if truth[layout] and not times[layout]]
    shared = [layout for layout in both if times[layout] and truth[layout]]
    if detail:
        for layout in sorted(shared, key=truth.__getitem__):
            print(f"  {layout:28} measured {truth[layout]:8.2f} predicted {times[layout]:8.2f} {times[layout] / truth[layout] - 1:+7.1%}")
        print("  predicted to fit, ran out of memory:", ", ".join(f"{l} ({ours[l]['peak_gib']})" for l in too_good) or "none")
        print("  may fit:", ", ".join(f"{l} ({'measured' if truth[l] else 'ran out of memory'})" for l in unsure) or "none")
        print("  predicted not to fit, measured:", ", ".join(too_bad) or "none")
    return {"job": name, "rows": len(both), "missing": len(truth) - len(both), "choice": first, "best": best,
            "regret": truth[first] / truth[best] - 1, "first ran out of memory": chosen[0] != first,
            "correlation": correlation([times[l] for l in shared], [truth[l] for l in shared]),
            "best in three": best in chosen[:3], "fits right": 1 - (len(too_good) + len(too_bad)) / (len(both) - len(unsure)), "may fit": len(unsure),
            "too good": len(too_good), "too bad": len(too_bad), "error": mean(times[l] / truth[l] - 1 for l in shared)}


def main() -> None:
    words = [word for word in sys.argv[1:] if word != "--detail"]
    folder = pathlib.Path(words[0])
    names = words[1:] or [name for name in JOBS if (HERE / f"{name}.csv").exists()]
    results = [judge(name, folder, "--detail" in sys.argv) for name in names]
    for result in results:
        print(", ".join(f"{key} {value:.3f}" if isinstance(value, float) else f"{key} {value}" for key, value in result.items()))
    print(f"mean regret {mean(r['regret'] for r in results):.2%}, worst {max(r['regret'] for r in results):.2%}, fits right for "
          f"{sum(r['fits right'] * (r['rows'] - r['may fit']) for r in results) / sum(r['rows'] - r['may fit'] for r in results):.1%} "
          f"of rows, {sum(r['may fit'] for r in results)} undecided")


if __name__ == "__main__":
    main()
