"""LLM Foundry's MPT under Composer's Trainer, FSDP where there is more than one rank. The text is made up.

    torchrun --nproc-per-node 2 llm_foundry_mpt.py
"""

from __future__ import annotations

import os

import torch
from composer import Trainer
from composer.optim import DecoupledAdamW
from llmfoundry.models.mpt import ComposerMPTCausalLM
from torch.utils.data import DataLoader

VOCABULARY, LENGTH = 4096, 512


def collate(rows: list[torch.Tensor]) -> dict[str, torch.Tensor]:
    tokens = torch.stack(rows)
    return {"input_ids": tokens, "labels": tokens, "attention_mask": torch.ones_like(tokens, dtype=torch.bool)}


def main() -> None:
    model = ComposerMPTCausalLM(
        loss_fn="torch_crossentropy",
        use_train_metrics=False,
        d_model=512,
        n_heads=8,
        n_layers=4,
        expansion_ratio=4,
        max_seq_len=LENGTH,
        vocab_size=VOCABULARY,
        attn_config={"attn_impl": "torch"},
    )
    several = int(os.environ.get("WORLD_SIZE", 1)) > 1
    data = DataLoader(list(torch.randint(VOCABULARY, (64, LENGTH))), batch_size=4, collate_fn=collate)
    trainer = Trainer(
        model=model,
        train_dataloader=data,
        optimizers=DecoupledAdamW(model.parameters(), lr=1e-4),
        max_duration="6ba",
        device="gpu",
        precision="amp_bf16",
        device_train_microbatch_size=2,
        parallelism_config={"fsdp": {"sharding_strategy": "FULL_SHARD"}} if several else None,
        progress_bar=False,
    )
    trainer.fit()
    print("done", flush=True)


if __name__ == "__main__":
    main()
