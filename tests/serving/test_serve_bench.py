"""`maya serve-bench` with an engine of ours that sleeps in place of computing: its times are known exactly."""

import json
import os
import pathlib
import subprocess
import sys

import pytest

TOY = str(pathlib.Path(__file__).parent / "toy_engine.py")
MAYA = os.environ.get("MAYA_PROGRAM", str(pathlib.Path(sys.executable).parent / "maya"))


@pytest.fixture
def bench(tmp_path):
    def call(*options, engine=()):
        words = [
            MAYA,
            "serve-bench",
            "--cluster",
            "h100-sxm",
            "--out",
            str(tmp_path / "run"),
            *options,
            "--",
            sys.executable,
            TOY,
            "--port",
            "{port}",
            *engine,
        ]
        done = subprocess.run(words, capture_output=True, text=True, timeout=280, cwd=tmp_path)
        found = tmp_path / "run" / "serving.json"
        return done, json.loads(found.read_text()) if found.exists() else None

    return call


def test_times_are_those_of_the_engine(bench):
    done, serving = bench(
        "--load", "rate=2", "arrivals=fixed", "requests=6", "input=20", "output=11", "--slo", "ttft<60ms,tpot<12ms"
    )
    assert done.returncode == 0, done.stdout + done.stderr
    (load,) = serving["loads"]
    assert load["completed"] == 6
    assert load["ttft_ms"]["p50"] == pytest.approx(50, rel=0.1)
    assert load["tpot_ms"]["p50"] == pytest.approx(10, rel=0.1)
    assert load["e2e_ms"]["p50"] == pytest.approx(150, rel=0.1)
    assert load["slo_share"] == 1
    assert "command" not in serving  # it may hold credentials; run.toml has it, masked
    assert load["engine"] == {"preemptions": 6}  # the request before the load is none of its
    series = load["series"]
    assert sum(series["output_tokens_per_second"]) * series["seconds"] == pytest.approx(66, rel=0.01)
    assert [request["output"] for request in series["requests"]] == [11] * 6
    assert max(series["answered"]) == 1 and "6 requests preempted" in done.stdout
    assert "TTFT" in done.stdout and "goodput" in done.stdout


def test_closed_loop_waits_for_free_slots_and_requests_that_fail_are_named(bench):
    done, serving = bench(
        "--load",
        "concurrency=8",
        "requests=16",
        "input=20",
        "output=11",
        "--load",
        "input=5000",
        "requests=1",
        "output=2",
    )
    assert done.returncode == 1, done.stdout + done.stderr
    full, refused = serving["loads"]
    # Four at a time: the others wait for a whole answer first.
    assert full["ttft_ms"]["p90"] == pytest.approx(200, rel=0.15)
    assert full["output_tokens_per_second"] == pytest.approx(4 * 11 / 0.15, rel=0.15)
    assert refused["failed"] == 1 and "longer than the model" in refused["problems"][0]


def test_capacity_by_bisection(bench):
    done, serving = bench(
        "--load", "rate=16", "requests=40", "input=20", "output=11", "--capacity", "p90_ttft<100ms", "--json"
    )
    assert done.returncode == 0, done.stdout + done.stderr
    # Four slots of 150 ms each serve 26.7 requests a second at most.
    assert 8 < serving["capacity"]["rate"] < 30 and serving["capacity"]["limited"]
    assert json.loads(done.stdout)["capacity"] == serving["capacity"]


def test_an_engine_that_ends_is_reported_with_its_own_message(bench):
    done, serving = bench("--load", "requests=1", engine=("--fail",))
    assert done.returncode != 0 and serving is None
    assert "the model does not fit" in done.stderr and "ended with code 1 before it answered" in done.stderr


def test_bad_load_is_a_usage_error(bench, tmp_path):
    (tmp_path / "bad.jsonl").write_text('{"timestamp": -1, "input_length": 3, "output_length": 3}\n')
    done, _ = bench("--load", str(tmp_path / "bad.jsonl"))
    assert done.returncode == 2 and "not negative" in done.stderr
