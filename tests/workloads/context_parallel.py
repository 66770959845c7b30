"""Context parallelism: the sequence is split over the ranks, attention goes round them in a ring."""

import torch
from common import Transformer, finish, loss_of, start
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor.experimental import context_parallel
from torch.nn.attention import SDPBackend, sdpa_kernel

job = start()
mesh = init_device_mesh("cuda", (job.world,), mesh_dim_names=("cp",))
torch.manual_seed(0)
model = Transformer().to(job.device, torch.bfloat16)
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, fused=True)
for step in range(4):
    torch.manual_seed(step)
    data = torch.randint(8192, (2, 2049)).to(job.device)
    tokens, targets = data[:, :-1].contiguous(), data[:, 1:].contiguous()
    with sdpa_kernel([SDPBackend.FLASH_ATTENTION, SDPBackend.EFFICIENT_ATTENTION]):
        with context_parallel(mesh, buffers=(tokens, targets), buffer_seq_dims=(1, 1)):
            loss_of(model(tokens), targets).backward()
    optimizer.step()
    optimizer.zero_grad()
finish(job)
