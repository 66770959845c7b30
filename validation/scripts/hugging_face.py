"""Training steps of Hugging Face models from their configuration, random weights, on one GPU.

    hugging_face.py bert-large --batch 8 --length 512 --no-optimizer --fresh-memory
    hugging_face.py llama-3.2-1b --batch 1 --length 512 --bf16 --checkpoint
"""

from __future__ import annotations

import argparse
import gc

import torch
from common import finish, measure, start


def configuration(name):
    from transformers import BertConfig, GPT2Config, LlamaConfig, OPTConfig

    if name == "bert-large":
        return BertConfig(vocab_size=30522, hidden_size=1024, num_hidden_layers=24, num_attention_heads=16,
                          intermediate_size=4096)
    if name == "gpt2-large":
        return GPT2Config(n_embd=1280, n_layer=36, n_head=20)
    if name == "gpt2-xl":
        return GPT2Config(n_embd=1600, n_layer=48, n_head=25)
    if name == "gpt3-xl":  # GPT-2's architecture at 1.3 B
        return GPT2Config(n_embd=2048, n_layer=24, n_head=32, n_positions=2048)
    if name == "opt-1.3b":
        return OPTConfig(hidden_size=2048, num_hidden_layers=24, num_attention_heads=32, ffn_dim=8192)
    if name == "llama-3.2-1b":
        return LlamaConfig(vocab_size=128256, hidden_size=2048, intermediate_size=8192, num_hidden_layers=16,
                           num_attention_heads=32, num_key_value_heads=8, head_dim=64, tie_word_embeddings=True,
                           max_position_embeddings=131072)
    if name == "llama-3.1-8b":
        return LlamaConfig(vocab_size=128256, hidden_size=4096, intermediate_size=14336, num_hidden_layers=32,
                           num_attention_heads=32, num_key_value_heads=8, tie_word_embeddings=False,
                           max_position_embeddings=131072)
    raise SystemExit(f"no configuration {name}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("model")
    parser.add_argument("--batch", type=int, default=1)
    parser.add_argument("--length", type=int, default=512)
    parser.add_argument("--attention", default="sdpa", choices=["eager", "sdpa"])
    parser.add_argument("--bf16", action="store_true", help="parameters in bf16")
    parser.add_argument("--checkpoint", action="store_true")
    parser.add_argument("--compile", action="store_true")
    parser.add_argument("--no-optimizer", action="store_true", help="forward and backward only")
    parser.add_argument("--fresh-memory", action="store_true", help="collect garbage and empty the cache before each step")
    parser.add_argument("--steps", type=int, default=4)
    args = parser.parse_args()
    _, _, device = start()
    import transformers

    config = configuration(args.model)
    config._attn_implementation = args.attention
    config.use_cache = False
    kind = transformers.AutoModelForPreTraining if args.model.startswith("bert") else transformers.AutoModelForCausalLM
    torch.set_default_dtype(torch.bfloat16 if args.bf16 else torch.float32)
    with torch.device(device):
        model = kind.from_config(config, attn_implementation=args.attention)
    torch.set_default_dtype(torch.float32)
    model.train()
    if args.checkpoint:
        model.gradient_checkpointing_enable()
    if args.compile:
        model = torch.compile(model)
    optimizer = None if args.no_optimizer else torch.optim.AdamW(model.parameters(), lr=1e-5)
    tokens = torch.randint(config.vocab_size, (args.batch, args.length), device=device)
    extra = {"next_sentence_label": torch.zeros(args.batch, dtype=torch.long, device=device)} \
        if args.model.startswith("bert") else {}

    def step():
        loss = model(input_ids=tokens, labels=tokens, **extra).loss
        loss.backward()
        if optimizer:
            optimizer.step()
        model.zero_grad(set_to_none=True)

    def before():
        gc.collect()
        torch.cuda.empty_cache()

    measure(step, steps=args.steps, before=before if args.fresh_memory else None)
    finish()


if __name__ == "__main__":
    main()
