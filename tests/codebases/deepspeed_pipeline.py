"""A pipeline of two stages as DeepSpeed's tutorial writes it: PipelineModule and train_batch()."""

import deepspeed
import torch


class Samples(torch.utils.data.Dataset):
    def __len__(self):
        return 4096

    def __getitem__(self, place):
        return torch.randn(1024, dtype=torch.bfloat16), torch.tensor(place % 10)


CONFIG = {"train_micro_batch_size_per_gpu": 8, "gradient_accumulation_steps": 4, "bf16": {"enabled": True},
          "optimizer": {"type": "Adam", "params": {"lr": 1e-3, "torch_adam": True}}}

deepspeed.init_distributed()
layers = [torch.nn.Linear(1024, 1024) for _ in range(8)] + [torch.nn.Linear(1024, 10)]
model = deepspeed.pipe.PipelineModule(layers=layers, loss_fn=torch.nn.CrossEntropyLoss(), num_stages=2)
engine, _, _, _ = deepspeed.initialize(model=model, model_parameters=list(model.parameters()), training_data=Samples(),
                                       config=CONFIG)
for _ in range(1000):
    engine.train_batch()
