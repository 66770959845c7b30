"""A run that did not end well never shows a step that was none; what is shown is what happened."""

import os
import signal
import subprocess
import sys
import textwrap
import time

from conftest import MAYA, ROOT

MODEL = """
    import torch, torch.nn as nn
    class Block(nn.Module):
        def __init__(self, width):
            super().__init__()
            self.norm, self.up, self.down = nn.LayerNorm(width), nn.Linear(width, 4 * width), nn.Linear(4 * width, width)
        def forward(self, x):
            return x + self.down(nn.functional.gelu(self.up(self.norm(x))))
    def model(layers, width=1024):
        with torch.device("cuda"):
            return nn.Sequential(nn.Embedding(8000, width), *[Block(width) for _ in range(layers)], nn.Linear(width, 8000))
    def loss(model, tokens):
        return nn.functional.cross_entropy(model(tokens).flatten(0, 1), tokens.flatten())
    """


def python(run, code, **keywords):
    return run("python", "-c", textwrap.dedent(MODEL) + textwrap.dedent(code), **keywords)


def test_out_of_memory_in_the_first_forward_pass(run):
    done = python(run, """
        m = model(24)
        loss(m, torch.randint(8000, (256, 2048)).cuda()).backward()
        """, cluster="h100-sxm")
    assert done.code == 1
    p = done.prediction
    assert p["step"] is None and p["throughput"] is None
    assert p["no_step"].startswith("Does not fit: rank 0 asked for ")
    assert p["no_step"].endswith("in the first forward pass")
    assert "Result      Does not fit" in done.stdout
    oom = p["out_of_memory"]
    assert oom["missing_bytes"] > 0
    # 22 GiB of activations a layer; the estimate extrapolates from the weights that were used.
    assert 200 << 30 < oom["estimated_missing_bytes"] < 900 << 30
    parts = {part["what"]: part["bytes"] for part in oom["in_use"]}
    assert any("activations" in what for what in parts)
    assert sum(parts.values()) == oom["in_use_bytes"]


def test_crash_while_loading_weights_is_not_a_step(run):
    done = python(run, """
        kept = []
        for i in range(300):
            kept.append(torch.randn(256, 256).cuda().half().float())
            if i == 250:
                raise RuntimeError("the checkpoint is damaged")
        """, cluster="h100-sxm")
    assert done.code == 1
    assert done.prediction["step"] is None
    assert "before the first forward pass" in done.prediction["no_step"]


def test_steps_before_a_failure_are_measured_and_the_failure_is_reported(run):
    done = python(run, """
        m = model(2)
        optimizer = torch.optim.AdamW(m.parameters(), fused=True)
        for i in range(6):
            loss(m, torch.randint(8000, (4, 128)).cuda()).backward()
            optimizer.step()
            optimizer.zero_grad()
        m(torch.randint(8000, (4, 128)).cuda())
        raise SystemExit(3)
        """, cluster="h100-sxm")
    assert done.code == 3
    p = done.prediction
    assert p["step"] and p["step"]["found_by"] == "optimizer" and p["no_step"] is None
    assert any(n.startswith("Failed: the command ended with code 3 in the forward pass of step 7") for n in p["notes"])
    assert p["throughput"]["unit"] == "tokens" and p["throughput"]["per_step"] == 4 * 128


def test_inference_that_succeeds_has_steps(run):
    done = python(run, """
        m = model(3)
        with torch.no_grad():
            for _ in range(8):
                m(torch.randint(8000, (4, 128)).cuda())
        """, cluster="h100-sxm")
    assert done.code == 0, done.stderr
    assert done.prediction["step"]["found_by"] == "period"


SPAWN = """
    import os, sys, time, torch, torch.distributed as dist, torch.multiprocessing as mp, torch.nn as nn
    def main(rank, mode):
        os.environ.update(RANK=str(rank), WORLD_SIZE="2", LOCAL_RANK=str(rank), MASTER_ADDR="127.0.0.1")
        torch.cuda.set_device(rank)
        dist.init_process_group("nccl", rank=rank, world_size=2)
        m = nn.parallel.DistributedDataParallel(nn.Sequential(*[nn.Linear(256, 256) for _ in range(3)]).cuda())
        optimizer = torch.optim.AdamW(m.parameters(), fused=True)
        for i in range(100000):
            m(torch.randn(64, 256, device="cuda")).sum().backward()
            optimizer.step()
            optimizer.zero_grad()
            if mode == "crash" and rank == 1 and i == 5:
                raise RuntimeError("rank 1 fails")
            if i == 8 and rank == 0:
                open(mode, "w").close()
            time.sleep(0.01)
    if __name__ == "__main__":
        mp.spawn(main, args=(sys.argv[1],), nprocs=2)
    """


def spawned(tmp_path, mode):
    script = tmp_path / "spawned.py"
    script.write_text(textwrap.dedent(SPAWN))
    return [MAYA, "run", "--out", str(tmp_path / "r"), "--", sys.executable, str(script), mode]


def check_common_steps(tmp_path, output):
    import json

    p = json.loads((tmp_path / "r" / "prediction.json").read_text())
    assert p["world_size"] == 2, output
    assert p["step"] and p["step"]["found_by"] == "optimizer", output
    assert any("every rank had completed" in note for note in p["notes"]), p["notes"]


def test_a_rank_that_fails_leaves_the_steps_all_ranks_completed(tmp_path):
    port = {"MASTER_PORT": "29713"}
    done = subprocess.run(spawned(tmp_path, "crash"), capture_output=True, text=True, timeout=300, cwd=tmp_path,
                          env={**os.environ, **port})
    assert done.returncode == 1
    check_common_steps(tmp_path, done.stdout + done.stderr)


def test_ctrl_c_leaves_the_steps_all_ranks_completed(tmp_path):
    flag = tmp_path / "trained"
    job = subprocess.Popen(
        spawned(tmp_path, str(flag)),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        cwd=ROOT,
        env={**os.environ, "MASTER_PORT": "29714"},
        start_new_session=True,
    )
    deadline = time.time() + 240
    while time.time() < deadline and not flag.exists() and job.poll() is None:
        time.sleep(0.2)
    os.killpg(job.pid, signal.SIGINT)
    output, _ = job.communicate(timeout=120)
    assert job.returncode != 0
    check_common_steps(tmp_path, output)
