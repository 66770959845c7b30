"""The uncertainty of a difference: errors that two configurations have in common cancel."""

import pathlib

from conftest import LAYOUTS
from maya.search import compare, reason
from maya.search.space import Space
from maya.search.store import Record

SPACE = Space.parse(LAYOUTS.encode(), pathlib.Path("space.toml"))


def record(families, ops=(), gpu="a", number=0):
    step = sum(ms for ms, _ in families.values())
    return Record(
        number,
        {},
        "ok",
        key=str(number),
        goals=[step],
        prediction={
            "gpu": gpu,
            "common_error": 0.05,
            "step": {"ms": step, "low_ms": 0.9 * step, "high_ms": 1.1 * step},
            "op_ms": list(ops),
            "families": [
                {"family": f, "ms": ms, "low_ms": ms * (1 - e), "high_ms": ms * (1 + e)}
                for f, (ms, e) in families.items()
            ],
        },
    )


def test_the_same_configuration_has_no_difference():
    a = record({"gemm": (80, 0.1), "communication within a node": (20, 0.3)})
    change = compare.difference(SPACE, a, a)
    assert change.percent == 0 and change.plus_minus == 0 and change.tied


def test_common_errors_cancel():
    a = record({"gemm": (80, 0.1), "pointwise": (20, 0.1)})
    b = record({"gemm": (88, 0.1), "pointwise": (22, 0.1)})  # 10 % more of everything
    change = compare.difference(SPACE, a, b)
    assert abs(change.percent - 10) < 1e-9 and change.plus_minus < 0.5 and not change.tied


def test_host_times_of_two_recordings_differ():
    a, b = (record({"gemm": (10, 0.1), "host": (ms, 0.25)}) for ms in (90, 112))
    assert compare.difference(SPACE, a, b).tied  # 22 % more, all of it the host's
    for one in (a, b):
        one.prediction["recording"] = "one"  # simulated twice, as for another network
    assert not compare.difference(SPACE, a, b).tied


def test_the_same_work_is_told_by_what_the_gpus_do():
    ops = [["gemm", "x", 8.0], ["pointwise", "y", 2.0]]
    a, b, c = (record({"host": (ms, 0.25)}, found) for ms, found in ((10, ops), (15, ops), (10, [["gemm", "z", 10.0]])))
    assert compare.same_work(a.prediction, b.prediction) and not compare.same_work(a.prediction, c.prediction)


def test_different_shares_are_uncertain():
    a = record({"gemm": (80, 0.1), "communication within a node": (20, 0.3)})
    b = record({"gemm": (80, 0.1), "communication within a node": (24, 0.3)})
    change = compare.difference(SPACE, a, b)
    assert abs(change.percent - 4) < 1e-9
    assert 0.5 < change.plus_minus < 1.5  # far below the 10 % of either
    more = compare.difference(SPACE, a, record({"gemm": (50, 0.1), "communication within a node": (54, 0.3)}))
    assert more.plus_minus > 5 and more.tied


def test_other_shapes_and_other_gpus_share_less():
    same = [["gemm", "x", 80.0]]
    a = record({"gemm": (80, 0.1)}, same)
    b = record({"gemm": (84, 0.1)}, same)
    c = record({"gemm": (84, 0.1)}, [["gemm", "y", 84.0]])
    d = record({"gemm": (84, 0.1)}, same, gpu="b")
    assert compare.difference(SPACE, a, b).plus_minus < 0.5
    assert compare.difference(SPACE, a, c).plus_minus > 5
    assert compare.difference(SPACE, a, d).plus_minus > 5


def test_ties():
    a = record({"gemm": (80, 0.1), "host": (20, 0.1)}, number=0)
    b = record({"gemm": (70, 0.1), "host": (30.5, 0.3)}, number=1)
    c = record({"gemm": (160, 0.1), "host": (40, 0.1)}, number=2)
    assert [r.number for r in compare.tied_with_first(SPACE, [a, b, c])] == [0, 1]


BATCHES = """
command = ["python3", "train.py", "{batch}"]
[parameters]
batch = [16, 32]
[objective]
goal = "tokens_per_second"
tokens_per_step = "batch * 512"
"""


def test_the_reason_compares_the_same_number_of_tokens():
    space = Space.parse(BATCHES.encode(), pathlib.Path("space.toml"))
    best = record({"gemm": (40, 0.1), "host": (10, 0.1)}, number=1)
    other = record({"gemm": (20, 0.1), "host": (10, 0.1)}, number=2)
    for trial, batch in ((best, 32), (other, 16)):
        trial.values, trial.goals = {"batch": batch}, [batch * 512 / trial.step_ms]
        trial.prediction["flops_per_step"] = batch * 1e9
    words = reason.paragraph(space, best, other, "the baseline")
    # Twice the products for twice the tokens are not more; the host's time is shared by more tokens.
    assert "5.0 ms less of the host (10.0 ms → 5.0 ms), for the same number of tokens" in words
    assert "matrix products" not in words and "FLOPs" not in words
