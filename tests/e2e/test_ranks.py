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
    assert "--ranks 2-1: expected `all`, `unique` or ranks as 0-3,8,16-56/8" in done.stderr
    done = maya("run", "--ranks", "8", "--", sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", "8", "t.py")
    assert done.returncode == 2
    assert "there is no rank 8: the command starts 8 (1 × 8)" in done.stderr


PIPELINE = """
import os, torch, torch.distributed as dist
rank, world = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
dist.init_process_group("nccl")
def mine(groups):
    made = [(ranks, dist.new_group(ranks)) for ranks in groups]
    return next(group for ranks, group in made if rank in ranks)
stage, stages, block = rank // (world // 4), 4, world // 4  # tensor ranks, then data ranks, then stages
tensor = mine([list(range(i, i + 2)) for i in range(0, world, 2)])
data = mine([list(range(s * block + t, (s + 1) * block, 2)) for s in range(stages) for t in range(2)])
pipe = mine([list(range(i, world, block)) for i in range(block)])
weight = torch.zeros(256, 256, device="cuda", requires_grad=True)
optimizer = torch.optim.Adam([weight])
for step in range(3):
    x = torch.zeros(64, 256, device="cuda")
    for _ in range(4):
        dist.all_reduce(x @ weight.detach(), group=tensor)
    ahead, behind = rank + block, rank - block
    ops = ([dist.P2POp(dist.isend, x, ahead, pipe), dist.P2POp(dist.irecv, x.clone(), ahead, pipe)] if stage + 1 < stages else []) + (
        [dist.P2POp(dist.irecv, x.clone(), behind, pipe), dist.P2POp(dist.isend, x, behind, pipe)] if stage else [])
    for work in dist.batch_isend_irecv(ops):
        work.wait()
    (x @ weight).sum().backward()
    dist.all_reduce(weight.grad, group=data)
    optimizer.step()
print(f"rank {rank} of {world}, {os.environ['LOCAL_RANK']} of node {os.environ['GROUP_RANK']}", flush=True)
dist.destroy_process_group()
"""


def test_the_ranks_that_are_needed_are_found(run, tmp_path):
    """1,024 ranks: nothing but one of each pipeline stage runs, and the others take its place."""
    script = tmp_path / "pipeline.py"
    script.write_text(PIPELINE)
    done = run("torchrun", "--nnodes", "128", "--nproc-per-node", "8", str(script), cluster="dgx-h100", options=("--ranks", "unique"))
    assert done.code == 0, done.stderr
    assert "ranks 0, 256, 512, 768 run" in done.stderr
    assert sorted(p.name for p in done.recordings) == [f"rank-{r}.maya" for r in (0, 256, 512, 768)]
    assert "rank 768 of 1024, 0 of node 96" in done.stdout
    prediction = done.prediction
    assert prediction["world_size"] == 1024 and prediction["step"]["ms"] > 0
    notes = " ".join(prediction["notes"])
    assert "4 of 1024 ranks were recorded; each other rank is taken to do what the one at its place of the grid, 2 × 128 × 4" in notes
    assert "not recorded (" not in notes


def test_a_rank_is_done_when_its_own_process_is(run, tmp_path):
    """Under a launcher Maya does not know, absent ranks wait for those that run, not for what these start or fork."""
    (tmp_path / "train.py").write_text(
        "import os, subprocess, sys, time, torch\n"
        "torch.zeros(4, device='cuda')\n"
        "subprocess.run([sys.executable, '-c', 'pass'], check=True)\n"
        "if os.fork() == 0: os._exit(0)\n"
        "os.wait()\n"
        "time.sleep(2)\n"
        "open('done', 'w').close()\n")
    (tmp_path / "start.sh").write_text(
        f"cd {tmp_path}\n"
        f"RANK=0 WORLD_SIZE=2 {sys.executable} train.py &\n"
        f"RANK=1 WORLD_SIZE=2 {sys.executable} -c 'print(\"never\")'\n"
        "test -e done || exit 7\n"
        "wait\n")
    done = run("sh", str(tmp_path / "start.sh"), options=("--ranks", "0", "--no-predict"))
    assert done.code == 0, done.stderr
    assert "never" not in done.stdout
