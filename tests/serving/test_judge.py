"""The comparison of predicted with measured engines (validation/serving)."""

import importlib.util
import json
import pathlib
import sys

import pytest

FOLDER = pathlib.Path(__file__).resolve().parents[2] / "validation" / "serving"


def load(name):
    spec = importlib.util.spec_from_file_location(f"validation_serving_{name}", FOLDER / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def stamps(number, arrived, first, last, tokens=11, wall=5000.0):
    return dict(request_id=f"bench-{number}", output_toks=tokens, arrival_time=wall + arrived,
                queued_ts=arrived + 0.001, scheduled_ts=arrived + 0.001, first_token_ts=first, last_token_ts=last)


def test_times_count_from_the_arrival_whatever_the_clocks_begin_with():
    found = load("judge").figures([stamps(0, 1.0, 1.501, 2.501), stamps(1, 2.0, 3.001, 5.001)])
    assert found["TTFT"] == pytest.approx([500, 1000])
    assert found["TPOT"] == pytest.approx([100, 200])
    assert found["E2E"] == pytest.approx([1500, 3000])


def test_only_requests_that_were_predicted_are_compared(tmp_path):
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "requests.jsonl").write_text(
        "".join(json.dumps(stamps(i, i, i + 0.5, i + 1.5)) + "\n" for i in range(5)))
    (tmp_path / "run" / "meta.json").write_text(json.dumps(dict(kv_cache=dict(num_gpu_blocks=100))))
    result = dict(case=dict(name="a", kind="requests", measured="run"), code=0, engine=dict(num_gpu_blocks=101),
                  predicted=[stamps(0, 0, 0.55, 1.6)])
    found = {row["figure"]: row for row in load("judge").rows([result], tmp_path)}
    assert found["TTFT median"]["error_percent"] == pytest.approx(10, abs=0.3)
    assert found["KV blocks"]["error_percent"] == 1.0
    assert found["duration"]["measured"] == pytest.approx(1499)


def test_a_case_without_a_prediction_is_said(tmp_path):
    result = dict(case=dict(name="a", kind="closed", id="x"), code=1)
    assert list(load("judge").rows([result], tmp_path)) == [
        dict(case="a", figure="", problem="no prediction (code 1)")]


@pytest.mark.skipif(sys.version_info < (3, 11), reason="tomllib")
def test_cases_have_distinct_names_and_can_be_chosen():
    runner = load("runner")
    names = [case["name"] for case in runner.cases([])]
    assert len(set(names)) == len(names)
    assert [case["name"] for case in runner.cases(names[1:2])] == names[1:2]
    with pytest.raises(SystemExit, match="no such case"):
        runner.cases(["nonsense"])


@pytest.mark.skipif(sys.version_info < (3, 11), reason="tomllib")
def test_lengths_vary_below_the_nominal_one():
    runner = load("runner")
    assert runner.lengths("1024", 0.8) == "819-1024"
    assert runner.lengths("1024", 1) == "1024"
