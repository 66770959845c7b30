"""A folder under src/ is a layer and includes only the layers it may know (docs/architecture.md)."""

import re

from conftest import ROOT

MAY_USE = {
    "base": set(),
    "abi": set(),
    "op": set(),
    "catalog": {"base", "op"},
    "trace": {"base", "op"},
    "clock": set(),
    "values": {"base", "op"},
    "decode": {"op", "values"},
    "device": {"base", "op"},
    "estimate": {"base", "op", "catalog"},
    "network": {"base", "op", "catalog", "estimate"},
    "cost": {"op", "catalog", "estimate"},
    "session": {"base", "launchers", "abi", "op", "device", "values", "decode", "trace", "estimate", "catalog",
                "network", "clock", "cost", "simulate"},
    "shim": {"base", "abi", "op", "session", "device", "values", "decode", "trace", "estimate", "simulate"},
    "collate": {"base", "op", "trace"},
    "simulate": {"op", "trace", "estimate", "network", "catalog"},
    "report": {"base", "op", "trace", "catalog", "estimate", "network", "simulate", "collate"},
    "launchers": set(),
    "launch": {"base", "clock", "launchers", "trace", "collate"},
}
FREE = {"cli", "predict", "search"}


def test_includes_follow_the_layers():
    wrong = []
    layers = {p.name for p in (ROOT / "src").iterdir() if p.is_dir()}
    assert layers >= {"op", "trace", "launch", "cli"}
    for path in sorted((ROOT / "src").rglob("*")):
        if path.suffix not in (".h", ".cpp", ".inc") or path.name.endswith("_test.cpp") or "testing" in path.parts:
            continue
        layer = path.relative_to(ROOT / "src").parts[0]
        if layer in FREE:
            continue
        assert layer in MAY_USE, f"src/{layer} is new: say in MAY_USE what it may include"
        for other in re.findall(r'^#include "(\w+)/', path.read_text(), re.M):
            if other in layers and other != layer and other not in MAY_USE[layer]:
                wrong.append(f"{path.relative_to(ROOT)} includes {other}/")
    assert not wrong, "\n".join(wrong)


def test_no_machine_paths_are_committed():
    import subprocess

    files = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True).stdout.split()
    pattern = re.compile(r"/(work|root|tmp/w)/[a-z]")
    wrong = []
    for name in files:
        path = ROOT / name
        if path.suffix in (".gz", ".png", ".maya") or not path.is_file() or path.stat().st_size > 1_000_000:
            continue
        if pattern.search(path.read_text(errors="replace")) and path.name != "test_layers.py":
            wrong.append(name)
    assert not wrong, wrong
