"""Deep pipelines of which five stages run (`maya run --ranks unique`): the same answer as with every rank."""

import os
import pathlib

import pytest

SCRIPT = str(pathlib.Path(__file__).with_name("pipeline_schedules.py"))
LONG = pytest.mark.skipif(not os.environ.get("MAYA_LONG"), reason="minutes of CPU: `make scale`")

# Schedule, ranks, further arguments.
JOBS = [
    ("1f1b", 8, ()),
    pytest.param("interleaved", 8, ("--chunks", "2"), marks=LONG),
    pytest.param("zb", 8, ("--chunks", "2"), marks=LONG),
    pytest.param("zbv", 8, (), marks=LONG),
    pytest.param("dualpipev", 8, (), marks=LONG),
    pytest.param("1f1b", 16, ("--stages", "8"), marks=LONG),
    pytest.param("1f1b", 32, ("--micro", "48"), marks=LONG),
    pytest.param("interleaved", 16, ("--chunks", "2", "--micro", "32"), marks=LONG),
]


def job(ranks, *arguments):
    return "torchrun", "--nnodes", str(ranks // 8), "--node-rank", "0", "--nproc-per-node", "8", SCRIPT, *arguments


def memory(prediction):
    """The memory of one rank of each stage."""
    return {group["rank"]: (group["peak_bytes"], group["reserved_bytes"]) for group in prediction["memory"]}


@pytest.mark.parametrize("schedule, ranks, arguments", JOBS)
def test_five_stages_give_the_prediction_of_all_stages(run, tmp_path, schedule, ranks, arguments):
    words = job(ranks, "--schedule", schedule, "--micro", str(2 * ranks), *arguments)
    whole = run(*words, out=tmp_path / "whole", timeout=1200)
    part = run(*words, out=tmp_path / "part", options=("--ranks", "unique"), timeout=1200)
    assert whole.code == 0 and part.code == 0, part.stderr
    a, b = whole.prediction, part.prediction
    assert len(whole.recordings) == ranks
    # Where a stage that ran does not come out as it was recorded, more of them run.
    assert len(part.recordings) == 5 or schedule in ("zb", "zbv", "dualpipev"), part.stderr
    assert b["world_size"] == ranks
    assert b["step"]["ms"] == pytest.approx(a["step"]["ms"], rel=0.005)
    if schedule in ("zb", "zbv", "dualpipev"):
        # A derived stage of such a schedule was seen to request one segment of 2 MiB less.
        for rank, (peak, _) in memory(a).items():
            assert memory(b)[rank][0] == pytest.approx(peak, rel=0.001)
    else:
        assert memory(b) == memory(a)
    if schedule == "1f1b":
        assert sum(stage["recorded"] for stage in b["stages"]) == len(part.recordings)
        assert sum(stage["ranks"] for stage in b["stages"]) == ranks


def test_ranks_of_an_earlier_run_start_at_once(run, tmp_path):
    words = job(8, "--schedule", "1f1b", "--micro", "16")
    usual = run(*words, out=tmp_path / "usual", options=("--ranks", "unique"), timeout=600)
    assert usual.code == 0 and "rank 0 is a stage of a pipeline" in usual.stderr, usual.stderr
    ranks = ",".join(str(s["rank"]) for s in usual.prediction["stages"] if s["recorded"])
    for expected, right in ((ranks, True), ("0,2", False)):
        done = run(*words, out=tmp_path / expected, options=("--ranks", "unique", "--expect-ranks", expected),
                   timeout=600)
        assert done.code == 0, done.stderr
        assert ("rank 0 is a stage of a pipeline" in done.stderr) == (not right), done.stderr
        assert memory(done.prediction) == memory(usual.prediction)
        assert done.prediction["step"]["ms"] == pytest.approx(usual.prediction["step"]["ms"], rel=0.02)


def test_stages_of_a_stopped_job_are_derived_from_five(run, tmp_path):
    """Ranks are stopped at different places. Only the steps that all of them completed are checked for consistency."""
    words = job(8, "--schedule", "1f1b", "--micro", "16", "--steps", "100000")
    done = run(*words, options=("--ranks", "unique", "--stop-after", "1"), timeout=600)
    assert done.code == 0, done.stderr
    assert "cannot be derived" not in done.stderr and len(done.recordings) == 5, done.stderr


@LONG
def test_different_stages_are_detected_and_run(run, tmp_path):
    done = run(*job(8, "--schedule", "1f1b", "--uneven"), options=("--ranks", "unique"), timeout=600)
    assert done.code == 0, done.stderr
    assert "cannot be derived" in done.stderr
    assert len(done.recordings) > 5


@LONG
def test_all_stages_run_if_they_alternate_in_sending(run, tmp_path):
    """Even stages send before they receive, odd ones after it: the others cannot be derived from five of them."""
    script = str(pathlib.Path(__file__).parents[2] / "validation/scripts/llama_3d.py")
    words = (
        "torchrun",
        "--nproc-per-node",
        "8",
        script,
        "--layers",
        "8",
        "--width",
        "1024",
        "--heads",
        "8",
        "--inner",
        "2816",
        "--vocabulary",
        "8192",
        "--pipeline",
        "8",
        "--micro-batches",
        "8",
        "--steps",
        "3",
    )
    whole = run(*words, out=tmp_path / "whole", timeout=600)
    part = run(*words, out=tmp_path / "part", options=("--ranks", "unique"), timeout=600)
    assert whole.code == 0 and part.code == 0, part.stderr
    assert part.prediction["step"]["ms"] == pytest.approx(whole.prediction["step"]["ms"], rel=0.03)
