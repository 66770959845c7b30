import csv
import json

import pytest
from maya.search.space import SpaceError
from test_space import parse

ENGINE = """
command = ["python3", "engine.py", "--port", "{port}", "-tp", "{tp}"]
[parameters]
tp = [1, 2]
seqs = [64, 512, 2048]
[flags]
"--max-num-seqs" = "seqs"
[cluster]
name = "h100-sxm"
[serving]
load = "rate={8 * tp} requests=64 input=512 output=64"
limit = "p99_ttft<500ms"
[prune]
memory_increases_with = ["seqs"]
"""


def rows(folder):
    with open(folder / "results.csv") as file:
        return list(csv.DictReader(file))


def test_the_cheapest_engine_that_keeps_the_limit(maya_search):
    (maya_search.path / "engine.py").touch()
    (maya_search.path / "space.toml").write_text(ENGINE)
    log = maya_search.path / "log"
    done = maya_search.run("space.toml", "--out", "out", FAKE_LOG=str(log))
    assert done.returncode == 0, done.stderr
    found = {(row["tp"], row["seqs"]): row for row in rows(maya_search.path / "out")}
    assert found["1", "2048"]["outcome"] == "out of memory"
    assert "No available memory for the cache blocks" in found["1", "2048"]["detail"]
    # All answer 8 requests a second a GPU, so they are as cheap. 512 sequences at once slow each other down, and two
    # GPUs are faster than one: the fastest is first.
    best = json.loads((maya_search.path / "out" / "results.json").read_text())["best"]
    price = 2.99 / (8 * 64 * 3600) * 1e6
    assert best["goals"] == [pytest.approx(price)] and best["values"] == {"tp": 2, "seqs": 64}
    assert float(found["1", "64"]["median_tpot_ms"]) == pytest.approx(30)
    words = [json.loads(line) for line in log.read_text().splitlines()]
    assert all(w[0] == "serve-bench" and "{port}" in w and "--stop-after" not in w for w in words)
    assert all("--run-option=--no-report" in w and "--run-option=--no-timeline" not in w for w in words)  # as it can
    assert "output tokens/s" in done.stdout and "median TTFT" in done.stdout
    assert not list((maya_search.path / "out").glob("trials/*/run/caches"))
    page = (maya_search.path / "out" / "search.html").read_text()
    assert "Cost of 1M output tokens against what a client sees" in page


def test_loads_that_break_the_limit_are_over_it(maya_search):
    (maya_search.path / "engine.py").touch()
    (maya_search.path / "space.toml").write_text(ENGINE.replace("rate={8 * tp}", "rate=60").replace("2048", "8"))
    done = maya_search.run("space.toml", "--out", "out")
    found = {(row["tp"], row["seqs"]): row for row in rows(maya_search.path / "out")}
    assert found["1", "8"]["outcome"] == "over a limit" and "p99_ttft<500ms is" in found["1", "8"]["detail"]
    assert found["2", "512"]["outcome"] == "ok", done.stdout


def test_the_capacity_decides_where_the_rate_is_sought(maya_search):
    (maya_search.path / "engine.py").touch()
    (maya_search.path / "space.toml").write_text(ENGINE + "[objective]\ngoal = 'requests_per_second'\n")
    text = (maya_search.path / "space.toml").read_text().replace("limit =", "capacity = true\nlimit =")
    (maya_search.path / "space.toml").write_text(text)
    done = maya_search.run("space.toml", "--out", "out", "--json")
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout)
    assert result["best"]["values"] == {"tp": 2, "seqs": 512} and result["best"]["goals"][0] == 128
    assert "% more than" in result["why"]
    shown = maya_search.run("--show", "out")
    assert "capacity" in shown.stdout and "128/s" in shown.stdout


def test_failed_requests_are_a_crash_with_their_reason(maya_search):
    (maya_search.path / "engine.py").touch()
    (maya_search.path / "space.toml").write_text(ENGINE.replace('"-tp"', '"--fails", "-tp"'))
    done = maya_search.run("space.toml", "--out", "out")
    assert done.returncode == 1
    assert "3 of 64 requests failed: 400 Bad Request" in done.stderr


@pytest.mark.parametrize("text, words", [
    (ENGINE + "[objective]\ngoal = 'step_time'\n", "step_time is a goal of training (this space has a [serving])"),
    (ENGINE[:ENGINE.index("[serving]")] + "[objective]\ngoal = 'p99_ttft'\n", "p99_ttft is a goal of serving"),
    (ENGINE.replace("p99_ttft<500ms", "ttft<500ms"), "[serving] limit: 'ttft<500ms' is not a limit"),
    (ENGINE.replace("{8 * tp}", "{rate}"), "[serving] load: the placeholder {rate} is no parameter"),
    (ENGINE + "flops = '1e12'\n", "[prune] flops: is about training steps"),
    (ENGINE + "[fidelity]\nparameter = 'seqs'\nat = [1, 2]\n", "[fidelity] is about training steps"),
    (ENGINE.replace("limit = ", "capacity = true\nslo = ").replace("p99_ttft", "ttft"), "true needs `limit`"),
    (ENGINE.replace("load = ", "lod = "), "did you mean `load`"),
    (ENGINE.replace('"rate={8 * tp} requests=64 input=512 output=64"', "4"), "must say what is asked of the engine"),
])
def test_mistakes_are_named(text, words):
    with pytest.raises(SpaceError) as problem:
        parse(text)
    assert words in str(problem.value), problem.value
