"""Compares predicted time stamps of requests (replay.py) with measured ones.

    python judge.py MEASURED.jsonl PREDICTED.jsonl

TTFT and E2E count from the arrival. The arrival is a reading of the wall clock, the other stamps are of the engine's
monotonic clock; the offset between both is the least difference that any request has between its arrival and its queueing.
"""

import json
import sys


def requests(path):
    with open(path) as text:
        return [json.loads(line) for line in text]


def figures(entries):
    offset = min(entry["queued_ts"] - entry["arrival_time"] for entry in entries)
    found = {"TTFT": [], "TPOT": [], "E2E": [], "queue": []}
    for entry in entries:
        arrived = entry["arrival_time"] + offset
        found["TTFT"].append((entry["first_token_ts"] - arrived) * 1e3)
        found["E2E"].append((entry["last_token_ts"] - arrived) * 1e3)
        found["queue"].append((entry["scheduled_ts"] - arrived) * 1e3)
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


def main(measured, predicted):
    told, ours = requests(measured), requests(predicted)
    known = {entry["request_id"] for entry in ours}
    told = [entry for entry in told if entry["request_id"] in known]
    told, ours = figures(told), figures(ours)
    print(f"{'ms':<10}{'':<8}{'measured':>12}{'predicted':>12}{'error':>9}")
    for name in told:
        for title, share in (("median", 0.5), ("p95", 0.95)):
            a, b = percentile(told[name], share), percentile(ours[name], share)
            error = f"{(b / a - 1) * 100:+.1f} %" if a > 0.05 else "–"
            print(f"{name:<10}{title:<8}{a:>12.2f}{b:>12.2f}{error:>9}")


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    main(*sys.argv[1:])
