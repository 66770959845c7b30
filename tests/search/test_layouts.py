"""Which ranks a layout needs is learned from trials that differ in one parameter."""

from maya.search.layouts import Layouts


def prediction(*ranks, missing=()):
    return {"step": {"ms": 1.0}, "stages": [{"rank": r, "recorded": 1} for r in ranks]
            + [{"rank": r, "recorded": 0} for r in missing]}


def test_ranks_of_an_earlier_trial_of_the_same_layout():
    layouts = Layouts(["pp", "micro", "recompute"])
    first = {"pp": 8, "micro": 1, "recompute": "none"}
    assert layouts.expected(first) == ()
    layouts.learn(first, prediction(0, 8, 32, 48, 56, missing=(16, 24, 40)))
    assert layouts.expected(first) == (0, 8, 32, 48, 56)  # the other depth of [fidelity]
    assert layouts.expected(first | {"micro": 2}) == ()  # nothing has shown that micro makes no difference
    layouts.learn(first | {"micro": 2}, prediction(0, 8, 32, 48, 56))
    assert layouts.expected(first | {"micro": 4}) == (0, 8, 32, 48, 56)
    assert layouts.expected(first | {"pp": 4}) == ()
    layouts.learn(first | {"pp": 4}, prediction(0, 16, 32, 48))
    assert layouts.expected(first | {"pp": 4, "micro": 2}) == (0, 16, 32, 48)
    assert layouts.expected(first | {"pp": 2}) == ()
    # A counterexample: the parameter is not trusted any more.
    layouts.learn(first | {"pp": 4, "micro": 2}, prediction(0, 16))
    assert layouts.expected(first | {"micro": 8}) == ()


def test_trials_without_a_step_teach_nothing():
    layouts = Layouts(["pp"])
    layouts.learn({"pp": 4}, {"step": None, "stages": []})
    layouts.learn({"pp": 4}, None)
    assert layouts.expected({"pp": 4}) == ()


def test_a_longer_step_may_need_more_stages():
    layouts = Layouts(["pp"])
    layouts.learn({"pp": 8}, prediction(0, 1, 4, 6, 7))
    layouts.learn({"pp": 8}, prediction(0, 1, 2, 4, 6, 7))
    assert layouts.expected({"pp": 8}) == (0, 1, 2, 4, 6, 7)
