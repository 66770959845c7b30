"""Small values from the host: computed along, or unknown; never wrong."""

from conftest import ROOT


def test_expressions_over_known_values(run):
    done = run("python", str(ROOT / "tests/e2e/value_expressions.py"), options=("--no-predict",))
    assert done.code == 0, done.stdout + done.stderr
    assert "followed" in done.stdout
