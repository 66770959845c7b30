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
    "shim": {"base", "abi", "op", "session"},
    "collate": {"base", "op", "trace"},
    "simulate": {"op", "trace", "estimate", "network", "catalog"},
    "report": {"base", "op", "trace", "catalog", "estimate", "network", "simulate", "collate"},
    "launchers": set(),
    "launch": {"base", "clock", "launchers", "trace", "collate"},
}
FREE = {"cli", "predict", "search"}
# What the emulated libraries see of the session: the headers that session/session.h lists.
FACE = {"session", "kernels", "graphs", "virtual_memory", "communicators", "machine", "handles", "host_memory",
        "observation"}


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


def test_entry_points_see_only_the_face_of_the_session():
    wrong = []
    for path in sorted((ROOT / "src" / "shim").rglob("*")):
        if path.suffix not in (".h", ".cpp", ".inc") or path.name.endswith("_test.cpp"):
            continue
        text = path.read_text()
        wrong += [f"{path.relative_to(ROOT)} includes session/{name}.h"
                  for name in re.findall(r'^#include "session/(\w+)\.h"', text, re.M) if name not in FACE]
        wrong += [f"{path.relative_to(ROOT)} uses session::{name}()"
                  for name in re.findall(r"session::(state|thread|modules)\(", text)]
    assert not wrong, "\n".join(wrong)


def test_the_face_of_the_session_is_a_manual():
    manual = (ROOT / "src/session/session.h").read_text()
    for name in FACE:
        text = (ROOT / f"src/session/{name}.h").read_text()
        assert f"//   {name}.h " in manual, f"session.h does not list {name}.h"
        private = [other for other in re.findall(r'^#include "session/(\w+)\.h"', text, re.M) if other not in FACE]
        assert not private, f"session/{name}.h includes {private}"


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
