"""A mixture of experts over the ranks: top-2 routing, all-to-all there and back, grouped GEMM on each rank."""

import torch
import torch.distributed as dist
import torch.nn as nn
import torch.nn.functional as F
from common import Attention, finish, loss_of, start, tokens_for
from torch.distributed.nn.functional import all_to_all_single

job = start()


class Experts(nn.Module):
    def __init__(self, width: int, hidden: int, per_rank: int, top: int = 2):
        super().__init__()
        self.top, self.per_rank, self.experts = top, per_rank, per_rank * job.world
        self.router = nn.Linear(width, self.experts, bias=False)
        self.up = nn.Parameter(torch.randn(per_rank, width, hidden) * 0.02)
        self.down = nn.Parameter(torch.randn(per_rank, hidden, width) * 0.02)

    def forward(self, x):
        flat = x.flatten(0, -2)
        weights, chosen = self.router(flat).softmax(-1).topk(self.top, dim=-1)
        order = chosen.flatten().argsort(stable=True)
        counts = torch.bincount(chosen.flatten(), minlength=self.experts)
        received = torch.empty_like(counts)
        dist.all_to_all_single(received, counts)
        # The split sizes steer the host: they are read back from the device, as every MoE does.
        send = counts.view(job.world, -1).sum(1).tolist()
        receive = received.view(job.world, -1).sum(1).tolist()
        assert sum(send) == flat.shape[0] * self.top, (send, flat.shape)
        routed = flat[order // self.top]
        arrived = all_to_all_single(routed.new_empty(sum(receive), flat.shape[1]), routed, receive, send)
        # By source rank then expert → by expert.
        local = received.view(job.world, self.per_rank)
        expert = torch.arange(self.per_rank, device=x.device).repeat(job.world).repeat_interleave(
            local.flatten(), output_size=sum(receive))
        by_expert = expert.argsort(stable=True)
        offsets = local.sum(0).cumsum(0).to(torch.int32)
        grouped = arrived[by_expert].bfloat16()
        hidden = F.silu(torch._grouped_mm(grouped, self.up.bfloat16(), offs=offsets))
        out = torch._grouped_mm(hidden, self.down.bfloat16(), offs=offsets)
        back = torch.empty_like(out).index_copy(0, by_expert, out)
        home = all_to_all_single(back.new_empty(routed.shape[0], flat.shape[1]), back, send, receive)
        result = torch.zeros_like(flat).index_add(
            0, order // self.top, (home * weights.flatten()[order, None]).to(flat.dtype)
        )
        return result.view_as(x)


class Model(nn.Module):
    def __init__(self, width=256, layers=2, vocabulary=4096):
        super().__init__()
        self.tokens = nn.Embedding(vocabulary, width)
        self.attentions = nn.ModuleList(Attention(width) for _ in range(layers))
        self.experts = nn.ModuleList(Experts(width, 2 * width, 2) for _ in range(layers))
        self.head = nn.Linear(width, vocabulary, bias=False)

    def forward(self, tokens):
        x = self.tokens(tokens)
        for attention, experts in zip(self.attentions, self.experts):
            x = x + attention(x)
            x = x + experts(x)
        return self.head(x)


model = Model().to(job.device, torch.bfloat16)
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, fused=True)
for step in range(4):
    tokens, targets = tokens_for(job, 4, 256, 4096)
    loss_of(model(tokens), targets).backward()
    optimizer.step()
    optimizer.zero_grad()
finish(job)
