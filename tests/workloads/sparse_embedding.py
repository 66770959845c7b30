"""Recommendation: embedding bags with sparse gradients, SparseAdam beside SGD."""

import torch
import torch.nn as nn
import torch.nn.functional as F
from common import finish, start

job = start()
users = nn.EmbeddingBag(100_000, 64, mode="sum", sparse=True).to(job.device)
items = nn.Embedding(200_000, 64, sparse=True).to(job.device)
tower = nn.Sequential(nn.Linear(128, 256), nn.ReLU(), nn.Linear(256, 1)).to(job.device)
sparse = torch.optim.SparseAdam([*users.parameters(), *items.parameters()], lr=1e-3)
dense = torch.optim.SGD(tower.parameters(), lr=0.1)
for step in range(4):
    history = torch.randint(100_000, (2048, 20)).to(job.device)
    item = torch.randint(200_000, (2048,)).to(job.device)
    clicked = torch.randint(2, (2048, 1)).float().to(job.device)
    logits = tower(torch.cat([users(history), items(item)], dim=1))
    F.binary_cross_entropy_with_logits(logits, clicked).backward()
    sparse.step()
    dense.step()
    sparse.zero_grad()
    dense.zero_grad()
finish(job)
