"""docs/compatibility.md from the results."""

from __future__ import annotations

from .description import Environment

LIMIT = 0.02  # of the kernel time, above which unknown kernels make a row incomplete

HEAD = """# Compatibility

Written by `make matrix` from `matrix.toml`; do not edit. Each environment is a venv of its own, each workload a script of
`tests/workloads/` started unmodified under `maya run` on emulated H100s.

- *runs*: yes, when it ended with code 0, every rank left a recording and the prediction is plausible.
- *unimplemented*: functions that were called and have no body. *unknown*: share of the kernel time that rests on kernels
  Maya does not recognise; under 2 % is required.
- *step*: predicted, of these small models (their sizes are in the scripts), on DGX machines. The A100 column with ≈ is the H100
  recording predicted for A100s; without, a run of its own. Models this small wait for the host: the step carries the
  host time of the machine that wrote this page, with what else it was doing. `maya validate` is about accuracy, this is not.
- *memory*: private memory of the largest process. *host*: CPU seconds of the whole command, start-up and import
  included, on the machine that wrote this page.
"""


def healthy(result: dict) -> bool:
    first = result.get("h100") or {}
    second = result.get("a100")
    return (first.get("state") == "ran" and not first.get("unimplemented") and first.get("unknown", 0) < LIMIT
            and (second is None or second.get("state") == "ran"))


def milliseconds(value: float | None) -> str:
    if not value:
        return "–"
    return f"{value:.0f} ms" if value >= 100 else f"{value:.1f} ms" if value >= 10 else f"{value:.2f} ms"


def words(text: str, limit: int = 220) -> str:
    return text.replace("|", "\\|").replace("\n", " ")[:limit]


def row(name: str, result: dict | None, obstacle: str) -> str:
    if result is None:
        return f"| {name} | {'**no**: ' + words(obstacle, 600) if obstacle else 'not tried'} | | | | | | |"
    first = result.get("h100") or {}
    if first.get("state") != "ran":
        why = obstacle or first.get("words", "")
        return f"| {name} | **no**: {words(why, 600)} | | | | | | |"
    second = result.get("a100") or {}
    calls = first.get("unimplemented", [])
    approximate = "≈ " if result.get("a100_by") == "predict" else ""
    if second and second.get("state") != "ran":
        a100 = "**no**: " + words(second.get("words", ""))
    else:
        a100 = approximate + milliseconds(second.get("step_ms")) if second else "–"
    runs = "yes" + (f"; {words(obstacle, 600)}" if obstacle else "")
    return (
        f"| {name} | {runs} | {', '.join(calls[:6]) or '0'}{f' and {len(calls) - 6} more' if len(calls) > 6 else ''} "
        f"| {100 * first.get('unknown', 0):.1f} % | {a100} | {milliseconds(first.get('step_ms'))} "
        f"| {first.get('private_bytes', 0) / 2**20:,.0f} MiB | {first.get('host_seconds', 0):.0f} s |"
    )


def versions_of(environment: Environment, versions: dict[str, str]) -> str:
    """The packages asked for, with what they resolved to, and Triton."""
    import re

    asked = [re.split(r"[=<>!~\[; ]", p, maxsplit=1)[0].lower() for p in [*environment.packages, *environment.bare]]
    lower = {k.lower(): v for k, v in versions.items()}
    names = [n for n in dict.fromkeys([*asked, "triton"]) if n in lower and n not in ("numpy", "setuptools")]
    return ", ".join(f"{name} {lower[name]}" for name in names)


def section(environment: Environment, state: dict) -> str:
    """`state`: versions, error, results by workload, same (lines of the comparison)."""
    lines = [f"## {environment.name}", ""]
    about = f"Python {environment.python}"
    if state.get("versions"):
        about += ", " + versions_of(environment, state["versions"])
    about += "; NVIDIA's packages installed" if environment.nvidia else ""
    lines += [about + ("." if not environment.note else f". {environment.note}."), ""]
    if state.get("error"):
        lines += [f"**The environment could not be created**: {words(state['error'], 400)}.", ""]
    lines += [
        "| workload | runs | unimplemented | unknown | step a100 | step h100 | memory | host |",
        "|---|---|---|---|---|---|---|---|",
    ]
    lines += [
        row(name, state["results"].get(name), environment.obstacles.get(name, "")) for name in environment.workloads
    ]
    if state.get("same"):
        lines += ["", f"Against {environment.same_as}, op by op:", ""]
        lines += [
            f"- {name}: {'' if same else '**different**: '}{words(text)}"
            for name, (same, text) in state["same"].items()
        ]
    return "\n".join(lines) + "\n"


def summary_line(environment: Environment, state: dict) -> str:
    results = state["results"]
    if state.get("error"):
        return f"{environment.name:28} not created: {state['error'][:120]}"
    good = sum(healthy(results[w]) for w in environment.workloads if w in results)
    tried = sum(w in results for w in environment.workloads)
    text = f"{environment.name:28} {good} of {len(environment.workloads)} workloads"
    if tried < len(environment.workloads):
        text += f", {len(environment.workloads) - tried} not tried"
    for name in environment.workloads:
        result = results.get(name)
        if result and not healthy(result):
            first, second = result["h100"], result.get("a100") or {}
            why = first.get("words") or second.get("words") or ", ".join(first.get("unimplemented", []))
            text += f"; {name}: {(why or '%.1f %% unknown' % (100 * first.get('unknown', 0)))[:160]}"
    if state.get("same"):
        same = sum(s for s, _ in state["same"].values())
        text += f"; {same} of {len(state['same'])} op streams as in {environment.same_as}"
    return text


def overview(environments: list[Environment], states: dict[str, dict]) -> str:
    lines = ["| environment | Python | runs clean | what is missing |", "|---|---|---|---|"]
    for environment in environments:
        state = states.get(environment.name)
        if not state:
            why = "; ".join(f"{name}: {obstacle}" for name, obstacle in environment.obstacles.items())
            lines.append(f"| {environment.name} | {environment.python} | not tried | {words(why, 600)} |")
            continue
        results = state["results"]
        good = [w for w in environment.workloads if w in results and healthy(results[w])]
        bad = [w for w in environment.workloads if w not in good]
        different = [w for w, (same, _) in state.get("same", {}).items() if not same]
        missing = ", ".join(w if w in results or w in environment.obstacles else f"{w} (not tried)" for w in bad) + (
            f"; op stream of {', '.join(different)}" if different else ""
        )
        lines.append(f"| [{environment.name}](#{anchor(environment.name)}) | {environment.python} "
                     f"| {len(good)} of {len(environment.workloads)} | {words(state.get('error') or missing)} |")
    return "\n".join(lines) + "\n"


def anchor(name: str) -> str:
    return "".join(c for c in name.lower() if c.isalnum() or c in "-_")


def page(environments: list[Environment], states: dict[str, dict], mixed: bool) -> str:
    text = HEAD + "\n"
    if mixed:
        text += "Some rows were taken with an earlier build than others.\n\n"
    text += overview(environments, states) + "\n"
    return text + "\n".join(section(e, states[e.name]) for e in environments if e.name in states)
