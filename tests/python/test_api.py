"""`import maya`: runs, predictions, comparisons, estimates, and what they do with bad input."""

import doctest
import json
import os
import threading

import maya
import pytest
from maya import api, engine, notebook, results


def test_examples_in_docstrings_run(here):
    found = doctest.testmod(api, extraglobs={"maya": maya})
    assert found.attempted > 15 and found.failed == 0


def test_a_prediction_is_typed_and_equals_the_file(here):
    run = maya.open("maya-runs/demo")
    kept, made, quick = run.prediction, run.predict(details=True), run.predict()
    assert kept.raw == made.raw == json.loads((here / "maya-runs/demo/prediction.json").read_text())
    assert kept.raw == {**made.raw, **quick.raw} and "code" not in quick.raw
    assert kept.step.ms == kept["step"]["ms"] and kept.memory[0].rank == 0
    parts = kept.breakdown
    assert parts.compute + parts.exposed_communication + parts.copy + parts.idle == pytest.approx(kept.step.ms)


def test_a_what_if_does_not_touch_the_run(here):
    before = (here / "maya-runs/demo/prediction.json").read_bytes()
    slower = maya.predict("maya-runs/demo", set={"scale.gemm": 100})
    assert slower.settings == {"scale.gemm": "100"}
    assert slower.step.ms > maya.predict("maya-runs/demo").step.ms
    assert (here / "maya-runs/demo/prediction.json").read_bytes() == before


def test_the_timeline_covers_the_step(here):
    run = maya.open("maya-runs/demo")
    timeline = run.timeline()
    assert {"gemm", "optimizer_step"} <= {span.kind for span in timeline}
    assert all(span.start_us <= span.end_us for span in timeline)
    slower = run.predict(set={"scale.gemm": 100}).timeline()
    gemms = [sum(s.us for s in t if s.kind == "gemm") for t in (timeline, slower)]
    assert gemms[1] > 50 * gemms[0]


def test_notebooks_show_markup_as_text(here):
    run = maya.open("maya-runs/demo")
    hostile = results.Prediction.from_json({**run.prediction.raw, "command": "<script>alert(1)</script>"})
    for piece in (hostile, maya.compare(run, hostile), run.timeline(), maya.estimate("gemm", m=8, n=8, k=8), run,
                  maya.net("dgx-h100", "all_reduce", "1MB")):
        shown = piece._repr_html_()
        assert shown and "<script" not in shown
    assert "&lt;script&gt;" in notebook.prediction(hostile)


def test_tables_need_pandas_only_when_asked_for(here, monkeypatch):
    import sys

    monkeypatch.setitem(sys.modules, "pandas", None)
    prediction = maya.open("maya-runs/demo").prediction
    with pytest.raises(ImportError, match="pip install pandas"):
        prediction.to_dataframe()
    with pytest.raises(ValueError, match="expected ops"):
        prediction.to_dataframe("nothing")


def test_tables(here):
    pytest.importorskip("pandas")
    prediction = maya.open("maya-runs/demo").prediction
    assert list(prediction.to_dataframe()["kind"]) == [op.kind for op in prediction.ops]
    assert len(prediction.to_dataframe("summary")) == 1
    assert "us" in prediction.timeline().to_dataframe()


@pytest.mark.parametrize("question, words", [
    (lambda: maya.open("nowhere"), "no such run directory"),
    (lambda: maya.predict("nowhere"), "no such run directory"),
    (lambda: maya.predict("maya-runs/demo", cluster="h200-sxn"), "h200-sxm"),
    (lambda: maya.predict("maya-runs/demo", set={"host.spede": 2}), "host.spe"),
    (lambda: maya.estimate("gem m=4"), "gem"),
    (lambda: maya.net("dgx-h100", "all_redoce"), "all_redoce"),
    (lambda: maya.compare("maya-runs/demo"), "two"),
    (lambda: maya.compare("maya-runs/demo", "train.py"), "expected a run directory or a prediction.json"),
])
def test_bad_questions_say_what_to_do(here, question, words):
    with pytest.raises(maya.MayaError, match=words):
        question()
    assert maya.estimate("gemm", m=8, n=8, k=8).us > 0  # the engine still answers


def test_a_command_that_fails(here, tmp_path, capsys):
    (tmp_path / "bad.py").write_text("import torch; torch.ones(2, device='cuda'); raise SystemExit(3)")
    with pytest.raises(maya.MayaError):
        maya.run(["python", str(tmp_path / "bad.py")], out=tmp_path / "a", cluster="h100-sxm", quiet=True)
    run = maya.run(["python", str(tmp_path / "bad.py")], out=tmp_path / "b", cluster="h100-sxm", check=False)
    assert run.exit_code == 3 and "recording to" in capsys.readouterr().out
    with pytest.raises(maya.MayaError, match="unknown cluster|no cluster|nonsense"):
        maya.run(["true"], out=tmp_path / "c", cluster="nonsense", quiet=True)


def test_predictions_of_other_versions_are_refused(here, tmp_path):
    (tmp_path / "newer.json").write_text(json.dumps({"version": 2}))
    with pytest.raises(maya.MayaError, match="version"):
        maya.compare("maya-runs/demo", tmp_path / "newer.json")


def test_threads_share_one_engine(here):
    found = []
    threads = [
        threading.Thread(target=lambda k=k: found.append((k, maya.estimate("gemm", m=64, n=64, k=k).op)))
        for k in range(8, 24)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(found) == sorted((k, op) for k, op in found if f" k={k} " in op) and len(found) == 16


def test_an_engine_that_died_is_replaced(here):
    maya.estimate("gemm", m=8, n=8, k=8)
    engine.engine._process.kill()
    engine.engine._process.wait()
    assert maya.estimate("gemm", m=8, n=8, k=8).us > 0


def test_a_forked_child_has_its_own_engine(here):
    maya.estimate("gemm", m=8, n=8, k=8)
    child = os.fork()
    if child == 0:
        os._exit(0 if " k=16 " in maya.estimate("gemm", m=8, n=8, k=16).op else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert " k=8 " in maya.estimate("gemm", m=8, n=8, k=8).op
