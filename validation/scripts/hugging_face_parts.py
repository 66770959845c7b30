"""Parts of the steps of hugging_face.py that somebody timed by themselves, and its models compiled.

    hugging_face_parts.py bert-large --batch 8 --length 512 --attention eager --part forward --fresh-memory
    hugging_face_parts.py llama-3.1-8b --length 8192 --bf16 --part inference
    hugging_face_parts.py llama-3.1-8b --length 8192 --bf16 --checkpoint --compile max-autotune
"""

from __future__ import annotations

import argparse
import gc

import torch
from common import finish, measure, start
from hugging_face import configuration


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("model")
    parser.add_argument("--batch", type=int, default=1)
    parser.add_argument("--length", type=int, default=512)
    parser.add_argument("--attention", default="sdpa", choices=["eager", "sdpa"])
    parser.add_argument("--bf16", action="store_true", help="parameters in bf16")
    parser.add_argument("--checkpoint", action="store_true")
    parser.add_argument("--compile", nargs="?", const="default", metavar="MODE")
    parser.add_argument("--part", default="step", choices=["inference", "forward", "backward", "step"],
                        help="inference: without gradients; forward: alone, though a backward pass follows; backward: both; step: with AdamW")
    parser.add_argument("--fresh-memory", action="store_true", help="collect garbage and empty the cache before each step")
    parser.add_argument("--steps", type=int, default=4)
    args = parser.parse_args()
    _, _, device = start()
    import transformers

    config = configuration(args.model)
    config.use_cache = args.part == "inference"
    kind = transformers.AutoModelForPreTraining if args.model.startswith("bert") else transformers.AutoModelForCausalLM
    torch.set_default_dtype(torch.bfloat16 if args.bf16 else torch.float32)
    with torch.device(device):
        model = kind.from_config(config, attn_implementation=args.attention)
    torch.set_default_dtype(torch.float32)
    model.train(args.part != "inference")
    if args.checkpoint:
        model.gradient_checkpointing_enable()
    if args.compile:
        model = torch.compile(model, mode=args.compile)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-5) if args.part == "step" else None
    tokens = torch.randint(config.vocab_size, (args.batch, args.length), device=device)
    extra = {"next_sentence_label": torch.zeros(args.batch, dtype=torch.long, device=device)} \
        if args.model.startswith("bert") else {}
    loss = None

    def forward():
        nonlocal loss
        if args.part == "inference":
            with torch.no_grad():
                model(input_ids=tokens)
        else:
            loss = model(input_ids=tokens, labels=tokens, **extra).loss

    def backward():
        nonlocal loss
        loss.backward()
        if optimizer:
            optimizer.step()
        model.zero_grad(set_to_none=True)
        loss = None

    def step():
        forward()
        backward()

    def before():
        if loss is not None:
            backward()
        if args.fresh_memory:
            gc.collect()
            torch.cuda.empty_cache()

    measure(forward if args.part in ("inference", "forward") else step, steps=args.steps, before=before)
    finish()


if __name__ == "__main__":
    main()
