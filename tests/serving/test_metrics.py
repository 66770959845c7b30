"""Figures of a load from the times of its tokens."""

import asyncio

import pytest
from maya import MayaError
from maya.serve_bench import capacity, metrics
from maya.serve_bench.client import Answer


def answer(sent, first, interval, tokens, problem=""):
    times = [sent + first + interval * i for i in range(tokens)]
    return Answer(sent, 100, tokens, times, times[-1] if times else sent, problem)


def test_definitions():
    found = metrics.figures([answer(0, 0.5, 0.01, 11), answer(1, 0.3, 0.02, 11)], metrics.limits("ttft<400ms", False))
    assert found["ttft_ms"]["mean"] == pytest.approx(400)
    assert found["tpot_ms"]["p50"] == pytest.approx(15)
    assert found["itl_ms"]["p99"] == pytest.approx(20)
    assert found["e2e_ms"]["p50"] == pytest.approx(550)
    assert found["duration_s"] == pytest.approx(1.5)
    assert found["output_tokens_per_second"] == pytest.approx(22 / 1.5)
    assert found["slo_share"] == 0.5


def test_several_tokens_in_one_piece_count_for_the_time_per_token():
    found = metrics.times(Answer(0.0, 10, 9, [0.1, 0.2], 0.2))
    assert found["tpot_ms"] == pytest.approx(100 / 8)


def test_failed_requests_are_counted_and_keep_no_limit():
    found = metrics.figures([answer(0, 0.5, 0.01, 3), Answer(0.0, 10, problem="400 too long")])
    assert (found["completed"], found["failed"], found["problems"]) == (1, 1, ["400 too long"])
    assert not metrics.meets(found, metrics.limits("p99_ttft<10s", True))


def test_percentiles_interpolate():
    assert metrics.percentile([1, 2, 3, 4], 50) == 2.5
    assert metrics.percentile([7], 99) == 7


@pytest.mark.parametrize(
    "text, of_load", [("ttft<500ms", True), ("p99_ttft<500ms", False), ("ttft>5", False), ("p12_ttft<5", True)]
)
def test_limits_that_are_none(text, of_load):
    with pytest.raises(MayaError, match="not a limit"):
        metrics.limits(text, of_load)


@pytest.mark.parametrize("true_rate", [0.3, 1.0, 7.3, 40])
def test_capacity_is_found_within_five_percent(true_rate):
    async def measure(rate):
        return rate <= true_rate, {"requests_per_second": rate}

    found = asyncio.run(capacity.search(measure))
    assert true_rate * 0.93 <= found["rate"] <= true_rate and found["limited"]


def test_capacity_of_a_load_that_is_too_short_says_so():
    async def measure(rate):
        return True, {"requests_per_second": min(rate, 5.0)}

    found = asyncio.run(capacity.search(measure))
    assert not found["limited"] and found["rate"] >= 10
