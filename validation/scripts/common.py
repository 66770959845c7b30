"""What the validation scripts share: a loop whose steps are NVTX ranges, so that the compared time is the measured one."""

from __future__ import annotations

import os

import torch


def start():
    """(rank, world, device); joins the process group under torchrun."""
    rank, world = int(os.environ.get("RANK", 0)), int(os.environ.get("WORLD_SIZE", 1))
    device = torch.device("cuda", int(os.environ.get("LOCAL_RANK", 0)))
    torch.cuda.set_device(device)
    torch.manual_seed(0)
    if world > 1:
        import torch.distributed as dist

        dist.init_process_group("nccl", device_id=device)
    return rank, world, device


def measure(step, name="step", steps=4, warmup=2, before=None, synchronize=True):
    """Runs `step` warm-up + steps times; each of the latter is a range of this name."""
    for i in range(warmup + steps):
        if before:
            before()
        if synchronize:
            torch.cuda.synchronize()
        if i >= warmup:
            torch.cuda.nvtx.range_push(name)
        step()
        if synchronize:
            torch.cuda.synchronize()
        if i >= warmup:
            torch.cuda.nvtx.range_pop()
    torch.cuda.synchronize()


def finish():
    torch.cuda.synchronize()
    if torch.distributed.is_initialized():
        torch.distributed.destroy_process_group()
