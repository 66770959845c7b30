"""DeepSpeed's own engine: ZeRO stages, offload to the host, its fused Adam or the fallbacks it has."""

from __future__ import annotations

import argparse

import deepspeed
import torch
from common import Transformer, loss_of


def configuration(args) -> dict:
    zero: dict = {"stage": args.stage}
    if args.offload:
        zero["offload_optimizer"] = {"device": "cpu", "pin_memory": True}
        if args.stage == 3:
            zero["offload_param"] = {"device": "cpu", "pin_memory": True}
    return {
        "train_micro_batch_size_per_gpu": args.batch,
        "gradient_accumulation_steps": args.accumulate,
        "gradient_clipping": 1.0,
        "bf16": {"enabled": args.precision == "bf16"},
        "fp16": {"enabled": args.precision == "fp16"},
        "zero_optimization": zero,
        "optimizer": {"type": "AdamW", "params": {"lr": 1e-4, "torch_adam": not args.offload}},
        "zero_allow_untested_optimizer": True,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--stage", type=int, default=1)
    parser.add_argument("--offload", action="store_true")
    parser.add_argument("--precision", default="bf16", choices=["bf16", "fp16"])
    parser.add_argument("--accumulate", type=int, default=1)
    parser.add_argument("--batch", type=int, default=4)
    parser.add_argument("--steps", type=int, default=5)
    parser.add_argument("--local_rank", type=int, default=0)
    args = parser.parse_args()

    deepspeed.init_distributed()
    if args.stage == 3:
        with deepspeed.zero.Init(config_dict_or_path=configuration(args)):
            model = Transformer()
    else:
        model = Transformer()
    engine, _, _, _ = deepspeed.initialize(model=model, model_parameters=model.parameters(), config=configuration(args))
    for _ in range(args.steps * args.accumulate):
        data = torch.randint(model.vocabulary, (args.batch, 513)).to(engine.device)
        loss = loss_of(engine(data[:, :-1]), data[:, 1:])
        engine.backward(loss)
        engine.step()
    torch.cuda.synchronize()
    engine.destroy()
    print("done", flush=True)


if __name__ == "__main__":
    main()
