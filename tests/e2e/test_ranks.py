"""Jobs of which only some ranks run (`maya run --ranks`)."""

import socket
import sys

import pytest

TRAIN = ("torchrun", "--nproc-per-node", "4", "examples/train_gpt.py", "--layers", "2", "--steps", "3")


def collectives(prediction):
    """The collectives of a step, and how long each takes alone."""
    return sorted((op["sizes"], op["count"], op["ms"]) for op in prediction["ops"] if op["kind"] == "collective")


def test_some_ranks_represent_all(run, tmp_path):
    whole = run(*TRAIN, out=tmp_path / "whole")
    part = run(*TRAIN, out=tmp_path / "part", options=("--ranks", "0-1"))
    assert whole.code == 0 and part.code == 0, part.stderr
    assert [p.name for p in part.recordings] == ["rank-0.maya", "rank-1.maya"]
    a, b = whole.prediction, part.prediction
    assert b["world_size"] == 4
    # Not the breakdown: a collective there also waits for the slowest host, which two runs never share.
    assert collectives(a) and collectives(b) == collectives(a)
    assert b["flops_per_step"] == pytest.approx(a["flops_per_step"])


def between_gpus(prediction):
    """What crosses the links in a step: copies to other GPUs, and collectives."""
    return sorted((op["kind"], op["sizes"], op["count"]) for op in prediction["ops"]
                  if op["kind"] == "collective" or "direction=peer" in op["sizes"])


def test_symmetric_memory_of_absent_ranks(run, tmp_path):
    """Handles are exchanged through a store from C++, in which absent ranks must answer."""
    train = ("torchrun", "--nproc-per-node", "4", "tests/workloads/symmetric_memory.py")
    whole = run(*train, out=tmp_path / "whole")
    assert whole.code == 0, whole.stderr
    found = between_gpus(whole.prediction)
    assert sum(kind == "copy" for kind, _, _ in found) == 1 and sum(kind == "collective" for kind, _, _ in found) == 2
    for ranks in ("unique", "0,2"):
        part = run(*train, out=tmp_path / ranks, options=("--ranks", ranks), MAYA_WAIT_REPORT="5")
        assert part.code == 0, part.stderr
        assert between_gpus(part.prediction) == found
        # Memory of the other ranks is not charged here.
        assert part.prediction["memory"][0]["peak_bytes"] == whole.prediction["memory"][0]["peak_bytes"]


def test_ranks_of_a_node_that_does_not_run(run):
    """The second node does not run; in an exchange its ranks have the values of the first node's ranks."""
    code = ("import torch, torch.distributed as dist, os; dist.init_process_group('nccl');"
            "torch.cuda.set_device(int(os.environ['LOCAL_RANK']));"
            "objects = [None] * 4; dist.all_gather_object(objects, 'from ' + os.environ['RANK']); print(objects);"
            "dist.destroy_process_group()")
    done = run("torchrun", "--nnodes", "2", "--nproc-per-node", "2", "--no-python", sys.executable, "-c", code,
               cluster="dgx-h100", options=("--ranks", "0-1", "--no-predict"))
    assert done.code == 0, done.stderr
    assert "['from 0', 'from 1', 'from 0', 'from 0']" in done.stdout
    assert len(done.recordings) == 2


def test_invalid_list_of_ranks(maya):
    done = maya("run", "--ranks", "2-1", "--", "true")
    assert done.returncode == 2
    assert "--ranks 2-1: expected `all`, `unique` or ranks as 0-3,8,16-56/8" in done.stderr
    done = maya(
        "run", "--ranks", "8", "--", sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", "8", "t.py"
    )
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
    done = run(
        "torchrun",
        "--nnodes",
        "128",
        "--nproc-per-node",
        "8",
        str(script),
        cluster="dgx-h100",
        options=("--ranks", "unique"),
    )
    assert done.code == 0, done.stderr
    assert "ranks 0, 256, 512, 768 run" in done.stderr
    assert sorted(p.name for p in done.recordings) == [f"rank-{r}.maya" for r in (0, 256, 512, 768)]
    assert "rank 768 of 1024, 0 of node 96" in done.stdout
    prediction = done.prediction
    assert prediction["world_size"] == 1024 and prediction["step"]["ms"] > 0
    notes = " ".join(prediction["notes"])
    assert (
        "4 of 1024 ranks were recorded; each other rank is assumed to do the same work as the recorded one at its "
        "place in the process grid, 2 × 128 × 4"
        in notes
    )
    assert "unrecorded rank" not in notes


UNEVEN = """
import os, sys, torch, torch.distributed as dist
dist.init_process_group("nccl")
rank = dist.get_rank()
torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(256, 256).cuda())
optimizer = torch.optim.AdamW(model.parameters())
rows = 2048 if rank == int(sys.argv[1]) else 1024
for step in range(5):
    optimizer.zero_grad()
    model(torch.randn(rows, 256, device="cuda")).sum().backward()
    optimizer.step()
    print("rank", rank, "step", step)
"""


def test_a_rank_that_differs_is_found_by_a_second_one(run, tmp_path):
    script = tmp_path / "uneven.py"
    script.write_text(UNEVEN)

    def train(odd, *options):
        return run("torchrun", "--nnodes", "2", "--nproc-per-node", "8", str(script), str(odd), cluster="dgx-h100",
                   out=tmp_path / f"run{odd}{len(options)}", options=("--ranks", "unique", *options))

    equal = train(-1)
    assert equal.code == 0, equal.stderr
    assert [p.name for p in equal.recordings] == ["rank-0.maya"] and "rank 15 step" not in equal.stdout
    assert "rank 15 was run too and does the same work as rank 0" in equal.prediction["notes"]
    uneven = train(15)
    assert uneven.code == 0, uneven.stderr
    assert "rank 15 does other work than rank 0: " in uneven.stderr and "more FLOPs" in uneven.stderr
    assert sorted(p.name for p in uneven.recordings) == [f"rank-{r}.maya" for r in (0, 1, 15, 8)]
    assert any("ranks 0, 1, 8, 15 were recorded" in note for note in uneven.prediction["notes"])
    assert uneven.prediction["step"]["count"] >= 2
    trusting = train(15, "--no-probe")
    assert [p.name for p in trusting.recordings] == ["rank-0.maya"]


def test_rank_ends_with_its_own_process(run, tmp_path):
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


GLOO = """
import os, torch, torch.distributed as dist
rank, world = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
dist.init_process_group("cpu:gloo,cuda:nccl")
torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
halves = [list(range(world // 2)), list(range(world // 2, world))]
half = [dist.new_group(ranks, backend="gloo") for ranks in halves][rank >= world // 2]
pair = [dist.new_group([i, i + world // 2], backend="gloo") for i in range(world // 2)][rank % (world // 2)]

def show(what, value):
    os.write(1, f"{rank}: {what} {value}\\n".encode())

x = torch.tensor([rank + 1]); dist.all_reduce(x); show("sum", x.item())
x = torch.tensor([rank + 1]); dist.all_reduce(x, op=dist.ReduceOp.MAX, group=half); show("max", x.item())
objects = [None] * world; dist.all_gather_object(objects, rank); show("all_gather_object", objects)
objects = [None] * 2; dist.all_gather_object(objects, "x" * (rank + 1), group=pair); show("pair", [len(o) for o in objects])
box = [f"from {rank}"]; dist.broadcast_object_list(box, src=0); show("broadcast", box)
box = [f"from {rank}"]; dist.broadcast_object_list(box, src=1); show("absent root", box)
box = [None]; dist.scatter_object_list(box, [f"to {i}" for i in range(world)] if rank == 0 else None, src=0); show("scatter", box)
box = [None] * world if rank == 0 else None; dist.gather_object(rank, box, dst=0); show("gather", box)
x = torch.empty(world, dtype=torch.long); dist.all_to_all_single(x, torch.arange(world) + 100 * rank); show("all_to_all", x.tolist())
x = torch.empty(world, dtype=torch.long); dist.all_gather_into_tensor(x, torch.tensor([rank])); show("into", x.tolist())
x = torch.empty(1); dist.reduce_scatter_tensor(x, torch.ones(world)); show("reduce_scatter", x.item())
dist.barrier(); dist.barrier(group=half); dist.monitored_barrier(group=half)
x = torch.full((1,), float(rank))
if rank == 0:
    dist.send(x, 1)
    dist.send(x + 5, world - 1)
if rank == world - 1:
    dist.recv(x, 1)
    dist.recv(x, 0)
show("recv", x.item())
x = torch.zeros(2, device="cuda"); dist.all_reduce(x); show("device", tuple(x.shape))
dist.destroy_process_group()
"""


def test_groups_on_the_cpu_are_made_of_the_ranks_that_run(run, tmp_path):
    """Gloo would wait for absent members for ever. Their values are those of the nearest rank below that runs."""
    (tmp_path / "gloo.py").write_text(GLOO)
    done = run(
        "torchrun", "--nproc-per-node", "4", str(tmp_path / "gloo.py"), options=("--ranks", "0,3", "--no-predict")
    )
    assert done.code == 0, done.stderr
    said = set(done.stdout.splitlines())
    for line in (
        "0: sum 7", "3: sum 7",  # 1 + 1 + 1 + 4
        "0: max 1", "3: max 4",
        "0: all_gather_object [0, 0, 0, 3]", "3: all_gather_object [0, 0, 0, 3]",
        "0: pair [1, 1]", "3: pair [4, 4]",
        "3: broadcast ['from 0']", "3: absent root ['from 3']", "3: scatter ['to 3']", "0: gather [0, 0, 0, 3]",
        "0: all_to_all [0, 1, 2, 300]", "3: all_to_all [3, 301, 302, 303]",
        "3: into [0, 0, 0, 3]", "3: reduce_scatter 4.0", "3: recv 5.0", "0: device (2,)", "3: device (2,)",
    ):
        assert line in said, f"{line} is not in {sorted(said)}"


SPAWN = """
import os, socket, torch, torch.distributed as dist, torch.multiprocessing as mp

def work(rank, world, port):
    torch.cuda.set_device(rank)
    torch.zeros(1, device="cuda")
    dist.init_process_group("nccl", init_method=f"tcp://127.0.0.1:{port}", rank=rank, world_size=world)
    model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(64, 64).cuda(), device_ids=[rank])
    optimizer = torch.optim.Adam(model.parameters())
    for _ in range(4):
        model(torch.zeros(4, 64).cuda()).sum().backward()
        optimizer.step()
        optimizer.zero_grad()
    os.write(1, f"rank {rank} of {world}\\n".encode())
    dist.destroy_process_group()

if __name__ == "__main__":
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        port = s.getsockname()[1]
    mp.spawn(work, (2, port), nprocs=2)
    print("spawn is done")
"""


@pytest.mark.parametrize("start", ["plain", "forked"])
def test_spawned_ranks_are_identified_in_init_process_group(run, tmp_path, start):
    """Their rank is a function argument, so it is not known before init_process_group."""
    (tmp_path / "spawn.py").write_text(SPAWN)
    done = run("python", str(tmp_path / "spawn.py"), options=("--ranks", "unique", "--start", start))
    assert done.code == 0, done.stderr
    assert "rank 0 of 2" in done.stdout and "spawn is done" in done.stdout and "rank 1 of" not in done.stdout
    assert [p.name for p in done.recordings] == ["rank-0.maya"]
    assert not list(done.out.glob("process-*"))
    assert done.prediction["world_size"] == 2


def test_a_launcher_inside_a_shell_script(run, tmp_path):
    """As torchtitan's run_train.sh: the script, not the command, names the launcher; once for each node."""
    (tmp_path / "pipeline.py").write_text(PIPELINE)
    (tmp_path / "start.sh").write_text(
        "set -e\necho looking for torchrun\n"
        f"{sys.executable} -m torch.distributed.run --nproc_per_node=${{NGPU:-8}} --nnodes=2 "
        f"--node_rank=${{NODE_RANK:-0}} "
        f"--role rank --tee 3 {tmp_path}/pipeline.py\necho the script went on\n"
    )
    done = run("bash", str(tmp_path / "start.sh"), cluster="dgx-h100:2", options=("--ranks", "unique", "--nodes", "2"))
    assert done.code == 0, done.stderr
    assert sorted(p.name for p in done.recordings) == [f"rank-{r}.maya" for r in (0, 12, 4, 8)]
    assert done.prediction["world_size"] == 16
    # 2 nodes, 2 starts; the first may be ended before its scripts go on
    assert done.stdout.count("looking for torchrun") == 4
    assert done.stdout.count("the script went on") in (2, 3, 4)


def test_a_launcher_inside_a_script_that_starts_too_few(run, tmp_path):
    (tmp_path / "start.sh").write_text(f"{sys.executable} -m torch.distributed.run --nproc-per-node 4 train.py\n")
    done = run("bash", str(tmp_path / "start.sh"), options=("--ranks", "0,9"))
    assert done.code != 0
    assert "--ranks: there is no rank 9: the command starts 4 (1 × 4)" in done.stderr


def test_waiting_rank_reports_where(run, tmp_path):
    (tmp_path / "wait.py").write_text(
        "import os, torch, torch.distributed as dist\n"
        "torch.zeros(1, device='cuda')\n"
        "dist.init_process_group('cpu:gloo,cuda:nccl')\n"
        "if os.environ['RANK'] == '0':\n"
        "    dist.new_group([0, 1], backend='gloo')\n"
        "else:\n"
        "    import time; end = time.time() + 12\n"
        "    while time.time() < end: pass\n"
        "    os._exit(3)\n")
    done = run(
        "torchrun", "--nproc-per-node", "2", str(tmp_path / "wait.py"), options=("--no-predict",), MAYA_WAIT_REPORT="3"
    )
    assert "maya: rank 0 has waited 3 s in new_group(backend='gloo'): " in done.stderr
    assert "wait.py:5, in <module>" in done.stderr


@pytest.mark.parametrize("message", ["no such layer", "\\n    no such layer"])
def test_a_rank_that_fails_is_named_with_its_error(run, tmp_path, message):
    """The message may begin on a line of its own."""
    (tmp_path / "fail.py").write_text(
        "import os, sys, time\n"
        "if os.environ['RANK'] == '1':\n"
        f"    raise ValueError('{message}')\n"
        "time.sleep(600)\n")
    done = run("torchrun", "--nproc-per-node", "2", str(tmp_path / "fail.py"))
    assert done.code == 1
    assert "maya: rank 1 failed first, with code 1: ValueError: no such layer" in done.stderr


def test_a_rank_that_logs_why_it_fails_is_named_with_that(run, tmp_path):
    (tmp_path / "fail.py").write_text(
        "import logging, sys, warnings\n"
        "logging.error('cannot compile the helpers')\n"
        "warnings.warn('something else')\n"
        "sys.exit(3)\n")
    done = run("torchrun", "--nproc-per-node", "1", str(tmp_path / "fail.py"))
    assert "maya: rank 0 failed first, with code 3: ERROR:root:cannot compile the helpers" in done.stderr


def test_a_gpu_that_the_node_does_not_have(run):
    done = run(
        "python",
        "-c",
        "import torch; torch.cuda.set_device(3)",
        cluster="a100-80gb-sxm",
        RANK="3",
        LOCAL_RANK="3",
        WORLD_SIZE="4",
    )
    assert done.code != 0
    assert "GPU 3 was asked for by rank 3, and this process sees 1 (a node of a100-80gb-sxm has 1)" in done.stderr
    assert "name a cluster with larger nodes" in done.stderr


SPLIT = """
import os, torch, torch.distributed as dist
rank, world = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
device = torch.device("cuda", int(os.environ["LOCAL_RANK"]))
torch.cuda.set_device(device)
dist.init_process_group("nccl", device_id=device)  # groups are split off the communicator of all ranks
def mine(groups):
    made = [(ranks, dist.new_group(ranks)) for ranks in groups]
    return next(group for ranks, group in made if rank in ranks)
inside = mine([list(range(i, i + 4)) for i in range(0, world, 4)])
across = mine([list(range(i, world, 4)) for i in range(4)])
few, many = torch.zeros(1 << 20, device=device), torch.zeros(1 << 21, device=device)
x = torch.nn.Parameter(torch.zeros(1024, 1024, device=device))
optimizer = torch.optim.SGD([x], lr=0.1)
for step in range(4):
    (x @ x).sum().backward()
    dist.all_reduce(few, group=inside)
    for i in range(6): dist.all_reduce(many, group=across)
    optimizer.step(); optimizer.zero_grad()
torch.cuda.synchronize()
dist.destroy_process_group()
"""


def test_members_of_split_groups_are_those_of_the_program(run, tmp_path):
    """The busiest group crosses nodes here, which no guess from sizes and counts would find."""
    script = tmp_path / "split.py"
    script.write_text(SPLIT)
    done = run(
        "torchrun",
        "--nnodes",
        "2",
        "--nproc-per-node",
        "8",
        str(script),
        cluster="dgx-a100:2",
        options=("--ranks", "0"),
    )
    assert done.code == 0, done.stderr
    took = {op["sizes"]: op["ms"] / op["count"] for op in done.prediction["ops"] if op["kind"] == "collective"}
    within, across = (next(ms for sizes, ms in took.items() if f"bytes={mib << 20} " in sizes) for mib in (4, 8))
    assert across > 2.5 * within, took  # twice the bytes, and over the network


WITHOUT_THE_FIRST = """
import os, torch, torch.distributed as dist
rank, world = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
dist.init_process_group("cpu:gloo,cuda:nccl")
pair = [dist.new_group([i, i + 2]) for i in range(2)][rank % 2]
box = [f"from {rank}"]
dist.broadcast_object_list(box, src=0)
flag = torch.tensor([rank], device="cuda")
dist.broadcast(flag, src=0)
dist.all_reduce(torch.zeros(4, device="cuda"), group=pair)
if rank == 3:
    dist.recv(torch.zeros(4, device="cuda"), src=0)  # alone, not in a group of messages
dist.barrier()
model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(64, 64).cuda(), device_ids=[torch.cuda.current_device()])
optimizer = torch.optim.Adam(model.parameters())
for _ in range(4):
    model(torch.zeros(4, 64).cuda()).sum().backward()
    optimizer.step()
    optimizer.zero_grad()
os.write(1, f"rank {rank} of {world} has {box[0]} and {flag.item()}\\n".encode())
dist.destroy_process_group()
"""


@pytest.mark.parametrize("ranks, back_end", [("1", "1"), ("2,3", "0")])
def test_a_list_without_rank_0(run, tmp_path, ranks, back_end):
    """Rank 0 would write the ids of communicators and broadcast objects; what it would send is what the receiver
    has."""
    script = tmp_path / "train.py"
    script.write_text(WITHOUT_THE_FIRST)
    done = run(
        "torchrun", "--nproc-per-node", "4", str(script), options=("--ranks", ranks), TORCH_DIST_USE_NCCL2=back_end
    )
    assert done.code == 0, done.stderr
    assert [p.name for p in done.recordings] == [f"rank-{rank}.maya" for rank in ranks.split(",")]
    for rank in ranks.split(","):
        assert f"rank {rank} of 4 has from {rank} and {rank}" in done.stdout
    assert done.prediction["world_size"] == 4 and done.prediction["step"]["ms"] > 0


def test_the_server_of_a_store_when_rank_0_is_absent(run, tmp_path):
    """Without torchrun, rank 0 is the server that the others connect to."""
    (tmp_path / "train.py").write_text(WITHOUT_THE_FIRST)
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        port = s.getsockname()[1]
    (tmp_path / "start.sh").write_text(
        f"export WORLD_SIZE=4 MASTER_ADDR=127.0.0.1 MASTER_PORT={port}\n"
        f"for i in 0 1 2 3; do RANK=$i LOCAL_RANK=$i {sys.executable} {tmp_path}/train.py & done\nwait\n")
    done = run("sh", str(tmp_path / "start.sh"), options=("--ranks", "1", "--no-predict"))
    assert done.code == 0, done.stderr
    assert "rank 1 of 4 has from 1 and 1" in done.stdout


def test_a_communicator_of_which_one_root_of_several_is_absent(run, tmp_path):
    """Torch has one member of 128 write an id: here ranks 0 and 128, of which one runs."""
    script = tmp_path / "train.py"
    script.write_text(
        "import os, torch, torch.distributed as dist\n"
        "torch.cuda.set_device(int(os.environ['LOCAL_RANK']))\n"
        "dist.init_process_group('nccl')\n"
        "dist.all_reduce(torch.zeros(4, device='cuda'))\n"
        "print('all', os.environ['WORLD_SIZE'], 'reduced')\n")
    done = run("torchrun", "--nnodes", "32", "--nproc-per-node", "8", str(script), cluster="dgx-h100:32",
               options=("--ranks", "0", "--no-predict"))
    assert done.code == 0, done.stderr
    assert "all 256 reduced" in done.stdout


def test_rank_that_waits_before_using_the_device_reports_where(run, tmp_path):
    (tmp_path / "wait.py").write_text(
        "import os, time, torch.distributed as dist\n"
        "if os.environ['RANK'] == '0':\n"
        "    dist.init_process_group('gloo')\n"
        "end = time.time() + 12\n"
        "while time.time() < end: pass\n"
        "os._exit(3)\n")
    done = run(
        "torchrun", "--nproc-per-node", "2", str(tmp_path / "wait.py"), options=("--no-predict",), MAYA_WAIT_REPORT="3"
    )
    assert "maya: rank 0 has waited 3 s in init_process_group(backend='gloo'): " in done.stderr
    assert "wait.py:3, in <module>" in done.stderr
