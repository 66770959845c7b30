"""Hugging Face transformers with their Trainer: Llama, BERT or ViT, random weights, synthetic data."""

import argparse
import tempfile

import torch
from torch.utils.data import Dataset
from transformers import (
    BertConfig,
    BertForMaskedLM,
    LlamaConfig,
    LlamaForCausalLM,
    Trainer,
    TrainingArguments,
    ViTConfig,
    ViTForImageClassification,
)

parser = argparse.ArgumentParser()
parser.add_argument("--model", choices=["llama", "bert", "vit"], required=True)
args = parser.parse_args()


class Synthetic(Dataset):
    def __init__(self, kind: str, size: int = 64):
        self.kind, self.size = kind, size

    def __len__(self):
        return self.size

    def __getitem__(self, index):
        generator = torch.Generator().manual_seed(index)
        if self.kind == "vit":
            return {"pixel_values": torch.randn(3, 224, 224, generator=generator), "labels": index % 10}
        tokens = torch.randint(1000, (128,), generator=generator)
        return {"input_ids": tokens, "attention_mask": torch.ones_like(tokens), "labels": tokens.clone()}


if args.model == "llama":
    model = LlamaForCausalLM(LlamaConfig(vocab_size=1000, hidden_size=512, intermediate_size=1376, num_hidden_layers=4,
                                         num_attention_heads=8, num_key_value_heads=4))
elif args.model == "bert":
    model = BertForMaskedLM(BertConfig(vocab_size=1000, hidden_size=512, intermediate_size=2048, num_hidden_layers=4,
                                       num_attention_heads=8))
else:
    model = ViTForImageClassification(ViTConfig(hidden_size=384, intermediate_size=1536, num_hidden_layers=4,
                                                num_attention_heads=6, num_labels=10))
with tempfile.TemporaryDirectory() as folder:
    trainer = Trainer(model=model, train_dataset=Synthetic(args.model), args=TrainingArguments(
        output_dir=folder, per_device_train_batch_size=8, max_steps=5, bf16=True, report_to="none", logging_steps=2,
        save_strategy="no", dataloader_num_workers=1, disable_tqdm=True))
    result = trainer.train()
    assert result.global_step == 5, result
print("done")
