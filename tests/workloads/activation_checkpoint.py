"""Activation checkpointing: whole blocks recomputed, and selectively by an operator policy."""

import torch
from common import Transformer, finish, loss_of, start, tokens_for
from torch.utils.checkpoint import CheckpointPolicy, checkpoint, create_selective_checkpoint_contexts

job = start()


class Checkpointed(Transformer):
    def forward(self, tokens):
        x = self.tokens(tokens)
        for i, block in enumerate(self.blocks):
            if i % 2:
                x = checkpoint(block, x, use_reentrant=False)
            else:
                x = checkpoint(block, x, use_reentrant=False, context_fn=keep_matrix_products)
        return self.head(self.norm(x))


def policy(context, op, *args, **kwargs):
    keep = op in (torch.ops.aten.mm.default, torch.ops.aten._scaled_dot_product_flash_attention.default)
    return CheckpointPolicy.MUST_SAVE if keep else CheckpointPolicy.PREFER_RECOMPUTE


def keep_matrix_products():
    return create_selective_checkpoint_contexts(policy)


model = Checkpointed().to(job.device)
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, fused=True)
for step in range(4):
    tokens, targets = tokens_for(job, 4, 512, 8192)
    with torch.autocast("cuda", dtype=torch.bfloat16):
        loss = loss_of(model(tokens), targets)
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
finish(job)
