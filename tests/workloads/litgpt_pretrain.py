"""litgpt's own pretraining: Fabric, FSDP where there is more than one device, torch.compile. The text is made up.

    litgpt_pretrain.py small-llama --devices 2
"""

from __future__ import annotations

import argparse
import os
import pathlib
import sys
import tempfile

# litgpt's hybrid sharding makes groups of as many ranks as there are GPUs to be seen when it is imported, and fails
# where fewer are used.
if "--devices" in sys.argv:
    os.environ["CUDA_VISIBLE_DEVICES"] = ",".join(map(str, range(int(sys.argv[sys.argv.index("--devices") + 1]))))

import torch
from litgpt import Config
from litgpt.args import EvalArgs, TrainArgs
from litgpt.data import DataModule
from litgpt.pretrain import setup
from torch.utils.data import DataLoader


class Text(DataModule):
    length, batch = 512, 4

    def connect(self, tokenizer=None, batch_size: int = 1, max_seq_length: int | None = None) -> None:
        self.batch = batch_size

    def train_dataloader(self) -> DataLoader:
        return DataLoader(torch.randint(4096, (128, self.length + 1)), batch_size=self.batch)

    val_dataloader = train_dataloader


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("model_name")  # litgpt reads the command line again, as its own, when it saves
    parser.add_argument("--devices", type=int, default=1)
    args = parser.parse_args()
    steps, batch = 6, 4
    config = Config(
        name=args.model_name,
        block_size=512,
        vocab_size=4096,
        padded_vocab_size=4096,
        n_layer=4,
        n_head=8,
        n_embd=512,
        n_query_groups=4,
        rotary_percentage=1.0,
        parallel_residual=False,
        bias=False,
        norm_class_name="RMSNorm",
        mlp_class_name="LLaMAMLP",
        intermediate_size=2048,
    )
    setup(
        args.model_name,
        model_config=config,
        out_dir=pathlib.Path(tempfile.mkdtemp()),
        precision="bf16-true",
        data=Text(),
        devices=args.devices,
        logger_name="csv",
        train=TrainArgs(
            save_interval=None,
            log_interval=1,
            global_batch_size=2 * batch * args.devices,
            micro_batch_size=batch,
            max_tokens=steps * 2 * batch * args.devices * 512,
            max_norm=1.0,
            min_lr=4e-5,
            lr_warmup_steps=2,
        ),
        eval=EvalArgs(interval=1000, max_iters=1, initial_validation=False, final_validation=False),
    )
    print("done")
