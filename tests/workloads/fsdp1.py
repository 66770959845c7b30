"""FullyShardedDataParallel (the first one): full shard, mixed precision, wrapped by block, clipped."""

import functools

import torch
from common import Block, Transformer, finish, loss_of, start, tokens_for
from torch.distributed.fsdp import FullyShardedDataParallel, MixedPrecision, ShardingStrategy
from torch.distributed.fsdp.wrap import transformer_auto_wrap_policy

job = start()
bf16 = MixedPrecision(param_dtype=torch.bfloat16, reduce_dtype=torch.bfloat16, buffer_dtype=torch.bfloat16)
model = FullyShardedDataParallel(
    Transformer(),
    device_id=job.device,
    mixed_precision=bf16,
    sharding_strategy=ShardingStrategy.FULL_SHARD,
    auto_wrap_policy=functools.partial(transformer_auto_wrap_policy, transformer_layer_cls={Block}),
    use_orig_params=True,
)
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, fused=True)
for step in range(4):
    tokens, targets = tokens_for(job, 4, 512, 8192)
    loss_of(model(tokens), targets).backward()
    model.clip_grad_norm_(1.0)
    optimizer.step()
    optimizer.zero_grad()
finish(job)
