"""Searches with a formula instead of runs: results, skipped and reused trials, continued searches."""

import json

import pytest
from conftest import LAYOUTS
from maya import MayaError
from maya.search import outcome, session, summary
from maya.search.objective import peak_memory
from maya.search.store import StoreError


def test_pruning_finds_the_same_best(search):
    everything = search(LAYOUTS, out="all", prune=False)
    pruned = search(LAYOUTS, out="pruned")
    assert everything.best.values == pruned.best.values
    assert everything.best.goals == pruned.best.goals
    assert len(pruned.skipped) > 50 and not everything.skipped
    assert pruned.engine.count < 0.7 * everything.engine.count
    # Every reason is true of the configuration it was given for.
    outcomes = {tuple(r.values.items()): r for r in everything.records}
    best = everything.best.step_ms
    for record in pruned.skipped:
        real = outcomes[tuple(record.values.items())]
        if record.detail.startswith("needs at least"):
            assert real.kind == outcome.OUT_OF_MEMORY, record.detail
        else:
            assert real.kind == outcome.OUT_OF_MEMORY or real.step_ms > best, record.detail


def test_wrong_declaration_is_detected_and_ignored(search):
    wrong = LAYOUTS.replace('memory_increases_with = ["micro"]', 'memory_increases_with = ["tp", "micro"]')
    everything = search(LAYOUTS, out="all", prune=False)
    result = search(wrong, out="wrong")
    assert any("tp" in note and "took less memory" in note for note in result.notes)
    assert result.best.goals == everything.best.goals


def test_equal_commands_run_once_and_cluster_figures_are_simulated_again(search):
    text = (
        LAYOUTS.replace("[parameters]", '[parameters]\nnic = [25, 50]\nunseen = ["a", "b"]')
        .replace('nodes = "world / 8"', 'nodes = "world / 8"\nset = { "network.nic_gbps" = "{nic}" }')
        .replace("[flags]", '[flags]\n"--same" = "1 if unseen == \'a\' else 1"')
        .replace("tp = { powers_of_two = [1, 8] }", "tp = [4, 8]")
        .replace("pp = { powers_of_two = [1, 8] }", "pp = [2]")
        .replace('recompute = ["none", "selective", "full"]', 'recompute = ["none"]')
    )
    result = search(text, prune=False)
    ran = [r for r in result.records if not r.reused]
    again = [r for r in result.records if r.reused == "simulated again"]
    same = [r for r in result.records if r.reused == "same command"]
    assert len(ran) * 4 == len(result.records) and len(ran) == len(again)
    assert len(same) + len([r for r in again]) + len(ran) == len(result.records)
    fast = {tuple(r.values[n] for n in ("tp", "micro", "vpp", "sp")): r.step_ms for r in ran}
    for record in again:
        assert record.step_ms != fast[tuple(record.values[n] for n in ("tp", "micro", "vpp", "sp"))]


def test_interrupted_search_continues_without_loss(search, tmp_path):
    whole = search(LAYOUTS, out="whole", prune=False)
    first = search(LAYOUTS, out="parts", prune=False, trials=100)
    assert len(first.records) == 100 and first.engine.count == 100
    second = search(LAYOUTS, out="parts", prune=False)
    assert second.engine.count == whole.engine.count - 100
    assert sorted(map(str, (r.values for r in second.records))) == sorted(map(str, (r.values for r in whole.records)))
    assert second.best.goals == whole.best.goals
    numbers = [r.number for r in second.records]
    assert len(set(numbers)) == len(numbers)


def test_larger_space_reuses_finished_trials(search):
    small = LAYOUTS.replace("max = 4", "max = 2")
    first = search(small, prune=False)
    second = search(LAYOUTS, prune=False)
    whole = search(LAYOUTS, out="fresh", prune=False)
    assert second.engine.count == whole.engine.count - first.engine.count
    assert second.best.goals == whole.best.goals


def test_truncated_journal_is_read(search, tmp_path):
    search(LAYOUTS, prune=False, trials=20)
    journal = tmp_path / "out" / "study.journal"
    journal.write_bytes(journal.read_bytes()[:-37])
    again = search(LAYOUTS, prune=False, trials=1)
    assert len(again.records) in (20, 21)


def test_a_newer_store_is_refused(search, tmp_path):
    search(LAYOUTS, trials=1)
    origin = json.loads((tmp_path / "out" / "search.json").read_text())
    (tmp_path / "out" / "search.json").write_text(json.dumps({**origin, "version": 99}))
    with pytest.raises(StoreError, match="newer Maya"):
        search(LAYOUTS)
    with pytest.raises(StoreError, match="newer Maya"):
        session.show(tmp_path / "out")


def test_two_searches_on_one_directory_are_refused(search, tmp_path):
    from maya.search.space import Space
    from maya.search.store import Store

    (tmp_path / "space.toml").write_text(LAYOUTS)
    store = Store.open(tmp_path / "out", Space.load(tmp_path / "space.toml"), {})
    with pytest.raises(StoreError, match="another search"):
        search(LAYOUTS)
    store.close()
    assert search(LAYOUTS, trials=1).records


def test_unrelated_directory_is_not_written_to(search, tmp_path):
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "thesis.tex").write_text("")
    with pytest.raises(StoreError, match="not the directory of a search"):
        search(LAYOUTS)


def test_limits(search):
    result = search(LAYOUTS + "[limits]\nmemory_headroom = 0.5\n", prune=False)
    over = [r for r in result.records if r.kind == outcome.OVER_LIMIT]
    assert over and "% free" in over[0].detail
    for record in result.ranked:
        memory = record.prediction["memory"][0]
        assert memory["peak_bytes"] <= 0.5 * memory["capacity_bytes"]
    text = LAYOUTS.replace("world = 64\n", "").replace("[parameters]", "[parameters]\nworld = [32, 64]")
    result = search(text + "[limits]\ngpus = 40\n", out="gpus", prune=False)
    assert {r.values["world"] for r in result.ranked} == {32}
    assert {r.kind for r in result.records if r.values["world"] == 64} == {outcome.OVER_LIMIT}
    assert result.engine.count == len([r for r in result.records if r.values["world"] == 32])


@pytest.mark.parametrize(
    "goal, more",
    [
        ("tokens_per_second", ""),
        ("cost_per_token", ""),
        ("time_to_tokens", "tokens = 1e12"),
        ("cost_to_tokens", "tokens = 1e12"),
        ("cost_per_step", ""),
    ],
)
def test_goals_agree_on_one_cluster(search, goal, more):
    by_time = search(LAYOUTS.replace("max = 4", "max = 2"), out="time", prune=False)
    result = search(
        LAYOUTS.replace("max = 4", "max = 2") + f"[objective]\ngoal = '{goal}'\n{more}\n", out=goal, prune=False
    )
    assert result.best.values == by_time.best.values


def test_several_goals_have_a_front(search):
    result = search(
        LAYOUTS.replace("max = 4", "max = 2") + "[objective]\ngoal = ['step_time', 'memory']\n", prune=False
    )
    front = result.pareto
    assert front[0].values == result.best.values and len(front) > 2
    for a in front:
        for b in result.ranked:
            assert not (b.goals[0] < a.goals[0] and b.goals[1] < a.goals[1])


def test_a_parameter_without_effect_is_named(search):
    text = LAYOUTS.replace("[parameters]", "[parameters]\nunread = [1, 2]").replace(
        "[flags]", "[flags]\n'--unread' = 'unread'"
    )
    result = search(text.replace("max = 4", "max = 1"), prune=False)
    assert any(note.startswith("unread changes nothing that the GPUs do") for note in result.notes)
    assert not any(note.startswith(("tp", "pp", "micro")) for note in result.notes)


def test_exports(search, tmp_path):
    result = search(LAYOUTS, trials=30)
    data = json.loads((tmp_path / "out" / "results.json").read_text())
    assert data["best"]["values"] == result.best.values and len(data["trials"]) == len(result.records)
    rows = (tmp_path / "out" / "results.csv").read_text().splitlines()
    assert len(rows) == len(result.records) + 1 and rows[0].startswith("trial,tp,pp,micro")
    assert "<" in (tmp_path / "out" / "search.html").read_text()
    shown = session.show(tmp_path / "out")
    assert shown.best.values == result.best.values and shown.summary() == result.summary()
    assert "iframe" in result._repr_html_()


def test_optuna_opens_the_store(search, tmp_path):
    import optuna
    from optuna.storages.journal import JournalFileBackend

    result = search(LAYOUTS, trials=40)
    storage = optuna.storages.JournalStorage(JournalFileBackend(str(tmp_path / "out" / "study.journal")))
    study = optuna.load_study(study_name="space", storage=storage)
    assert study.best_trial.params["tp"] == result.best.values["tp"]
    assert study.best_value == result.best.goals[0]
    assert len(study.trials) == len(result.records)


def test_the_baseline_comes_first_and_must_be_valid(search):
    base = "[baseline]\ntp = 8\npp = 1\nmicro = 1\nrecompute = 'full'\nsp = false\n"
    result = search(LAYOUTS + base, trials=60)
    assert result.records[0].baseline and result.baseline.values["tp"] == 8
    assert "than the baseline" in result.summary()
    with pytest.raises(MayaError, match="breaks the constraint"):
        search(LAYOUTS + base.replace("micro = 1", "micro = 5"), out="bad")


def test_part_of_a_step_is_not_accepted_as_a_step(search):
    text = (
        LAYOUTS.replace("max = 4", "max = 1")
        + "[objective]\ngoal = 'tokens_per_second'\ntokens_per_step = 'batch * 2048'\n"
    )
    assert search(text, out="right", prune=False, trials=4).best
    wrong = search(text.replace("batch * 2048", "batch * 4096"), out="wrong", prune=False, trials=12)
    assert wrong.best is None
    assert {r.kind for r in wrong.records} <= {outcome.NO_STEP, outcome.OUT_OF_MEMORY}
    assert any("detected step has 1,048,576 tokens" in r.detail for r in wrong.records)


def test_configurations_within_the_error_of_memory_may_fit(search, monkeypatch):
    layouts = LAYOUTS.replace("dgx-a100", "p4d")  # less memory: it limits what is best
    monkeypatch.setattr(outcome, "MEMORY_ERROR", 0.0)
    certain = search(layouts, out="certain", prune=False)
    monkeypatch.setattr(outcome, "MEMORY_ERROR", 0.5)
    result = search(layouts, out="unsure", prune=False)
    unsure = [r for r in result.records if r.kind == outcome.MAY_FIT]
    for record in result.records:
        if record.kind in (outcome.MAY_FIT, outcome.OUT_OF_MEMORY):
            ran_out = next(r for r in certain.records if r.values == record.values)
            assert ran_out.kind == outcome.OUT_OF_MEMORY
        if record.kind == outcome.MAY_FIT:
            peak, capacity = peak_memory(record.prediction)
            assert capacity < peak <= 1.5 * capacity and record.step_ms and record.goals
            assert "less than the error of predicted memory" in record.detail
    assert unsure and result.best.values == certain.best.values
    assert [r.values for r in result.ranked] == [r.values for r in certain.ranked]
    better = result.may_fit
    assert better and all(r.step_ms < result.best.step_ms for r in better)
    text = summary.text(result, width=10_000)
    assert f"May fit: {result.space.label(better[0].values)} would take" in text
    assert json.loads(result.to_json())["may_fit"] == [r.number for r in better]
    assert result.engine.count == len(result.records) + len(unsure)  # only these run twice
    assert [r.kind for r in search(layouts, out="unsure", prune=False).records] == [r.kind for r in result.records]


def test_what_may_fit_does_not_skip_what_saves_memory(search, monkeypatch):
    """Recomputation is skipped where the same configuration fits without it, not where it may fit."""
    monkeypatch.setattr(outcome, "MEMORY_ERROR", 0.5)
    result = search(LAYOUTS)
    everything = search(LAYOUTS, out="all", prune=False)
    assert result.best.values == everything.best.values


def test_the_directory_is_private(search, tmp_path):
    search(LAYOUTS, trials=2)
    assert (tmp_path / "out").stat().st_mode & 0o077 == 0


def test_error_of_a_trial_is_that_of_the_worker():
    ended = "torch.distributed.elastic.multiprocessing.api.SignalException: Process 7 got signal: 15"
    stuck = "maya: RUN: the job deadlocks: rank 0 waits"
    assert outcome.first_error(
        f"{ended}\nmaya: rank 0 is a stage of a pipeline: ranks 0, 4 run\n{stuck}\n"
    ) == stuck.removeprefix("maya: ")
    assert (
        outcome.first_error(f"{ended}\nRuntimeError: no\nmaya: the command ended with code 1\n") == "RuntimeError: no"
    )
    assert outcome.first_error(ended) == ended
    missing = "helpers.cpp:12:10: fatal error: no such file"
    warned = "maya: rank 0 failed first, with code 1: x.py:4: UserWarning: old\n"
    assert outcome.first_error(f"{missing}\n{warned}") == missing
    framed = "╭─ Error ──────────╮\n│ Unrecognized options: --mode, full │\n│ ──── │\n│ Perhaps: --x │\n╰──────────╯\n"
    assert outcome.judge(2, framed + ended, None) == (outcome.USAGE, "Unrecognized options: --mode, full")


def test_literal_words_of_the_command_are_not_stored():
    assert session.stored_command(["python", "train.py", "--token=hunter2", "--micro={micro}"]) == \
        ["***", "***", "***", "--micro={micro}"]
