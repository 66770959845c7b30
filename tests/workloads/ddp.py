"""DDP with gradient accumulation (no_sync), bucket views and bf16 gradient compression."""

import torch
from common import Transformer, finish, loss_of, start, tokens_for
from torch.distributed.algorithms.ddp_comm_hooks.default_hooks import bf16_compress_hook
from torch.nn.parallel import DistributedDataParallel

job = start()
model = DistributedDataParallel(
    Transformer().to(job.device), device_ids=[job.device.index], gradient_as_bucket_view=True
)
model.register_comm_hook(None, bf16_compress_hook)
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, fused=True)
for step in range(4):
    for micro in range(2):
        tokens, targets = tokens_for(job, 4, 256, 8192)
        with torch.autocast("cuda", dtype=torch.bfloat16):
            if micro == 0:
                with model.no_sync():
                    loss_of(model(tokens), targets).backward()
            else:
                loss_of(model(tokens), targets).backward()
    optimizer.step()
    optimizer.zero_grad()
finish(job)
