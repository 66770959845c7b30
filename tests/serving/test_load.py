"""Loads: where requests, lengths and arrival times come from, and what is refused."""

import json

import pytest
from maya.serve_bench import load


def file(tmp_path, name, *lines):
    path = tmp_path / name
    path.write_text("\n".join(line if isinstance(line, str) else json.dumps(line) for line in lines) + "\n")
    return str(path)


def test_fixed_rate():
    made = load.parse(["rate=4", "arrivals=fixed", "requests=3", "input=10", "output=5-7"])
    assert [request.at for request in made.requests] == [0, 0.25, 0.5]
    assert all(len(request.prompt) == 10 and 5 <= request.output <= 7 for request in made.requests)


def test_poisson_arrivals_have_the_rate_and_repeat_with_the_seed():
    made = load.parse(["rate=10", "requests=2000", "input=1"])
    assert 180 < made.requests[-1].at < 220
    assert made == load.parse(["rate=10", "requests=2000", "input=1"])
    assert made != load.parse(["rate=10", "requests=2000", "input=1", "seed=1"])


def test_closed_loop_and_shared_prefix():
    made = load.parse(["concurrency=8", "requests=5", "input=100", "prefix=60"])
    assert made.concurrency == 8
    assert len({request.prompt[:60] for request in made.requests}) == 1
    assert len({request.prompt[60:] for request in made.requests}) == 5


def test_token_ids_of_a_trace_are_kept(tmp_path):
    path = file(
        tmp_path,
        "a.jsonl",
        {"input_tok_ids": [5, 6, 7], "output_toks": 4, "arrival_time_ns": 1_500_000_000},
        {"prompt_token_ids": [8], "output_len": 1, "arrival_time": 2},
    )
    made = load.parse([path])
    assert [(r.at, r.prompt, r.output) for r in made.requests] == [(1.5, (5, 6, 7), 4), (2.0, (8,), 1)]
    assert [r.at for r in load.parse([path, "speed=2"]).requests] == [0.75, 1.0]


def test_equal_blocks_of_mooncake_are_equal_tokens(tmp_path):
    path = file(
        tmp_path,
        "m.jsonl",
        {"timestamp": 0, "input_length": 1100, "output_length": 3, "hash_ids": [1, 2, 3]},
        {"timestamp": 2000, "input_length": 1030, "output_length": 3, "hash_ids": [1, 2, 9]},
    )
    first, second = load.parse([path]).requests
    assert (len(first.prompt), len(second.prompt), second.at) == (1100, 1030, 2.0)
    assert first.prompt[:1024] == second.prompt[:1024] and first.prompt[1024:1030] != second.prompt[1024:]


def test_azure_csv(tmp_path):
    path = file(
        tmp_path,
        "azure.csv",
        "TIMESTAMP,ContextTokens,GeneratedTokens",
        "2023-11-16 18:15:46.6805900,374,44",
        "2023-11-16 18:15:50.9951690,396,109",
    )
    first, second = load.parse([path]).requests
    assert (first.at, len(first.prompt), first.output) == (0, 374, 44)
    assert second.at == pytest.approx(4.314579)


@pytest.mark.parametrize(
    "lines, message",
    [
        ([{"timestamp": -5, "input_length": 3, "output_length": 1}], "not negative"),
        (
            [
                {"timestamp": 9, "input_length": 3, "output_length": 1},
                {"timestamp": 5, "input_length": 3, "output_length": 1},
            ],
            "before the one ahead of it",
        ),
        ([{"prompt": "some text", "output_len": 3}], "token ids"),
        ([{"input_length": 3}], "length of the answer is missing"),
        ([{"input_length": 0, "output_length": 3}], "at least one token"),
        (["{"], "line 1"),
        ([], "no requests"),
    ],
)
def test_bad_traces_are_refused_with_the_line(tmp_path, lines, message):
    with pytest.raises(load.BadLoad, match=message):
        load.parse([file(tmp_path, "bad.jsonl", *lines)])


@pytest.mark.parametrize(
    "words, message",
    [
        (["rate=0"], "no request would ever arrive"),
        (["rate=fast"], "a number"),
        (["input=9-3"], "LEAST"),
        (["arrivals=bursty"], "fixed or poisson"),
        (["concurrency=2", "rate=3"], "has no rate"),
        (["speed=2"], "belongs to a file"),
        (["ratio=2"], "a load has no"),
        (["nothing.jsonl"], "no such file"),
        (["requests=-1"], "at least 1"),
    ],
)
def test_bad_keys_are_refused(words, message):
    with pytest.raises(load.BadLoad, match=message):
        load.parse(words)
