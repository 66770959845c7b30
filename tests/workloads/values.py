"""What training code reads back from the device or from other ranks must be what was put there."""

import os
import tempfile

import torch
import torch.distributed as dist
import torch.nn as nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, TensorDataset

from common import finish, start

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
    box = [{"seed": 1234} if job.rank == 0 else None]
    dist.broadcast_object_list(box, src=0)
    assert box[0] == {"seed": 1234}, box
    dist.barrier()
    total = torch.tensor([job.rank + 1.0], device=job.device)
    dist.all_reduce(total)
    assert total.item() == job.world * (job.world + 1) / 2, total
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
