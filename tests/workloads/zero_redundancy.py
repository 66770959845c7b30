"""DDP with optimizer states spread over the ranks (ZeroRedundancyOptimizer)."""

import torch
from common import Transformer, finish, start, train
from torch.distributed.optim import ZeroRedundancyOptimizer
from torch.nn.parallel import DistributedDataParallel

job = start()
model = DistributedDataParallel(Transformer().to(job.device), device_ids=[job.device.index])
optimizer = ZeroRedundancyOptimizer(model.parameters(), optimizer_class=torch.optim.AdamW, lr=1e-4)
train(job, model, optimizer)
finish(job)
