"""Model file and accuracy page."""
HEADER = """maya-model 1
# Written by tools/fit/fit.py; do not edit. Sections refine first_principles.model (see src/estimate/model_file.h).
"""


def number(value):
    return f"{value:.5g}"


def model_file(sections):
    """sections: (name, source, params, interval, correction or None)."""
    out = [HEADER]
    for name, source, params, interval, correction in sections:
        out.append(f"\n[{name}]\n")
        if source:
            out.append(f"source {source}\n")
        for key, value in params.items():
            out.append(f"{key} {value:.6g}\n")
        if interval:
            out.append("interval " + " ".join(f"{v:.3f}" for v in interval) + "\n")
        if correction:
            out.append("trees " + " ".join(map(number, correction.numbers())) + "\n")
    return "".join(out)


def percent(value):
    return f"{100 * value:.1f} %"


def line(row):
    text = f"{row['family']:34s} {row['gpu']:16s} {row['left_out']:22s}"
    s = row["summary"]
    if not s["rows"]:
        return text + " no rows"
    return text + (f" n={s['rows']:6d} mean {percent(s['mean']):>7s} median {percent(s['median']):>7s} p95 "
                   f"{percent(s['p95']):>7s} bias {percent(s['bias']):>7s} inside {percent(row['inside']) if row.get('inside') is not None else '-'}")


def page(rows):
    out = ["# How well kernels are predicted\n\n",
           "Written by `tools/fit/fit.py`. Every number is for rows **left out of the fit**: whole models, whole shapes or "
           "whole GPUs, never random rows of the same sweep. Errors are |predicted / measured - 1|; *inside* is the share "
           "of measurements within the 80 % interval, which was taken from other folds. Only rows of 20 µs and more "
           "unless the column says otherwise. Measurements: see SOURCES.md of the measurements folder (NeuSight, Vidur, "
           "Liger-Kernel, FlashAttention, HolisticTraceAnalysis, kineto, modded-nanogpt).\n"]
    for kind in dict.fromkeys(r["part"] for r in rows):
        out.append(f"\n## {kind}\n\n| family | GPU | left out | rows | mean | median | 95th pct | worst | bias | inside |\n"
                   "|---|---|---|--:|--:|--:|--:|--:|--:|--:|\n")
        for r in rows:
            s = r["summary"]
            if r["part"] != kind or not s["rows"]:
                continue
            inside = percent(r["inside"]) if r.get("inside") is not None else ""
            out.append(f"| {r['family']} | {r['gpu']} | {r['left_out']} | {s['rows']} | {percent(s['mean'])} | "
                       f"{percent(s['median'])} | {percent(s['p95'])} | {percent(s['worst'])} | {percent(s['bias'])} | {inside} |\n")
    notes = [r["note"] for r in rows if r.get("note")]
    if notes:
        out.append("\n## Notes\n\n" + "".join(f"- {n}\n" for n in dict.fromkeys(notes)))
    return "".join(out)
