"""Compares what runner.py predicted with what was measured, and prints the table.

    python judge.py --measurements DIR [--csv FILE] RESULTS

RESULTS is runner.py's folder. Of runs with time stamps, TTFT and E2E count from the arrival. The arrival is a reading
of the wall clock, the other stamps are of the engine's monotonic clock; the offset between both is the least difference
that any request has between its arrival and its queueing. Of closed loops the measured figure is one number, and whether
it is a mean or a median is not said; both are shown.
"""

import argparse
import csv
import json
import pathlib
import sys


def requests(path):
    with open(path) as text:
        return [json.loads(line) for line in text]


def figures(entries):
    """Milliseconds of each request, by name."""
    offset = min(entry["queued_ts"] - entry["arrival_time"] for entry in entries)
    found = {"TTFT": [], "TPOT": [], "E2E": []}
    for entry in entries:
        arrived = entry["arrival_time"] + offset
        found["TTFT"].append((entry["first_token_ts"] - arrived) * 1e3)
        found["E2E"].append((entry["last_token_ts"] - arrived) * 1e3)
        if entry["output_toks"] > 1:
            found["TPOT"].append((entry["last_token_ts"] - entry["first_token_ts"]) / (entry["output_toks"] - 1) * 1e3)
    found["duration"] = [(max(e["last_token_ts"] for e in entries) - min(e["queued_ts"] for e in entries)) * 1e3]
    return found


def percentile(values, share):
    ordered = sorted(values)
    place = (len(ordered) - 1) * share
    low = int(place)
    high = min(low + 1, len(ordered) - 1)
    return ordered[low] + (ordered[high] - ordered[low]) * (place - low)


def judge_requests(result, measurements):
    folder = measurements / result["case"]["measured"]
    known = {entry["request_id"] for entry in result["predicted"]}
    told = figures([entry for entry in requests(folder / "requests.jsonl") if entry["request_id"] in known])
    ours = figures(result["predicted"])
    for name in told:
        for title, share in (("median", 0.5), ("p95", 0.95)) if name != "duration" else (("", 0.5),):
            yield f"{name} {title}".strip(), percentile(told[name], share), percentile(ours[name], share)
    blocks = json.loads((folder / "meta.json").read_text()).get("kv_cache", {}).get("num_gpu_blocks")
    if blocks:
        yield "KV blocks", blocks, result["engine"]["num_gpu_blocks"]


def judge_closed(result, measurements):
    with open(measurements / "engines.csv") as text:
        row = next(row for row in csv.DictReader(text) if row["id"] == result["case"]["id"])
    for name, key in (("TTFT", "ttft_ms"), ("TPOT", "tpot_ms")):
        told = float(row[f"silicon_{key}"])
        for title, statistic in (("median", "p50"), ("mean", "mean")):
            yield f"{name} {title}", told, result["predicted"][key][statistic]


def rows(results, measurements):
    for result in results:
        name = result["case"]["name"]
        if "predicted" not in result:
            yield dict(case=name, figure="", problem=f"no prediction (code {result['code']})")
            continue
        judged = {"requests": judge_requests, "closed": judge_closed}[result["case"]["kind"]]
        for figure, told, ours in judged(result, measurements):
            yield dict(case=name, figure=figure, measured=round(told, 2), predicted=round(ours, 2),
                       error_percent=round((ours / told - 1) * 100, 1))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("results", type=pathlib.Path)
    parser.add_argument("--measurements", type=pathlib.Path, required=True)
    parser.add_argument("--csv", type=pathlib.Path, help="write the rows there, too")
    options = parser.parse_args()
    results = [json.loads(path.read_text()) for path in sorted(options.results.glob("*.json"))
               if not path.name.endswith(".engine.json")]
    if not results:
        sys.exit(f"judge: {options.results} has no results of runner.py")
    found = list(rows(results, options.measurements))
    print(f"{'case':<28}{'ms':<14}{'measured':>12}{'predicted':>12}{'error':>10}")
    for row in found:
        if "problem" in row:
            print(f"{row['case']:<28}{row['problem']}")
        else:
            print(f"{row['case']:<28}{row['figure']:<14}{row['measured']:>12.2f}{row['predicted']:>12.2f}"
                  f"{row['error_percent']:>+8.1f} %")
    if options.csv:
        with open(options.csv, "w", newline="") as text:
            writer = csv.DictWriter(text, ["case", "figure", "measured", "predicted", "error_percent", "problem"])
            writer.writeheader()
            writer.writerows(found)


if __name__ == "__main__":
    main()
