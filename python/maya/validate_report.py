"""The page of `maya validate --write`: distributions of the errors of whole training steps, and the worst cases."""
from __future__ import annotations

import csv
import re

from maya import validate

NAMES = {
    "cases": "Single cases",
    "timm": "timm, AMP, RTX 3090, both layouts",
    "torchvision": "torchvision, batch 12, six GPUs",
    "mpt": "MPT with FSDP on 8 × A100",
    "megatron": "Megatron-LM on A100",
    "independent": "Independent: figures found after the models were made",
    "doubtful": "Doubtful: figures that contradict others of the same thing",
}


def cause(case):
    """The cause of a case's error: its own `cause`, or the first one of the sweep that matches its name."""
    if case.text("cause"):
        return case.table["cause"]
    for pattern, words in case.table.get("causes", {}).items():
        if re.search(pattern, case.id):
            return words
    return ""


def bar(share, width=40):
    return "█" * round(share * width)


def distribution(results):
    """The share of cases by size of the error."""
    errors = [r["error"] for r in results if "error" in r]
    edges = [-10, -0.3, -0.2, -0.1, -0.05, 0.05, 0.1, 0.2, 0.3, 100]
    names = [
        "below −30 %",
        "−30 to −20 %",
        "−20 to −10 %",
        "−10 to −5 %",
        "within 5 %",
        "5 to 10 %",
        "10 to 20 %",
        "20 to 30 %",
        "above 30 %",
    ]
    lines = ["| error | cases | |", "|---|--:|---|"]
    for name, low, high in zip(names, edges, edges[1:]):
        count = sum(low <= e < high for e in errors)
        lines.append(f"| {name} | {count} | {bar(count / len(errors))} |")
    return lines


def row(case, r, with_cause=False):
    words = [
        case.id.split("/", 1)[-1] if with_cause else case.id,
        case.file.stem if "rows" in case.table else case.text("title"),
        f"{r['measured_ms']:.1f}",
    ]
    if "problem" in r:
        words += ["", r["problem"], "", ""]
    else:
        words += [
            f"{r['predicted_ms']:.1f}",
            f"{100 * r['error']:+.1f} %",
            f"{r['low_ms']:.1f} – {r['high_ms']:.1f}" + ("" if r["inside"] else " \\*"),
            f"{100 * (r['coverage']['measured'] + r['coverage']['fitted']):.0f} %",
        ]
    return "| " + " | ".join(words + [cause(case)]) + " |"


def first_look(pairs):
    """The line about predictions that were made before any error was known, if validation/first-look.csv has them."""
    path = pairs[0][0].file.parents[1] / "first-look.csv"
    kept = {r["case"]: r for r in csv.DictReader(path.open())} if path.exists() else {}
    found = [
        {k: float(kept[c.id][k]) for k in ("measured_ms", "predicted_ms", "low_ms", "high_ms")}
        for c, _ in pairs
        if c.id in kept
    ]
    if not found:
        return []
    s = validate.summary(
        [
            {
                "error": r["predicted_ms"] / r["measured_ms"] - 1,
                "inside": r["low_ms"] <= r["measured_ms"] <= r["high_ms"],
            }
            for r in found
        ]
    )
    p = validate.percent
    return [
        f"At the first look, before anybody had seen an error: {s['cases']} cases, mean {p(s['mean'])}, median "
        f"{p(s['median'])}, worst {p(s['worst'])}, "
        f"bias {p(s['bias'])}, within 15 %: {p(s['within_15'])}, inside the interval: {p(s['inside'])}. What changed "
        "since was changed in view of them.",
        "",
    ]


def memory(pairs):
    """Memory that PyTorch's allocator reserved on the fullest GPU, for cases whose source reports it."""
    rows = [
        (c, c.table["memory_gib"], r["reserved_bytes"] / 2**30)
        for c, r in pairs
        if "memory_gib" in c.table and "error" in r
    ]
    if not rows:
        return []
    return [
        "",
        "Memory that PyTorch's allocator reserves on the fullest GPU, where the source says:",
        "",
        "| case | measured GiB | predicted GiB | error |",
        "|---|--:|--:|--:|",
        *(
            f"| {c.id} | {measured:.1f} | {predicted:.1f} | {100 * (predicted / measured - 1):+.1f} % |"
            for c, measured, predicted in rows
        ),
    ]


def page(cases, results):
    by_set = {}
    for case, r in zip(cases, results):
        by_set.setdefault(case.set, []).append((case, r))
    lines = [
        "# Whole training steps: predicted against measured",
        "",
        "Written by `maya validate --set all --write`; the cases are in `validation/`, each with the command, the "
        "source of its",
        "figure and what had to differ from the measured set-up. Error: predicted / measured − 1. Inside: how many "
        "measurements lie",
        "in the 80 % interval of their prediction. *Seen* are cases whose figure somebody looked at while setting a "
        "constant (which, is said",
        "with the case); what they show is how well the model can agree. Only the *unseen* show how well it "
        "predicts. Causes are our",
        "explanation of an error, not a measurement.",
        "",
        "| set | cases | mean | median | 90th pct | worst | bias | within 5 % | within 15 % | inside |",
        "|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|",
    ]
    rows = []
    for name, pairs in by_set.items():
        rows.append((NAMES.get(name, name), [r for _, r in pairs]))
        if any(c.seen for c, _ in pairs):
            rows += [("… unseen", [r for c, r in pairs if not c.seen]), ("… seen", [r for c, r in pairs if c.seen])]
    for name, results_of in rows:
        s = validate.summary(results_of)
        if s:
            p = validate.percent
            lines.append(
                f"| {name} | {s['cases']} | {p(s['mean'])} | {p(s['median'])} | {p(s['p90'])} | {p(s['worst'])} | "
                f"{p(s['bias'])} | {p(s['within_5'])} | {p(s['within_15'])} | {p(s['inside'])} |"
            )
    for name, pairs in by_set.items():
        done = [(c, r) for c, r in pairs if "error" in r]
        lines += ["", f"## {NAMES.get(name, name)}", ""] + first_look(pairs)
        sources = list(dict.fromkeys(c.text("source") for c, _ in pairs))
        if len(sources) <= 3:
            lines += ["Source: " + "; ".join(sources) + ".", ""]
        if not done:
            lines.append("No result: " + "; ".join(sorted({r["problem"] for _, r in pairs})))
            continue
        head = [
            "| case | | measured ms | predicted ms | error | 80 % interval ms | fitted | cause |",
            "|---|---|--:|--:|--:|---|--:|---|",
        ]
        if all("rows" not in c.table for c, _ in pairs):
            lines += head + [row(c, r) for c, r in pairs]
            differs = [(c, c.table["differs"]) for c, _ in pairs if c.table.get("differs")]
            lines += [
                "",
                "What differs from the measured set-up, besides the version of torch ("
                + ", ".join(sorted({r["torch"] for _, r in pairs}))
                + " here):",
                "",
            ]
            lines += [f"- {c.id} (torch {c.table['environment']['torch']}): {'; '.join(d)}" for c, d in differs]
            lines += memory(pairs)
            lines += ["", "Seen while setting a constant:", ""] + [f"- {c.id}: {c.seen}" for c, _ in pairs if c.seen]
        else:
            lines += distribution([r for _, r in pairs])
            seen = sorted({f"{c.table.get('seen')} ({c.file.stem})" for c, _ in pairs if c.seen})
            if seen:
                lines += ["", "Seen: " + "; ".join(seen) + "."]
            worst = sorted(done, key=lambda x: -abs(x[1]["error"]))[:None if name == "independent" else 12]
            lines += (
                ["", "All:" if name == "independent" else "The worst:", ""] + head + [row(c, r, True) for c, r in worst]
            )
            groups = {}
            for c, r in done:
                groups.setdefault(c.file.stem, []).append(r)
            if len(groups) > 1:
                lines += ["", "| sweep | cases | mean | bias | inside |", "|---|--:|--:|--:|--:|"]
                for stem, rs in groups.items():
                    s = validate.summary(rs)
                    lines.append(
                        f"| {stem} | {s['cases']} | {validate.percent(s['mean'])} | {validate.percent(s['bias'])} | "
                        f"{validate.percent(s['inside'])} |"
                    )
        failed = [(c, r) for c, r in pairs if "problem" in r]
        if failed and len(pairs) > 40:
            lines += [
                "",
                f"{len(failed)} without a result: "
                + "; ".join(f"{c.id.split('/', 1)[-1]} ({r['problem'][:80]})" for c, r in failed[:20]),
            ]
    return "\n".join(lines) + "\n"
