"""Symmetric memory: products fused with their collectives (async tensor parallelism), and reductions in one kernel."""

import torch
import torch.distributed as dist
import torch.distributed._symmetric_memory as symmetric
from common import finish, start

job = start()
group = dist.group.WORLD.group_name
if not symmetric.is_symm_mem_enabled_for_group(group):  # before torch 2.12
    symmetric.enable_symm_mem_for_group(group)
rows, width = 4096 // job.world, 8192 // job.world
x = torch.zeros(rows, 4096, device=job.device, dtype=torch.bfloat16)
up = torch.zeros(4096, width, device=job.device, dtype=torch.bfloat16)
down = torch.zeros(width, 4096, device=job.device, dtype=torch.bfloat16)
shared = symmetric.empty(1 << 20, device=job.device, dtype=torch.bfloat16)
symmetric.rendezvous(shared, group)
for _ in range(5):
    _, (hidden,) = torch.ops.symm_mem.fused_all_gather_matmul(x, [up], 0, group)
    torch.ops.symm_mem.fused_matmul_reduce_scatter(hidden, down, "sum", 0, group)
    torch.ops.symm_mem.one_shot_all_reduce(shared, "sum", group)
    torch.ops.symm_mem.two_shot_all_reduce_(shared, "sum", group)
    torch.cuda.synchronize()
finish(job)
