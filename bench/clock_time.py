"""What virtual time costs: run by bench/run under `maya run`, once with each clock. Prints processor nanoseconds of one
clock read, and of the host per step of a small model."""

import time

import torch


def cpu() -> int:
    return time.thread_time_ns()


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

model = torch.nn.Sequential(*(torch.nn.Linear(1024, 1024) for _ in range(32))).cuda()
optimizer = torch.optim.AdamW(model.parameters(), fused=True)
x = torch.randn(64, 1024, device="cuda")
steps = []
for _ in range(30):
    began = cpu()
    model(x).sum().backward()
    optimizer.step()
    optimizer.zero_grad()
    torch.cuda.synchronize()
    steps.append(cpu() - began)
print(f"step {sorted(steps[5:])[len(steps[5:]) // 4]}")
