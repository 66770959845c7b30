"""A GPT of Megatron-core with its own parallel state, schedules and optimizer.

    torchrun --nproc-per-node 8 megatron_gpt.py --tp 2 --pp 2 --sequence --distributed-optimizer
"""

from __future__ import annotations

import argparse
from functools import partial

import torch
from common import finish, start
from megatron.core import parallel_state
from megatron.core.distributed import DistributedDataParallel, DistributedDataParallelConfig, finalize_model_grads
from megatron.core.models.gpt.gpt_layer_specs import (
    get_gpt_decoder_block_spec,
    get_gpt_layer_local_spec,
    get_gpt_layer_with_transformer_engine_spec,
)
from megatron.core.models.gpt.gpt_model import GPTModel
from megatron.core.optimizer import OptimizerConfig, get_megatron_optimizer
from megatron.core.pipeline_parallel.schedules import get_forward_backward_func
from megatron.core.tensor_parallel.random import model_parallel_cuda_manual_seed
from megatron.core.transformer import TransformerConfig


def parse():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tp", type=int, default=1)
    parser.add_argument("--pp", type=int, default=1)
    parser.add_argument("--vpp", type=int)
    parser.add_argument("--cp", type=int, default=1)
    parser.add_argument("--ep", type=int, default=1)
    parser.add_argument("--experts", type=int)
    parser.add_argument("--dispatcher", default="alltoall", choices=["alltoall", "allgather"])
    parser.add_argument("--grouped", action="store_true")
    parser.add_argument("--sequence", action="store_true")
    parser.add_argument("--distributed-optimizer", action="store_true")
    parser.add_argument("--recompute", action="store_true")
    parser.add_argument("--engine", default="local", choices=["local", "te"])
    parser.add_argument("--fp8", action="store_true")
    parser.add_argument("--layers", type=int, default=4)
    parser.add_argument("--width", type=int, default=512)
    parser.add_argument("--length", type=int, default=512)
    parser.add_argument("--vocabulary", type=int, default=8192)
    parser.add_argument("--micro-batches", type=int, default=4)
    parser.add_argument("--steps", type=int, default=4)
    return parser.parse_args()


def main() -> None:
    args = parse()
    job = start()
    parallel_state.initialize_model_parallel(
        tensor_model_parallel_size=args.tp, pipeline_model_parallel_size=args.pp,
        virtual_pipeline_model_parallel_size=args.vpp, context_parallel_size=args.cp,
        expert_model_parallel_size=args.ep)
    model_parallel_cuda_manual_seed(1)

    extra = {}
    if args.experts:
        extra |= dict(num_moe_experts=args.experts, moe_router_topk=2, moe_token_dispatcher_type=args.dispatcher,
                      moe_grouped_gemm=args.grouped, moe_aux_loss_coeff=0.01, add_bias_linear=False)
    if args.recompute:
        extra |= dict(recompute_granularity="full", recompute_method="uniform", recompute_num_layers=1)
    if args.fp8:
        extra |= dict(fp8="hybrid")
    config = TransformerConfig(
        num_layers=args.layers, hidden_size=args.width, num_attention_heads=8, ffn_hidden_size=4 * args.width,
        tensor_model_parallel_size=args.tp, pipeline_model_parallel_size=args.pp, context_parallel_size=args.cp,
        virtual_pipeline_model_parallel_size=args.vpp, expert_model_parallel_size=args.ep,
        sequence_parallel=args.sequence, bf16=True, pipeline_dtype=torch.bfloat16, params_dtype=torch.bfloat16,
        attention_softmax_in_fp32=True, gradient_accumulation_fusion=args.engine == "te",
        finalize_model_grads_func=finalize_model_grads, deallocate_pipeline_outputs=True, **extra)
    if args.engine == "te":
        specification = (get_gpt_decoder_block_spec(config, use_transformer_engine=True) if args.experts
                         else get_gpt_layer_with_transformer_engine_spec())
    else:
        specification = get_gpt_layer_local_spec(num_experts=args.experts, moe_grouped_gemm=args.grouped)

    stages = []
    for chunk in range(args.vpp or 1):
        virtual = dict(vp_stage=chunk) if args.vpp else {}
        first = parallel_state.is_pipeline_first_stage(ignore_virtual=False, **virtual)
        last = parallel_state.is_pipeline_last_stage(ignore_virtual=False, **virtual)
        model = GPTModel(config, specification, args.vocabulary, args.length, pre_process=first, post_process=last,
                         share_embeddings_and_output_weights=False, position_embedding_type="rope", **virtual)
        model = model.cuda().bfloat16()
        stages.append(DistributedDataParallel(
            config, DistributedDataParallelConfig(use_distributed_optimizer=args.distributed_optimizer,
                                                  overlap_grad_reduce=True, grad_reduce_in_fp32=True), model))
    optimizer = get_megatron_optimizer(
        OptimizerConfig(optimizer="adam", lr=1e-4, bf16=True, params_dtype=torch.bfloat16, clip_grad=1.0,
                        use_distributed_optimizer=args.distributed_optimizer), stages)
    schedule = get_forward_backward_func()
    local = args.length // args.cp

    def forward(data, model):
        tokens = torch.randint(args.vocabulary, (1, local + 1)).cuda(non_blocking=True)
        positions = torch.arange(local, device="cuda")[None]
        # TE masks by itself; the local attention wants the mask.
        mask = None if args.engine == "te" else torch.tril(
            torch.ones(1, 1, local, local, device="cuda", dtype=torch.bool)).logical_not()
        losses = model(tokens[:, :-1], positions, mask, labels=tokens[:, 1:].contiguous())
        return losses, partial(lambda output: (output.float().mean(), {"loss": output.detach().mean()}))

    for _ in range(args.steps):
        for stage in stages:
            stage.zero_grad_buffer()
        optimizer.zero_grad()
        schedule(forward_step_func=forward, data_iterator=[iter(())] * len(stages), model=stages,
                 num_microbatches=args.micro_batches, seq_length=args.length, micro_batch_size=1, forward_only=False)
        optimizer.step()
    parallel_state.destroy_model_parallel()
    finish(job)


if __name__ == "__main__":
    main()
