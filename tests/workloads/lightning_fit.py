"""Lightning: a module, a Trainer on GPUs, bf16-mixed, DDP where there is more than one device."""

import argparse

import lightning
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, TensorDataset

parser = argparse.ArgumentParser()
parser.add_argument("--devices", type=int, default=1)
args = parser.parse_args()


class Classifier(lightning.LightningModule):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(nn.Flatten(), nn.Linear(784, 1024), nn.GELU(), nn.Linear(1024, 1024), nn.GELU(),
                                    nn.Linear(1024, 10))

    def training_step(self, batch, index):
        images, labels = batch
        loss = F.cross_entropy(self.layers(images), labels)
        self.log("loss", loss)
        return loss

    def configure_optimizers(self):
        return torch.optim.AdamW(self.parameters(), lr=1e-3)


if __name__ == "__main__":
    data = DataLoader(TensorDataset(torch.randn(1024, 28, 28), torch.randint(10, (1024,))), batch_size=64)
    trainer = lightning.Trainer(accelerator="gpu", devices=args.devices, strategy="ddp" if args.devices > 1 else "auto",
                                precision="bf16-mixed", max_steps=6, logger=False, enable_checkpointing=False,
                                enable_progress_bar=False, enable_model_summary=False)
    trainer.fit(Classifier(), data)
    assert trainer.global_step == 6, trainer.global_step
    print("done")
