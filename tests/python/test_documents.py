"""The reference pages say what the code has: environment variables, fields of prediction.json, folders, targets of
make."""

import json
import pathlib
import re

ROOT = pathlib.Path(__file__).resolve().parents[2]
# Read by tests and benchmarks only.
OF_TESTS = {"MAYA_MEASUREMENTS", "MAYA_ROUNDS", "MAYA_UPDATE_GOLDEN", "MAYA_LONG"}


def code_files():
    for folder in ("src", "python/maya"):
        for path in (ROOT / folder).rglob("*"):
            if path.suffix in (".cpp", ".h", ".py") and "_test" not in path.stem:
                yield path


def test_every_environment_variable_is_in_the_tables():
    used = set()
    for path in code_files():
        used |= set(re.findall(r'"(MAYA_[A-Z_]+)=?"', path.read_text()))
    used -= OF_TESTS
    page = (ROOT / "docs/architecture.md").read_text()
    listed = set(re.findall(r"`(MAYA_[A-Z_]+)`", "\n".join(line for line in page.splitlines() if line.startswith("|"))))
    assert used == listed


def test_every_field_of_a_prediction_is_on_its_page(here):
    prediction = json.loads((here / "maya-runs/demo/prediction.json").read_text())
    page = (ROOT / "docs/prediction.md").read_text()
    listed = set(re.findall(r"`\.?([a-z_]+)(?:\[\])?`", page)) | set(re.findall(r"`step\.([a-z_]+)`", page))

    def fields(value, of=""):
        if isinstance(value, dict):
            # Keys that are data: settings by name, parts of memory by what they hold, shares by origin.
            if of in ("settings", "parts", "sizes"):
                return
            for key, inner in value.items():
                yield key
                yield from fields(inner, key)
        elif isinstance(value, list) and value:
            yield from fields(value[0], of)

    assert prediction["code"] is not None and prediction["memory_at_peak"]
    assert sorted(set(fields(prediction)) - listed) == []


def test_every_folder_is_on_the_map():
    page = (ROOT / "docs/architecture.md").read_text()
    mapped = set(re.findall(r"`src/([a-z_]+)/", page))
    assert mapped == {path.name for path in (ROOT / "src").iterdir() if path.is_dir()}


def test_the_readme_lists_the_targets_of_make():
    makefile, readme = (ROOT / "Makefile").read_text(), (ROOT / "README.md").read_text()
    targets = set(re.findall(r"^([a-z-]+):.*##", makefile, re.M)) - {"help", "program", "build", "format", "clean"}
    assert sorted(name for name in targets if f"make {name}" not in readme) == []


def test_files_that_the_architecture_page_names_exist():
    page = (ROOT / "docs/architecture.md").read_text()
    named = re.findall(r"`((?:src|docs|cmake|tools)/[\w/.-]+?)/?`", page)
    assert len(named) > 60
    assert not [name for name in named if not any((ROOT / (name + end)).exists() for end in ("", ".h", ".cpp"))]


def test_rules_of_cuda_name_tests_that_exist():
    page = (ROOT / "docs/cuda-rules.md").read_text()
    named = re.findall(r"\| `(\w+\.\w+)` \|", page)
    assert len(named) > 50
    there = set()
    for path in (ROOT / "src").rglob("*_test.cpp"):
        there |= {f"{suite}.{name}" for suite, name in
                  re.findall(r"^TEST(?:_F|_P)?\((\w+), (\w+)\)", path.read_text(), re.M)}
    assert not [name for name in named if name not in there]
    # And the other way round: a rule that is tested is on the page.
    beside = set()
    for path in (ROOT / "src/session").glob("*_test.cpp"):
        if path.stem in ("streams_test", "capture_test", "memory_calls_test", "graphs_test", "modules_test"):
            beside |= {f"{suite}.{name}" for suite, name in
                       re.findall(r"^TEST(?:_F)?\((\w+), (\w+)\)", path.read_text(), re.M)}
    assert beside <= set(named), beside - set(named)


# Written by commands, which do not wrap.
GENERATED = {"accuracy-kernels.md", "accuracy-network.md", "accuracy-steps.md", "compatibility.md"}


def test_lines_of_the_pages_have_at_most_120_columns():
    long = []
    for page in [ROOT / "README.md", ROOT / "HACKING.md", ROOT / "CHANGELOG.md", *sorted((ROOT / "docs").glob("*.md"))]:
        if page.name in GENERATED:
            continue
        fence = False
        for number, line in enumerate(page.read_text().splitlines(), 1):
            fence ^= line.lstrip().startswith("```")
            # Tables and what programs print cannot be wrapped.
            if not fence and len(line) > 120 and not line.startswith(("|", "    ")):
                long.append(f"{page.name}:{number}")
    assert not long
