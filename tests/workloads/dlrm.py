"""torchrec's DLRM on FBGEMM's table-batched embeddings, sharded by its planner."""

from __future__ import annotations

import torch
from common import finish, start
from torchrec.distributed.model_parallel import DistributedModelParallel
from torchrec.models.dlrm import DLRM, DLRMTrain
from torchrec.modules.embedding_configs import EmbeddingBagConfig
from torchrec.modules.embedding_modules import EmbeddingBagCollection
from torchrec.optim.keyed import KeyedOptimizerWrapper
from torchrec.sparse.jagged_tensor import KeyedJaggedTensor


def main() -> None:
    job = start()
    if job.world == 1:
        import torch.distributed as dist
        dist.init_process_group("nccl", store=dist.HashStore(), rank=0, world_size=1, device_id=job.device)
    tables, batch, pooling = 4, 512, 8
    names = [f"f{i}" for i in range(tables)]
    embeddings = EmbeddingBagCollection(
        device=torch.device("meta"),
        tables=[EmbeddingBagConfig(name=f"t{i}", embedding_dim=64, num_embeddings=100_000, feature_names=[name])
                for i, name in enumerate(names)])
    model = DLRMTrain(DLRM(embeddings, dense_in_features=13, dense_arch_layer_sizes=[512, 256, 64],
                           over_arch_layer_sizes=[512, 256, 1], dense_device=job.device))
    model = DistributedModelParallel(model, device=job.device)
    dense = KeyedOptimizerWrapper(dict(model.named_parameters()), lambda params: torch.optim.Adam(params, lr=1e-3))
    for _ in range(5):
        lengths = torch.randint(1, pooling, (tables * batch,), dtype=torch.int32)
        values = torch.randint(100_000, (int(lengths.sum()),))
        sparse = KeyedJaggedTensor(keys=names, values=values, lengths=lengths).to(job.device)
        features = torch.randn(batch, 13).to(job.device)
        labels = torch.randint(2, (batch,)).to(job.device)
        from torchrec.datasets.utils import Batch
        dense.zero_grad()
        loss, _ = model(Batch(dense_features=features, sparse_features=sparse, labels=labels))
        loss.backward()
        dense.step()
    finish(job)


if __name__ == "__main__":
    main()
