"""Optuna's samplers: they keep to the constraints, try nothing twice, and find what exhaustive search finds or nearly
so."""

import pytest
from conftest import LAYOUTS

SMALL = LAYOUTS.replace(
    "[parameters]\ntp = { powers_of_two = [1, 8] }", "[parameters]\ntp = { powers_of_two = [1, 4] }"
)


@pytest.mark.parametrize("method", ["random", "tpe", "cmaes"])
def test_samplers(search, method):
    everything = search(SMALL, out="all", prune=False)
    result = search(SMALL, out=method, method=method, trials=40, seed=1)
    marks = [tuple(r.values.items()) for r in result.records]
    assert len(set(marks)) == len(marks)
    valid = {tuple(r.values.items()): r for r in everything.records}
    assert set(marks) <= set(valid)
    for record in result.records:
        if record.ok:
            assert record.step_ms == valid[tuple(record.values.items())].step_ms
    assert result.best.step_ms <= (1.3 if method == "random" else 1.12) * everything.best.step_ms
    again = search(SMALL, out=method, method=method, trials=5, seed=1)
    assert len(again.records) >= len(result.records) + 5


def test_sampler_ends_when_all_configurations_were_tried(search):
    text = SMALL.replace('recompute = ["none", "selective", "full"]', 'recompute = ["none"]').replace(
        "max = 4", "max = 1"
    )
    everything = search(text, out="all", prune=False)
    result = search(text, out="tpe", method="tpe", prune=False)
    assert len(result.records) == len(everything.records) and result.best.values == everything.best.values


def test_real_numbers(search):
    text = SMALL + "\n"
    text = text.replace("[parameters]", "[parameters]\nrate = { floats = [0.1, 0.9] }").replace(
        "[flags]", "[flags]\n'--rate' = 'rate'")
    result = search(text, method="auto", trials=12)
    rates = {r.values["rate"] for r in result.records}
    assert len(rates) > 6 and all(0.1 <= rate <= 0.9 for rate in rates)
