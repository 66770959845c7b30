"""Extrapolation from two depths finds what full trials find."""

import pytest
from conftest import LAYOUTS

DEPTH = LAYOUTS.replace("tp = { powers_of_two = [1, 8] }", "tp = [1, 2, 4]") + """
[fidelity]
parameter = "batch"
at = ["dp * micro * pp", "2 * dp * micro * pp"]
"""


def test_the_same_best_with_a_small_error(search):
    full = search(DEPTH.split("[fidelity]")[0], out="full", prune=False)
    result = search(DEPTH, prune=False)
    assert result.best.values == full.best.values
    assert not result.best.checks.get("extrapolated")  # confirmed at its full depth
    truth = {tuple(r.values.items()): r for r in full.records}
    lines = [r for r in result.records if r.checks.get("extrapolated") and r.ok]
    assert len(lines) > 50
    for record in lines:
        real = truth[tuple(record.values.items())]
        assert record.step_ms == pytest.approx(real.step_ms, rel=0.02)
        assert record.goals[0] == record.step_ms
    assert any("full depth" in note for note in result.notes)


def test_it_resumes(search):
    search(DEPTH, out="two", prune=False, trials=30)
    result = search(DEPTH, out="two", prune=False)
    whole = search(DEPTH, out="whole", prune=False)
    assert result.best.values == whole.best.values and len(result.ranked) == len(whole.ranked)
