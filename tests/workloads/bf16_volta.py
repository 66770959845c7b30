"""bf16 on a GPU without bf16 tensor cores: PyTorch emulates it. Needs a torch with code for Volta."""

import torch
import torch.nn as nn
from common import finish, start

job = start()
assert torch.cuda.get_device_capability() == (7, 0)
assert torch.cuda.is_bf16_supported() and not torch.cuda.is_bf16_supported(including_emulation=False)
model = nn.Sequential(nn.Linear(1024, 4096), nn.GELU(), nn.Linear(4096, 1024)).to(job.device)
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, fused=True)
for _ in range(5):
    x = torch.randn(512, 1024).to(job.device)
    with torch.autocast("cuda", dtype=torch.bfloat16):
        loss = model(x).float().square().mean()
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
finish(job)
