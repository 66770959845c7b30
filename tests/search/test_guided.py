"""The model-guided search finds what exhaustive search finds, with few trials."""

import pathlib

import fake_maya
import pytest
from conftest import LAYOUTS
from maya.search import enumeration, outcome, plan
from maya.search.space import Space

# More than 10,000 configurations of a transformer on 64 to 512 GPUs.
LARGE = (
    LAYOUTS.replace("world = 64\n", "")
    .replace("[parameters]", "[parameters]\nworld = { powers_of_two = [64, 512] }")
    .replace("max = 4 }", "max = 16 }")
    .replace("choice = [1, 2]", "choice = [1, 2, 4]")
    .replace("sp = ", "zero = [0, 1, 2]\nsp = ")
    .replace("[flags]", "[flags]\n'--zero' = 'zero'")
    .replace("batch = 512", "batch = 1024")
    .replace("[cluster]", "[objective]\ngoal = 'cost_per_token'\n[cluster]")
)


def truth(text):
    """Every configuration's cost of a step, straight from the formula; None where it does not fit."""
    space = Space.parse(text.encode(), pathlib.Path("space.toml"))
    found = {}
    for values in enumeration.Tree(space).walk():
        made = plan.make(space, values)
        prediction = fake_maya.predict(list(made.words), made.cluster, {})
        found[enumeration.identity(space, values)] = (
            None if prediction["out_of_memory"] else prediction["cost"]["usd_per_step"])
    return found


@pytest.mark.parametrize("seed", [0])
def test_ten_thousand_configurations(search, seed):
    costs = truth(LARGE)
    assert len(costs) > 10000
    result = search(LARGE, seed=seed)
    best = min(cost for cost in costs.values() if cost is not None)
    assert result.best.prediction["cost"]["usd_per_step"] == best
    assert result.engine.count <= 200
    assert len(result.records) == len(costs)
    for record in result.records:
        cost = costs[enumeration.identity(result.space, record.values)]
        if record.kind == outcome.SKIPPED:
            assert record.detail and (cost is None or cost > best)


def test_continues_where_it_was_interrupted(search):
    text = LARGE.replace("zero = [0, 1, 2]", "zero = [1, 2]").replace("[64, 512]", "[64, 128]")
    first = search(text, trials=30)
    assert first.engine.count == 30
    second = search(text)
    best = min(cost for cost in truth(text).values() if cost is not None)
    assert second.best.prediction["cost"]["usd_per_step"] == best
    assert second.engine.count < 150
