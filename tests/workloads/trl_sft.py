"""trl's SFTTrainer, with or without peft's LoRA adapters, on a tokenized synthetic data set."""

from __future__ import annotations

import argparse
import tempfile

import torch
from datasets import Dataset
from peft import LoraConfig
from tokenizers import Tokenizer, models
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast
from trl import SFTConfig, SFTTrainer


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--lora", action="store_true")
    parser.add_argument("--packing", action="store_true")
    args = parser.parse_args()
    vocabulary = {f"w{i}": i for i in range(8192)}
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=Tokenizer(models.WordLevel(vocabulary, unk_token="w0")),
                                        pad_token="w1", eos_token="w2", unk_token="w0")
    generator = torch.Generator().manual_seed(0)
    rows = [{"input_ids": torch.randint(3, 8192, (int(n),), generator=generator).tolist()}
            for n in torch.randint(100, 256, (256,), generator=generator)]
    model = LlamaForCausalLM(LlamaConfig(hidden_size=512, intermediate_size=1376, num_hidden_layers=4,
                                         num_attention_heads=8, num_key_value_heads=4, vocab_size=8192))
    with tempfile.TemporaryDirectory() as folder:
        SFTTrainer(
            model=model, processing_class=tokenizer, train_dataset=Dataset.from_list(rows),
            peft_config=LoraConfig(r=16, target_modules="all-linear", task_type="CAUSAL_LM") if args.lora else None,
            args=SFTConfig(folder, per_device_train_batch_size=4, max_steps=6, bf16=True, logging_steps=1,
                           save_strategy="no", report_to=[], max_length=256, packing=args.packing)).train()
    print("done", flush=True)


if __name__ == "__main__":
    main()
