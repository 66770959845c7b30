"""Shells complete verbs and options; the scripts say what the program says of itself."""

import shutil
import subprocess

import pytest
from maya import completion


def test_verbs_and_options_are_those_of_the_program():
    known = completion.verbs()
    assert {"run", "predict", "compare", "report", "serve", "search"} <= set(known) and "engine" not in known
    assert {"--cluster", "--stacks", "--out"} <= set(completion.options("run"))


def test_bash_completes():
    script = completion.script("bash")

    def complete(*words: str) -> list[str]:
        asked = (
            script
            + f'\nCOMP_WORDS=({" ".join(words)!s}); COMP_CWORD={len(words) - 1}; _maya; printf "%s\\n" "${{COMPREPLY[@]}}"'
        )
        return subprocess.run(["bash", "-c", asked], capture_output=True, text=True, check=True).stdout.split()

    assert complete("maya", "pre") == ["predict"]
    assert complete("maya", "run", "--sta") == ["--stacks", "--start"] or "--stacks" in complete("maya", "run", "--sta")


@pytest.mark.parametrize("shell", ["zsh", "fish"])
def test_other_shells_read_it(shell):
    script = completion.script(shell)
    assert "--cluster" in script or "cluster" in script
    if shutil.which(shell):
        subprocess.run([shell, "-n" if shell == "zsh" else "--no-execute"], input=script, text=True, check=True)
