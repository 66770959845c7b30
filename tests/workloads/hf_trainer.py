"""Hugging Face's Trainer: under torchrun (DDP), accelerate launch (FSDP), or with a DeepSpeed configuration."""

from __future__ import annotations

import argparse
import tempfile

import torch
from transformers import LlamaConfig, LlamaForCausalLM, Trainer, TrainingArguments


class Tokens(torch.utils.data.Dataset):
    def __len__(self):
        return 4096

    def __getitem__(self, index):
        tokens = torch.randint(8192, (256,), generator=torch.Generator().manual_seed(index))
        return {"input_ids": tokens, "labels": tokens}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--deepspeed", type=int, help="the ZeRO stage")
    parser.add_argument("--compile", action="store_true")
    parser.add_argument("--checkpointing", action="store_true")
    parser.add_argument("--optimizer", default="adamw_torch_fused")
    parser.add_argument("--liger", action="store_true")
    args = parser.parse_args()
    extra = {}
    if args.deepspeed is not None:
        extra["deepspeed"] = {"zero_optimization": {"stage": args.deepspeed}, "bf16": {"enabled": True},
                              "train_micro_batch_size_per_gpu": "auto", "gradient_accumulation_steps": "auto",
                              "gradient_clipping": "auto", "zero_allow_untested_optimizer": True}
    with tempfile.TemporaryDirectory() as folder:
        arguments = TrainingArguments(
            folder, per_device_train_batch_size=4, max_steps=6, bf16=True, logging_steps=1, save_strategy="no",
            report_to=[], optim=args.optimizer, torch_compile=args.compile, use_liger_kernel=args.liger,
            gradient_checkpointing=args.checkpointing, **extra)
        model = LlamaForCausalLM(LlamaConfig(hidden_size=512, intermediate_size=1376, num_hidden_layers=4,
                                             num_attention_heads=8, num_key_value_heads=4, vocab_size=8192))
        Trainer(model=model, args=arguments, train_dataset=Tokens()).train()
    print("done", flush=True)


if __name__ == "__main__":
    main()
