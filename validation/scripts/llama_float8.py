"""Llama with FSDP2 as llama_fsdp.py trains it, its products in float8 as torchtitan asks torchao for it: all linear layers but the
last, scales found in every step, parameters gathered in float8.

    torchrun --nproc-per-node 8 llama_float8.py --model llama3-8b --batch 2 --selective --compile
"""

from __future__ import annotations

import llama_fsdp
import torch
from torch.optim.optimizer import register_optimizer_step_post_hook
from torchao.float8 import Float8LinearConfig, convert_to_float8_training, precompute_float8_dynamic_scale_for_fsdp


def main():
    plain = llama_fsdp.Llama

    def build(*sizes):
        model = plain(*sizes)
        convert_to_float8_training(model, config=Float8LinearConfig(enable_fsdp_float8_all_gather=True),
                                   module_filter_fn=lambda module, name: name != "output")
        register_optimizer_step_post_hook(lambda *_: precompute_float8_dynamic_scale_for_fsdp(model))
        return model

    llama_fsdp.Llama = build
    llama_fsdp.KEPT.add(torch.ops.aten.max.default)  # a scale is not worth finding twice
    llama_fsdp.main()


if __name__ == "__main__":
    main()
