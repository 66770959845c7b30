"""Commands and programs in the documentation are run, one page after the other in one folder; `norun` marks what is
not."""

import os
import pathlib
import re
import shlex
import subprocess
import sys

import maya
import pytest
from conftest import ROOT

PAGES = ["tutorial", "report", "howto", "python"]  # in this order: later pages use the runs of earlier ones
BLOCK = re.compile(r"^```(\w+)([^\n]*)\n(.*?)^```$", re.M | re.S)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("docs")


@pytest.mark.parametrize("page", PAGES)
def test_page(page, folder):
    # `python` is the interpreter of the tests, and Maya's own verbs use it too.
    environment = {**os.environ, "PATH": f"{pathlib.Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
                   "PYTHONPATH": str(ROOT / "python"), "MAYA_PYTHON": sys.executable}
    ran = 0
    for language, about, text in BLOCK.findall((ROOT / "docs" / f"{page}.md").read_text()):
        words = about.split()
        if "norun" in words:
            continue
        if names := [w.removeprefix("file=") for w in words if w.startswith("file=")]:
            (folder / names[0]).write_text(text)
        elif language == "python":
            done = subprocess.run(
                [sys.executable, "-c", text], cwd=folder, env=environment, capture_output=True, text=True, timeout=300
            )
            assert done.returncode == 0, f"{text}\n{done.stderr}"
            ran += 1
        elif language == "console":
            for line in text.splitlines():
                if line.startswith("$ "):
                    command = shlex.split(line[2:])
                    if command[0] == "maya":
                        command[0] = maya.program()
                    done = subprocess.run(
                        command, cwd=folder, env=environment, capture_output=True, text=True, timeout=300
                    )
                    assert done.returncode == 0, f"{line}\n{done.stderr}"
                    ran += 1
    assert ran > 0, f"docs/{page}.md has no block that is run"


def test_the_site_has_every_page():
    listed = set(re.findall(r"[\w/-]+\.md", (ROOT / "mkdocs.yml").read_text()))
    assert listed == {p.name for p in (ROOT / "docs").glob("*.md")}


def test_links_between_pages_lead_somewhere():
    wrong = []
    for path in [*(ROOT / "docs").glob("*.md"), ROOT / "README.md", ROOT / "CHANGELOG.md"]:
        for target in re.findall(r"\]\(([^)#:]+?)(?:#[^)]*)?\)", path.read_text()):
            if not (path.parent / target).exists():
                wrong.append(f"{path.name}: {target}")
    assert not wrong, wrong
