"""`maya run --stop-after N` ends a job that would run for ever, under whatever starts it, and leaves nothing behind."""

import importlib.util
import os
import pathlib
import sys
import time

import pytest

# Refuses to end: catches every exception, ignores signals, and would save a checkpoint on its way out.
TRAIN = """
import atexit, os, signal, sys, time, torch
import torch.distributed as dist

def train(rank, world, port):
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: None)
    def checkpoint():
        open(f"checkpoint-{rank}", "w").close()
    atexit.register(checkpoint)
    torch.cuda.set_device(rank)
    if world > 1:
        dist.init_process_group("nccl", init_method=f"tcp://127.0.0.1:{port}" if port else "env://", rank=rank, world_size=world)
    model = torch.nn.Sequential(*(torch.nn.Linear(64, 64) for _ in range(3))).cuda()
    if world > 1:
        model = torch.nn.parallel.DistributedDataParallel(model, device_ids=[rank])
    optimizer = torch.optim.AdamW(model.parameters())
    data = torch.utils.data.DataLoader(torch.zeros(1 << 20, 64), batch_size=4, num_workers=int(os.environ.get("WORKERS", 0)))
    print("begins", rank)  # into a buffer that only an orderly end empties
    try:
        for step in range(10**9):
            for x in data:
                model(x.cuda()).sum().backward()
                optimizer.step()
                optimizer.zero_grad()
    except BaseException:
        checkpoint()
    finally:
        checkpoint()

if __name__ == "__main__":
    if "spawn" in sys.argv:
        import socket
        with socket.socket() as s:
            s.bind(("127.0.0.1", 0))
            port = s.getsockname()[1]
        torch.multiprocessing.spawn(train, (2, port), nprocs=2)
    else:
        train(int(os.environ.get("LOCAL_RANK", 0)), int(os.environ.get("WORLD_SIZE", 1)), None)
"""


@pytest.fixture
def script(tmp_path, monkeypatch):
    path = tmp_path / "train.py"
    path.write_text(TRAIN)
    return path


def alive_below(directory: pathlib.Path) -> list[str]:
    """Command lines of processes that work in the directory."""
    found = []
    for process in pathlib.Path("/proc").iterdir():
        try:
            if process.name.isdigit() and os.readlink(process / "cwd").startswith(str(directory)):
                found.append((process / "cmdline").read_text().replace("\0", " "))
        except OSError:
            continue
    return found


def stopped(run, directory, *command, ranks=1, options=(), **environment):
    """Runs the command in the directory, checks that it was stopped cleanly, and returns the result."""
    shell = " ".join(command)
    done = run("bash", "-c", f"cd {directory} && {shell}", options=("--stop-after", "3", *options), **environment)
    assert done.code == 0, done.stderr
    assert "3 steady steps of every rank are recorded: the command was stopped" in done.stderr
    assert "Traceback" not in done.stderr, done.stderr
    assert "stopped = true" in (done.out / "run.toml").read_text()
    assert not list(done.out.glob("*.tail"))
    prediction = done.prediction
    assert prediction["world_size"] == ranks
    assert prediction["step"]["count"] >= 3 and prediction["step"]["found_by"] == "optimizer"
    assert not list(directory.glob("checkpoint*")), "it was allowed to save a checkpoint"
    for _ in range(20):
        left = alive_below(directory)
        if not left:
            return done
        time.sleep(0.1)
    raise AssertionError(left)


def test_a_plain_script_with_data_loader_workers(run, script, tmp_path):
    done = stopped(run, tmp_path, "exec", sys.executable, "train.py", WORKERS="2")
    assert "begins 0" in done.stdout


def test_torchrun_in_a_shell_script_with_further_commands(run, script, tmp_path):
    """A later program that uses the device ends at once with success."""
    later = f"{sys.executable} -c 'import torch; torch.zeros(1).cuda(); print(chr(42) * 9)'"
    done = stopped(
        run,
        tmp_path,
        sys.executable,
        "-m",
        "torch.distributed.run",
        "--nproc-per-node",
        "2",
        "train.py",
        "&&",
        later,
        "&& echo the script went on",
        ranks=2,
    )
    assert "the script went on" in done.stdout and "*********" not in done.stdout


def test_spawned_processes(run, script, tmp_path):
    stopped(run, tmp_path, sys.executable, "train.py", "spawn", ranks=2)


def test_accelerate(run, script, tmp_path):
    accelerate = pathlib.Path(sys.executable).with_name("accelerate")
    if not accelerate.exists():
        pytest.skip("accelerate is not installed")
    stopped(
        run,
        tmp_path,
        str(accelerate),
        "launch",
        "--multi_gpu",
        "--num_processes",
        "2",
        "--num_machines",
        "1",
        "--mixed_precision",
        "no",
        "--dynamo_backend",
        "no",
        "--main_process_port",
        "29517",
        "train.py",
        ranks=2,
    )


LIGHTNING = """
import lightning, torch

class Model(lightning.LightningModule):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(64, 64)
    def training_step(self, batch, _):
        return self.layer(batch).sum()
    def configure_optimizers(self):
        return torch.optim.AdamW(self.parameters())
    def on_exception(self, *_):
        open("checkpoint-exception", "w").close()

data = torch.utils.data.DataLoader(torch.zeros(1 << 20, 64), batch_size=4)
lightning.Trainer(accelerator="gpu", devices=2, strategy="ddp", max_epochs=1000, logger=False, enable_checkpointing=False,
                  enable_progress_bar=False).fit(Model(), data)
"""


def test_lightning_starts_its_own_ranks(run, tmp_path):
    if importlib.util.find_spec("lightning") is None:
        pytest.skip("lightning is not installed")
    (tmp_path / "light.py").write_text(LIGHTNING)
    stopped(run, tmp_path, sys.executable, "light.py", ranks=2)


def test_a_process_that_waits_on_the_host_is_ended(run, tmp_path):
    """Rank 1 makes no more launches: it waits on the host for ever."""
    (tmp_path / "train.py").write_text(
        TRAIN.replace(
            "for x in data:",
            "for n, x in enumerate(data):\n                if rank == 1 and n == 12: "
            "__import__('threading').Event().wait()",
        )
    )
    stopped(run, tmp_path, sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", "2", "train.py", ranks=2)


def test_a_run_that_ends_before(run):
    done = run(
        "python",
        "examples/train_gpt.py",
        "--layers",
        "1",
        "--steps",
        "3",
        cluster="a100-80gb-sxm",
        options=("--stop-after", "1000"),
    )
    assert done.code == 0, done.stderr
    assert "the command ended by itself before 1000 steady steps were detected" in done.stderr
    assert done.prediction["step"]["count"] >= 1
    assert "stopped = false" in (done.out / "run.toml").read_text()


def test_invalid_numbers(maya):
    for wrong in ("0", "-3", "soon", "3x"):
        done = maya("run", "--stop-after", wrong, "--", "true")
        assert done.returncode == 2, wrong
        assert f"--stop-after {wrong}: expected a number of steps, or auto" in done.stderr


def test_an_evaluation_before_the_first_step_is_not_the_step(run, tmp_path):
    """The evaluation takes longer than the 30 s after which repetition alone counts, and its batches are identical."""
    (tmp_path / "evaluate_first.py").write_text(
        "import time, torch\n"
        "model = torch.nn.Linear(64, 64).cuda()\n"
        "optimizer = torch.optim.SGD(model.parameters(), lr=0.1)\n"
        "begin = time.time()\n"
        "with torch.no_grad():\n"
        "    while time.time() - begin < 36:\n"
        "        model(torch.zeros(8, 64).cuda()); time.sleep(0.05)\n"
        "while True:\n"
        "    model(torch.zeros(8, 64).cuda()).sum().backward(); optimizer.step(); optimizer.zero_grad(); "
        "time.sleep(0.05)\n"
    )
    done = run("python", str(tmp_path / "evaluate_first.py"), options=("--stop-after", "3"))
    assert done.code == 0, done.stderr
    assert done.prediction["step"]["found_by"] == "optimizer"


def test_updates_of_an_optimizer_without_kernels_of_its_own(run, tmp_path):
    """It computes products, tensor by tensor. Four micro-batches are a step."""
    (tmp_path / "muon.py").write_text(
        "import torch\n"
        "class Muon(torch.optim.Optimizer):\n"
        "    @torch.no_grad()\n"
        "    def step(self):\n"
        "        for p in self.param_groups[0]['params']:\n"
        "            x = p.grad.bfloat16()\n"
        "            for _ in range(2):\n"
        "                x = (x @ x.T) @ x\n"
        "            p.add_(x, alpha=-0.1)\n"
        "model = torch.nn.Sequential(*(torch.nn.Linear(64, 64, bias=False) for _ in range(3))).cuda()\n"
        "optimizer = Muon(model.parameters(), {})\n"
        "while True:\n"
        "    for _ in range(4):\n"
        "        model(torch.zeros(8, 64).cuda()).sum().backward()\n"
        "    optimizer.step(); optimizer.zero_grad()\n"
    )
    done = run("python", str(tmp_path / "muon.py"), options=("--stop-after", "3"), timeout=200)
    assert done.code == 0, done.stderr
    assert done.prediction["step"]["found_by"] == "optimizer"
    passes, updates = 4 * 8 * 2 * 8 * 64 * 64, 3 * 4 * 2 * 64**3  # three products forward, five backward
    assert done.prediction["flops_per_step"] == pytest.approx(passes + updates, rel=0.01)


def test_updates_inside_a_graph(run, tmp_path):
    """PyTorch's example of a captured step: what the optimizer says before tells nothing about the steps."""
    (tmp_path / "graph.py").write_text(
        "import torch\n"
        "model = torch.nn.Sequential(*(torch.nn.Linear(256, 256) for _ in range(3))).cuda()\n"
        "optimizer = torch.optim.SGD(model.parameters(), lr=0.1)\n"
        "x = torch.zeros(64, 256, device='cuda')\n"
        "def step():\n"
        "    optimizer.zero_grad(set_to_none=True)\n"
        "    model(x).sum().backward()\n"
        "    optimizer.step()\n"
        "side = torch.cuda.Stream()\n"
        "side.wait_stream(torch.cuda.current_stream())\n"
        "with torch.cuda.stream(side):\n"
        "    for _ in range(3): step()\n"
        "torch.cuda.current_stream().wait_stream(side)\n"
        "graph = torch.cuda.CUDAGraph()\n"
        "with torch.cuda.graph(graph): step()\n"
        "for _ in range(40): graph.replay()\n"
        "torch.cuda.synchronize()\n"
    )
    done = run("python", str(tmp_path / "graph.py"))
    assert done.code == 0, done.stderr
    assert done.prediction["step"]["count"] >= 30
