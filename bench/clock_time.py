"""What virtual time costs: run by bench/run under `maya run`, once with each clock. Prints processor nanoseconds of one
clock read, and of the host per step of the GPT in examples/. The kernel tells the processor time: the clocks that a
program can read are scaled to the target host."""

import os
import pathlib
import sys
import time

import torch

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "examples"))
from train_gpt import GPT  # noqa: E402


def cpu() -> int:
    """Of all threads of the process."""
    total = 0
    for task in os.listdir("/proc/self/task"):
        with open(f"/proc/self/task/{task}/schedstat") as file:
            total += int(file.read().split()[0])
    return total


reads = 200_000
for _ in range(2):  # the first round warms up
    began = cpu()
    for _ in range(reads):
        time.perf_counter_ns()
    clock = (cpu() - began) / reads
    began = cpu()
    for _ in range(reads):
        time.get_clock_info  # the loop without the read
    empty = (cpu() - began) / reads
print(f"read {clock - empty:.1f}")

model = GPT(50304, 1024, 12, 12, 768).cuda()
optimizer = torch.optim.AdamW(model.parameters(), fused=True)
tokens = torch.zeros(16, 1024, device="cuda", dtype=torch.long)
steps = []
for _ in range(25):
    began = cpu()
    with torch.autocast("cuda", dtype=torch.bfloat16):
        loss = model(tokens, tokens)
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    torch.cuda.synchronize()
    steps.append(cpu() - began)
print(f"step {sorted(steps[5:])[len(steps[5:]) // 4]}")
