"""Jobs of which only some ranks run (`maya run --ranks`)."""

import sys

import pytest

TRAIN = ("torchrun", "--nproc-per-node", "4", "examples/train_gpt.py", "--layers", "2", "--steps", "3")


def collectives(prediction):
    """What the network was asked for in a step and how long each takes by itself."""
    return sorted((op["sizes"], op["count"], op["ms"]) for op in prediction["ops"] if op["kind"] == "collective")


def test_some_ranks_stand_for_all(run, tmp_path):
    whole = run(*TRAIN, out=tmp_path / "whole")
    part = run(*TRAIN, out=tmp_path / "part", options=("--ranks", "0-1"))
    assert whole.code == 0 and part.code == 0, part.stderr
    assert [p.name for p in part.recordings] == ["rank-0.maya", "rank-1.maya"]
    a, b = whole.prediction, part.prediction
    assert b["world_size"] == 4
    # Not the breakdown: a collective there also waits for the slowest host, which two runs never share.
    assert collectives(a) and collectives(b) == collectives(a)
    assert b["flops_per_step"] == pytest.approx(a["flops_per_step"])


def test_ranks_of_a_node_nobody_runs(run):
    """The second node is only waited for; what its ranks say in an exchange is what the first's say."""
    code = ("import torch, torch.distributed as dist, os; dist.init_process_group('nccl');"
            "torch.cuda.set_device(int(os.environ['LOCAL_RANK']));"
            "objects = [None] * 4; dist.all_gather_object(objects, 'from ' + os.environ['RANK']); print(objects);"
            "dist.destroy_process_group()")
    done = run("torchrun", "--nnodes", "2", "--nproc-per-node", "2", "--no-python", sys.executable, "-c", code,
               cluster="dgx-h100", options=("--ranks", "0-1", "--no-predict"))
    assert done.code == 0, done.stderr
    assert "['from 0', 'from 1', 'from 0', 'from 0']" in done.stdout
    assert len(done.recordings) == 2


def test_a_list_that_is_none(maya):
    done = maya("run", "--ranks", "2-1", "--", "true")
    assert done.returncode == 2
    assert "--ranks 2-1: expected `all` or ranks as 0-3,8,9" in done.stderr
