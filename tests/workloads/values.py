"""What training code reads back from the device or from other ranks must be what was put there."""

import os
import tempfile

import torch
import torch.distributed as dist
import torch.nn as nn
from common import finish, start
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, TensorDataset

job = start()

# Copies there and back, fills, casts of known integers.
data = torch.arange(1000, dtype=torch.int64)
assert torch.equal(data.to(job.device).cpu(), data)
assert torch.full((17,), 3.5, device=job.device).tolist() == [3.5] * 17
assert torch.zeros(5, device=job.device).sum().item() == 0
assert torch.tensor([job.rank, 7], device=job.device).tolist() == [job.rank, 7]
assert torch.ones(3, dtype=torch.int32, device=job.device).sum().item() == 3
assert (torch.arange(6, device=job.device) + 2).cpu().tolist() == [2, 3, 4, 5, 6, 7]
assert torch.tensor([3, 1, 2], device=job.device).cumsum(0).tolist() == [3, 4, 6]
assert torch.tensor([5, 1], device=job.device).max().item() == 5

def known(*numbers):
    return torch.tensor(numbers, device=job.device)


# Picking, placing, joining and listing known integers.
x = known(3, 9, 4, 1)
assert x[known(1, 0)].tolist() == [9, 3]
assert x.index_select(0, known(2, 2)).tolist() == [4, 4]
assert x.gather(0, known(2)).tolist() == [4]
assert x.flip(0).tolist() == [1, 4, 9, 3]
assert torch.cat([x, x]).tolist() == [3, 9, 4, 1, 3, 9, 4, 1]
assert torch.stack([x, x]).sum(1).tolist() == [17, 17]
assert (x > 3).nonzero().flatten().tolist() == [1, 2]
assert torch.stack([x, x]).nonzero().tolist()[4] == [1, 0]
assert x[x > 3].tolist() == [9, 4]
assert torch.zeros(4, dtype=torch.long, device=job.device).scatter_(0, known(2), 5).tolist() == [0, 0, 5, 0]
assert torch.zeros(3, dtype=torch.long, device=job.device).index_add_(0, known(1, 1, 2), known(1, 2, 3)).tolist() == [
    0,
    3,
    3,
]
assert known(3, 1, 3).unique().tolist() == [1, 3]
assert nn.functional.one_hot(x, 10).sum(0).tolist() == [0, 1, 0, 1, 1, 0, 0, 0, 0, 1]
assert torch.arange(3, device=job.device).repeat_interleave(known(1, 2, 1)).tolist() == [0, 1, 1, 2]
assert torch.histc(x.float(), bins=10, min=0, max=9).tolist() == [0, 1, 0, 1, 1, 0, 0, 0, 0, 1]

# Experts chosen from scores nobody computed are balanced, and every count follows.
tokens, experts, chosen = 64, 8, 2
_, choice = torch.randn(tokens, experts, device=job.device).softmax(-1).topk(chosen, dim=-1)
assert torch.bincount(choice.flatten(), minlength=experts).tolist() == [tokens * chosen // experts] * experts
assert choice.flatten().argsort().unique().numel() == tokens * chosen
mask = nn.functional.one_hot(choice, experts).permute(2, 1, 0)
assert [torch.where(mask[e])[0].numel() for e in range(experts)] == [tokens * chosen // experts] * experts

# What a kernel overwrites is never read as it was.
for count in (3, 300, 5000):
    old = torch.full((count,), 5, device=job.device)
    del old
    assert torch.randn(2 * count, device=job.device).tolist() == [0.0] * (2 * count)

# The loss scale stays, and its tracker counts steps.
model = nn.Linear(8, 8).to(job.device)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
scaler = torch.amp.GradScaler("cuda")
scaler.scale(model(torch.randn(4, 8, device=job.device)).sum()).backward()
scaler.step(optimizer)
scaler.update()
assert scaler.get_scale() == 65536.0, scaler.get_scale()

# Pinned memory through a DataLoader with workers.
loader = DataLoader(TensorDataset(torch.arange(64)), batch_size=16, num_workers=1, pin_memory=True)
seen = torch.cat([batch.to(job.device, non_blocking=True).cpu() for (batch,) in loader])
assert torch.equal(seen, torch.arange(64)), seen

# A checkpoint of what was never changed on the device comes back as it was.
small = nn.Linear(4, 4)
weights = {name: value.clone() for name, value in small.state_dict().items()}
small.to(job.device)
with tempfile.TemporaryDirectory() as folder:
    path = os.path.join(folder, "checkpoint.pt")
    torch.save({"model": small.state_dict(), "step": 12}, path)
    loaded = torch.load(path, map_location=job.device)
assert loaded["step"] == 12
small.load_state_dict(loaded["model"])
for name, value in small.state_dict().items():
    assert torch.equal(value.cpu(), weights[name]), name

if job.world > 1:
    gathered = [None] * job.world
    dist.all_gather_object(gathered, {"rank": job.rank, "text": "x" * (10 + job.rank)})
    assert [g["rank"] for g in gathered] == list(range(job.world)), gathered
    assert [len(g["text"]) for g in gathered] == [10 + r for r in range(job.world)], gathered
    big = b"0123456789" * 300_000  # larger than anything the device keeps of numbers
    dist.all_gather_object(gathered, {"rank": job.rank, "bytes": big[job.rank:]})
    assert [g["bytes"] for g in gathered] == [big[r:] for r in range(job.world)]
    box = [{"seed": 1234} if job.rank == 0 else None]
    dist.broadcast_object_list(box, src=0)
    assert box[0] == {"seed": 1234}, box
    dist.barrier()
    total = torch.tensor([job.rank + 1.0], device=job.device)
    dist.all_reduce(total)
    assert total.item() == job.world * (job.world + 1) / 2, total
    ones = torch.full((2,), 0.5, device=job.device) + torch.ones(2, device=job.device)
    dist.all_reduce(ones)
    assert ones[1].item() == 1.5 * job.world, ones
    halves = [torch.empty(3, device=job.device) for _ in range(job.world)]
    dist.all_gather(halves, torch.full((3,), job.rank / 2, device=job.device))
    assert [h[2].item() for h in halves] == [r / 2 for r in range(job.world)], halves
    largest = torch.tensor([job.rank], device=job.device)
    dist.all_reduce(largest, op=dist.ReduceOp.MAX)
    assert largest.item() == job.world - 1, largest
    parts = [torch.zeros(2, dtype=torch.int64, device=job.device) for _ in range(job.world)]
    dist.all_gather(parts, torch.tensor([job.rank, 10 * job.rank], device=job.device))
    assert [p.tolist() for p in parts] == [[r, 10 * r] for r in range(job.world)], parts
    pair = dist.new_group([0, 1])
    if job.rank < 2:
        token = torch.tensor([42 + job.rank], device=job.device)
        if job.rank == 0:
            dist.send(token, 1, group=pair)
        else:
            dist.recv(token, 0, group=pair)
            assert token.item() == 42, token

    # DDP accepts equal models and refuses ranks whose models differ.
    DistributedDataParallel(nn.Linear(8, 8).to(job.device), device_ids=[job.device.index])
    try:
        DistributedDataParallel(nn.Linear(8, 8, bias=job.rank > 0).to(job.device), device_ids=[job.device.index])
    except RuntimeError as error:
        assert "params" in str(error), error
    else:
        raise AssertionError("DDP did not notice that the ranks' models differ")
finish(job)
