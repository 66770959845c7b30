"""The course of a load, and the engine's counters."""

import pytest
from maya.serve_bench import counters, series
from maya.serve_bench.client import Answer


def test_a_request_waits_and_then_gets_tokens():
    answers = [Answer(0.0, 10, 4, [2.0, 4.0], 4.0), Answer(1.0, 10, 2, [3.0, 8.0], 8.0), Answer(0.0, 5, problem="400")]
    found = series.of(answers)
    assert found["seconds"] * series.BINS == pytest.approx(8)
    assert found["waiting"][0] == 1 and found["waiting"][15] == 2 and found["waiting"][-1] == 0
    assert found["answered"][0] == 0 and found["answered"][35] == 2 and found["answered"][-1] == 1
    # Four tokens came in two pieces, two at a time.
    tokens = [rate * found["seconds"] for rate in found["output_tokens_per_second"]]
    assert sum(tokens) == pytest.approx(6) and tokens[20] == pytest.approx(2) and tokens[-1] == pytest.approx(1)
    assert found["requests"][0] == {"sent_s": 0, "input": 10, "output": 4, "ttft_ms": 2000, "e2e_ms": 4000}


def test_nothing_came():
    assert series.of([]) == {} and series.of([Answer(0.0, 5, problem="400")]) == {}
    assert series.of([Answer(1.0, 5, 1, [1.0], 1.0)]) == {}


def test_counters_are_summed_over_engines():
    page = """# HELP vllm:num_preemptions_total Cumulative number of preemption from the engine.
vllm:num_preemptions_total{engine="0",model_name="m"} 3.0
vllm:num_preemptions_total{engine="1",model_name="m"} 4.0
vllm:prefix_cache_hits_total{engine="0"} 1e+03
process_cpu_seconds_total 12.5
not a line of this kind
"""
    assert counters.read(page) == {"preemptions": 7, "prefix_hits": 1000}
    assert counters.between({"preemptions": 2}, counters.read(page)) == {"preemptions": 5}
    assert counters.read("") == {}
