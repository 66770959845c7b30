"""The list of workloads: what must run to the end, unmodified, with nothing unimplemented.

`test` is in `make test`, `cuda12` too, with a torch built for CUDA 12; everything else is in `make workloads`.
"""

from __future__ import annotations

import os
import re
import shutil
from dataclasses import dataclass, field

GPT = "examples/train_gpt.py --layers 4 --batch 4 --steps 5"


@dataclass
class Workload:
    name: str
    command: str                      # after `python` or `torchrun --nproc-per-node N`
    ranks: int = 1
    cluster: str = "dgx-h100"
    test: bool = False                # also in `make test`
    cuda12: bool = False              # in `make test` with the torch of .venv-cuda12
    # packages, a program on PATH ("program:nvcc"), the CUDA torch is built for ("cuda:12")
    needs: tuple[str, ...] = ()
    timeout: int = 300
    plain: bool = False               # the command is complete by itself
    nodes: int = 1
    throughput: tuple[str, float] | None = None  # what a step trains on: unit and amount
    work: float | None = None         # FLOPs of a step, within 2 %
    all_known: bool = False           # no kernel may be unknown
    environment: dict[str, str] = field(default_factory=dict)


WORKLOADS = [
    Workload("gpt-a100", GPT, cluster="dgx-a100", test=True, cuda12=True),
    Workload("gpt-h100", GPT, test=True, throughput=("tokens", 4 * 1024)),
    Workload("gpt-compile", GPT + " --compile default", test=True, throughput=("tokens", 4 * 1024)),
    Workload("gpt-compile-reduce-overhead", GPT + " --steps 12 --compile reduce-overhead"),
    Workload("gpt-compile-max-autotune", GPT + " --steps 12 --compile max-autotune", timeout=900),
    Workload("gpt-expandable-segments", GPT, environment={"PYTORCH_ALLOC_CONF": "expandable_segments:True"}),
    Workload("resnet50", "vision.py --model resnet50", needs=("torchvision",)),
    Workload(
        "resnet50-nhwc-benchmark-amp",
        "vision.py --model resnet50 --channels-last --benchmark --amp",
        needs=("torchvision",),
        test=True,
        throughput=("images", 32),
    ),
    Workload("resnet50-benchmark", "vision.py --model resnet50 --benchmark", needs=("torchvision",)),
    Workload("resnet50-nhwc", "vision.py --model resnet50 --channels-last", needs=("torchvision",)),
    Workload("efficientnet", "vision.py --model efficientnet_b0", needs=("torchvision",)),
    Workload(
        "efficientnet-timm-nhwc-amp",
        "vision.py --package timm --model efficientnet_b0 --channels-last --amp",
        needs=("timm", "torchvision"),
    ),
    Workload("timm-vit", "vision.py --package timm --model vit_small_patch16_224 --amp", needs=("timm", "torchvision")),
    Workload("lstm", "lstm.py", test=True),
    Workload("ddp", GPT, ranks=2, test=True, throughput=("tokens", 2 * 4 * 1024)),
    Workload("ddp-hooks", "ddp.py", ranks=2),
    Workload("ddp-4", "ddp.py", ranks=4),
    Workload("ddp-two-nodes", GPT, ranks=2, nodes=2, cluster="dgx-h100"),
    Workload("fsdp1", "fsdp1.py", ranks=2),
    Workload("fsdp1-4", "fsdp1.py", ranks=4),
    Workload("fsdp2", "fsdp2.py", ranks=4, test=True),
    Workload("fsdp2-checkpoint", "fsdp2.py --checkpoint", ranks=2),
    Workload("tensor-parallel", "tensor_parallel.py", ranks=2, test=True, throughput=("tokens", 2048)),
    Workload("symmetric-memory", "symmetric_memory.py", ranks=2),
    Workload("sequence-parallel", "tensor_parallel.py --sequence", ranks=2),
    Workload("context-parallel", "context_parallel.py", ranks=2),
    Workload("pipeline-1f1b", "pipeline.py --schedule 1f1b", ranks=4, test=True, throughput=("tokens", 2048)),
    Workload("pipeline-interleaved", "pipeline.py --schedule interleaved", ranks=2),
    Workload("pipeline-gpipe", "pipeline.py --schedule gpipe", ranks=2),
    Workload("activation-checkpoint", "activation_checkpoint.py"),
    Workload("zero-redundancy", "zero_redundancy.py", ranks=2),
    Workload("fp8", "fp8.py"),
    Workload("bf16-volta", "bf16_volta.py", cluster="v100-sxm2-32gb", needs=("cuda:12",), cuda12=True),
    Workload("moe", "moe.py", ranks=2, test=True),
    Workload("sparse-embedding", "sparse_embedding.py"),
    Workload("profiler", "profiler.py"),
    Workload("hf-llama", "hugging_face.py --model llama", cluster="h100-sxm", needs=("transformers", "accelerate")),
    Workload("hf-bert", "hugging_face.py --model bert", cluster="h100-sxm", needs=("transformers", "accelerate")),
    Workload("hf-vit", "hugging_face.py --model vit", cluster="h100-sxm", needs=("transformers", "accelerate")),
    Workload(
        "hf-llama-accelerate",
        "accelerate launch --num_processes 2 --num_machines 1 --multi_gpu "
        "--mixed_precision bf16 --dynamo_backend no tests/workloads/hugging_face.py --model llama",
        ranks=2,
        plain=True,
        needs=("transformers", "accelerate"),
    ),
    Workload("lightning", "lightning_fit.py", needs=("lightning",)),
    Workload("lightning-ddp", "lightning_fit.py --devices 2", ranks=2, plain=False, needs=("lightning",)),
    Workload("litgpt", "litgpt_pretrain.py small-llama", needs=("litgpt",), timeout=600),
    Workload("litgpt-fsdp", "litgpt_pretrain.py small-llama --devices 2", ranks=2, needs=("litgpt",), timeout=600),
    Workload("graph-pooling", "research.py graphs", needs=("torch_geometric",)),
    Workload("open-clip", "research.py clip", needs=("open_clip",)),
    Workload(
        "torchtune-lora",
        "torchtune_recipe.py lora_finetune_distributed llama3_2/1B_lora",
        ranks=2,
        needs=("torchtune",),
    ),
    Workload(
        "torchtune-full",
        "torchtune_recipe.py full_finetune_distributed llama3_2/1B_full",
        ranks=2,
        needs=("torchtune",),
    ),
    Workload("llm-foundry-mpt", "llm_foundry_mpt.py", ranks=2, needs=("llmfoundry",), timeout=600),
    # Packages: each with its own training loop, engine or kernels.
    Workload(
        "deepspeed-zero1",
        "deepspeed --num_gpus 2 tests/workloads/deepspeed_zero.py --stage 1",
        ranks=2,
        plain=True,
        needs=("deepspeed",),
    ),
    Workload("deepspeed-zero2-accumulate", "deepspeed_zero.py --stage 2 --accumulate 2", ranks=2, needs=("deepspeed",)),
    Workload("deepspeed-zero3", "deepspeed_zero.py --stage 3", ranks=2, needs=("deepspeed",)),
    Workload("deepspeed-offload", "deepspeed_zero.py --stage 2 --offload", ranks=2, needs=("deepspeed",), timeout=900),
    Workload("megatron-tp", "megatron_gpt.py --tp 2 --distributed-optimizer", ranks=4, needs=("megatron",)),
    Workload("megatron-pp", "megatron_gpt.py --pp 2", ranks=2, needs=("megatron",)),
    Workload(
        "megatron-moe", "megatron_gpt.py --experts 4 --ep 2 --distributed-optimizer", ranks=2, needs=("megatron",)
    ),
    Workload(
        "megatron-te",
        "megatron_gpt.py --engine te --tp 2 --sequence --distributed-optimizer",
        ranks=4,
        needs=("megatron", "transformer_engine"),
    ),
    Workload(
        "torchtitan-llama3",
        "torchtitan_train.py --module llama3 --config llama3_debugmodel --training.steps 4 --training.seq_len 512",
        ranks=2,
        needs=("torchtitan",),
        timeout=600,
    ),
    Workload(
        "hf-trainer-fsdp",
        "accelerate launch --num_processes 2 --num_machines 1 --use_fsdp --fsdp_version 2 "
        "--fsdp_auto_wrap_policy TRANSFORMER_BASED_WRAP --mixed_precision bf16 --dynamo_backend no "
        "tests/workloads/hf_trainer.py",
        ranks=2,
        plain=True,
        needs=("transformers", "accelerate"),
    ),
    Workload("hf-trainer-deepspeed", "hf_trainer.py --deepspeed 3", ranks=2, needs=("transformers", "deepspeed")),
    Workload("trl-sft-lora", "trl_sft.py --lora", cluster="h100-sxm", needs=("trl", "peft")),
    Workload("diffusers-unet", "diffusers_unet.py", needs=("diffusers",)),
    Workload("faster-rcnn", "detection.py", needs=("torchvision",)),
    Workload("yolo", "yolo.py", needs=("ultralytics",)),
    Workload("bitsandbytes-adam8bit", "kernels_of_packages.py bitsandbytes", needs=("bitsandbytes",)),
    Workload("bitsandbytes-qlora", "kernels_of_packages.py qlora", needs=("bitsandbytes",)),
    Workload("torchao-float8", "kernels_of_packages.py float8", needs=("torchao",)),
    Workload("liger", "kernels_of_packages.py liger", needs=("liger_kernel",)),
    Workload("xformers", "kernels_of_packages.py xformers", needs=("xformers",)),
    Workload("torchrec-dlrm", "dlrm.py", needs=("torchrec",)),
    Workload("jax", "jax_mlp.py", cluster="h100-sxm", needs=("jax",), timeout=600),
    Workload("jax-sharded", "jax_sharded.py --devices 2", needs=("jax",), timeout=900),
    Workload(
        "cuda-program", "tests/workloads/cuda_program/build_and_run.sh", plain=True, needs=("program:nvcc",), test=True
    ),
    # Scripts for one machine.
    Workload("adversarial", "user_scripts.py adversarial", cluster="h100-sxm", throughput=("images", 64)),
    Workload("fourier", "user_scripts.py fourier", cluster="h100-sxm", throughput=("images", 8)),
    Workload("replicas", "user_scripts.py replicas", throughput=("images", 64)),
    Workload("scripted", "user_scripts.py scripted", cluster="h100-sxm", test=True, all_known=True),
    Workload("private", "user_scripts.py private", cluster="h100-sxm", throughput=("images", 64)),
    Workload("sharpness", "user_scripts.py sharpness", cluster="h100-sxm", throughput=("images", 32)),
    Workload("converging", "user_scripts.py converging", cluster="h100-sxm"),
    Workload("tuned-kernel", "tuned_kernel.py", cluster="h100-sxm", test=True, work=2 * 4096**3),
    Workload("values", "values.py", test=True),
    Workload("values-ranks", "values.py", ranks=3, test=True),
]


def missing(workload: Workload) -> str | None:
    """What this machine lacks for the workload, if anything."""
    import importlib.util

    for need in workload.needs:
        if need.startswith("program:"):
            program = need.removeprefix("program:")
            if not shutil.which(program) and not os.path.exists(f"/usr/local/cuda/bin/{program}"):
                return program
        elif need.startswith("cuda:"):
            # Read, not imported: outside the emulation torch does not find its libraries.
            spec = importlib.util.find_spec("torch")
            text = open(os.path.join(os.path.dirname(spec.origin), "version.py")).read() if spec else ""
            if not re.search(rf"^cuda\b[^=]*= *'{need.removeprefix('cuda:')}\.", text, re.M):
                return f"a torch for CUDA {need.removeprefix('cuda:')}"
        elif importlib.util.find_spec(need) is None:
            return need
    return None
