"""Public training code, started as its README says, with `--stop-after 3` and synthetic data.

An entry says what is run, and how much a step processes by the script's own account. {data} is the folder that data.py
fills, {here} the one of this file. `folder` is a clone below the folder of sources, or empty for packages of PyPI.
"""

from __future__ import annotations

import dataclasses


@dataclasses.dataclass(frozen=True)
class CodeBase:
    name: str
    folder: str                       # below the folder of sources; "": installed packages only
    command: str                      # as typed in that folder
    cluster: str
    per_step: float                   # what a step processes …
    unit: str                         # … of: tokens, images, samples
    data: tuple[str, ...] = ()        # parts of data.py
    links: tuple[tuple[str, str], ...] = ()   # name in the folder, and the part of the data it points to
    variables: tuple[tuple[str, str], ...] = ()
    found_by: tuple[str, ...] = ("optimizer", "annotation")   # how steps may be told
    timeout: int = 900


def nanogpt(name: str, launcher: str, options: str, dataset: str, cluster: str, tokens: int) -> CodeBase:
    return CodeBase(name, "nanoGPT", f"{launcher} train.py {options}", cluster, tokens, "tokens", data=("tokens",),
                    links=((f"data/{dataset}", f"tokens/{dataset}"),))


def run_clm(name: str, launcher: str, options: str, cluster: str, ranks: int) -> CodeBase:
    """4 sequences of 512 tokens a rank."""
    return CodeBase(name, "transformers/examples/pytorch/language-modeling",
                    f"{launcher} run_clm.py --do_train --bf16 --report_to none --config_name {{data}}/llama "
                    "--tokenizer_name {data}/tokenizer "
                    "--train_file {data}/text/train.txt --block_size 512 --per_device_train_batch_size 4 "
                    f"--output_dir {{data}}/out {options}",
                    cluster, ranks * 4 * 512, "tokens", data=("llama", "tokenizer", "text", "zero"),
                    # An update on the host is seen by its gradients.
                    found_by=("backward",) if "offload" in name else ("optimizer", "annotation"))


def trl(name: str, options: str, tokens: int) -> CodeBase:
    return CodeBase(name, "", f"trl {options} --model_name_or_path {{data}}/llama --per_device_train_batch_size 8 "
                    "--output_dir {data}/out --report_to none", "h100-sxm", tokens, "tokens", data=("llama", "chat"))


def torchtitan(name: str, ranks: int, **variables: str) -> CodeBase:
    """8 sequences of 2,048 tokens a rank, as the debug configurations have them."""
    return CodeBase(f"torchtitan-{name}", "torchtitan", "bash run_train.sh", "dgx-h100", ranks * 8 * 2048, "tokens",
                    data=("c4",), links=(("tests/assets/c4_test", "c4"),),
                    variables=(("NGPU", str(ranks)), *variables.items()))


def megatron(name: str, ranks: int, options: str = "") -> CodeBase:
    """16 sequences of 1,024 tokens. Without Transformer Engine and Apex: Megatron's own layers."""
    return CodeBase(
        f"megatron-{name}", "Megatron-LM",
        f"bash -c 'torchrun --nproc_per_node {ranks} pretrain_gpt.py --num-layers 4 --hidden-size 512 "
        "--num-attention-heads 8 --seq-length 1024 --max-position-embeddings 1024 --micro-batch-size 2 "
        "--global-batch-size 16 --train-iters 1000 --lr 1e-4 --bf16 --mock-data --tokenizer-type NullTokenizer "
        "--vocab-size 8191 --split 949,50,1 --eval-interval 1000 --eval-iters 1 --transformer-impl local "
        f"--no-masked-softmax-fusion --no-persist-layer-norm --no-gradient-accumulation-fusion {options}'",
        "dgx-h100", 16 * 1024, "tokens", variables=(("CUDA_DEVICE_MAX_CONNECTIONS", "1"),))


CODE_BASES = [
    nanogpt("nanogpt", "python", "config/train_shakespeare_char.py --compile=False", "shakespeare_char", "h100-sxm",
            64 * 256),
    nanogpt("nanogpt-compiled", "python", "config/train_shakespeare_char.py", "shakespeare_char", "h100-sxm", 64 * 256),
    nanogpt("nanogpt-ddp", "torchrun --standalone --nproc_per_node=2",
            "--dataset=openwebtext --compile=False --eval_iters=4 --gradient_accumulation_steps=4", "openwebtext",
            "dgx-h100", 4 * 12 * 1024),
    # Of a commit before September 2025: later ones download a kernel.
    CodeBase("modded-nanogpt", "modded-nanogpt", "torchrun --standalone --nproc_per_node=8 train_gpt.py", "dgx-h100",
             8 * 48 * 1024, "tokens", data=("fineweb",), links=(("data/fineweb10B", "fineweb"),), timeout=1800),
    CodeBase("dit", "DiT", "torchrun --nnodes=1 --nproc_per_node=2 train.py --model DiT-S/2 "
             "--data-path {data}/images/train --global-batch-size 32", "dgx-a100", 32, "images",
             data=("images", "vae"), links=(("stabilityai", "vae/stabilityai"),)),
    CodeBase("pytorch-imagenet", "examples/imagenet", "python main.py --dummy -a resnet50 -b 128 --workers 0",
             "a100-80gb-sxm", 128, "images"),
    CodeBase("pytorch-imagenet-spawn", "examples/imagenet", "python main.py --dummy -a resnet18 -b 128 --workers 0 "
             "--dist-url tcp://127.0.0.1:29876 --dist-backend nccl --multiprocessing-distributed --world-size 1 "
             "--rank 0", "dgx-a100", 128, "images", variables=(("CUDA_VISIBLE_DEVICES", "0,1"),)),
    # Its rows have 16 numbers, which PyTorch looks up with a kernel that does not tell the table.
    CodeBase("pytorch-fsdp2", "examples/distributed/FSDP2", "torchrun --nproc_per_node 2 example.py", "dgx-h100", 0,
             "none"),
    CodeBase("pytorch-tensor-parallel", "examples/distributed/tensor_parallelism",
             "torchrun --nnodes=1 --nproc_per_node=4 fsdp_tp_example.py", "dgx-h100", 2 * 8 * 256, "tokens"),
    run_clm("hf-run-clm", "python", "", "h100-sxm", 1),
    *(run_clm(f"hf-run-clm-{stage.replace('_', '-')}", "deepspeed --num_gpus 2",
              f"--deepspeed {{data}}/zero/{stage}.json", "dgx-h100", 2)
      for stage in ("zero1", "zero2", "zero3", "zero3_offload")),
    CodeBase("deepspeed-pipeline", "", "deepspeed --num_gpus 2 {here}/deepspeed_pipeline.py", "dgx-h100", 8 * 4,
             "samples"),
    run_clm("hf-run-clm-accelerate-fsdp", "accelerate launch --use_fsdp --fsdp_version 2 --fsdp_auto_wrap_policy "
            "TRANSFORMER_BASED_WRAP --num_processes 2 --mixed_precision bf16", "", "dgx-h100", 2),
    CodeBase("diffusers-unconditional", "diffusers/examples/unconditional_image_generation",
             "accelerate launch --num_processes 1 train_unconditional.py --train_data_dir {data}/images/train "
             "--resolution 64 --train_batch_size 16 --output_dir {data}/out --dataloader_num_workers 0", "h100-sxm", 16,
             "images", data=("images",)),
    CodeBase("timm", "pytorch-image-models", "torchrun --nproc_per_node=2 train.py --data-dir {data}/images --model "
             "resnet50 -b 32 --amp --amp-dtype bfloat16 --num-classes 2 --workers 1 --output {data}/out",
             "dgx-a100", 64, "images", data=("images",)),
    # Without nbs it accumulates batches, more of them from step to step.
    CodeBase("ultralytics", "", "yolo train model=yolo11n.yaml data={data}/detection/data.yaml epochs=50 batch=16 "
             "nbs=16 workers=0 device=0 plots=False project={data}/out pretrained=False amp=False", "a100-80gb-sxm", 16,
             "images", data=("detection",)),
    trl("trl-sft", "sft --dataset_name {data}/chat/text --max_length 128", 8 * 120),
    # Prompts of 31 tokens and completions of 32.
    trl("trl-grpo", "grpo --dataset_name {data}/chat/prompts --reward_funcs think_format_reward --num_generations 8 "
        "--max_completion_length 32", 8 * (31 + 32)),
    torchtitan("llama3", 2),
    torchtitan("deepseek", 2, MODULE="deepseek_v3", CONFIG="deepseek_v3_debugmodel"),
    megatron("dense", 1),
    megatron("distributed-optimizer", 2, "--use-distributed-optimizer --overlap-grad-reduce"),
    megatron("tp-pp", 4, "--tensor-model-parallel-size 2 --pipeline-model-parallel-size 2"),
    megatron("interleaved", 2, "--pipeline-model-parallel-size 2 --num-layers-per-virtual-pipeline-stage 1"),
    megatron("moe", 2, "--num-experts 4 --expert-model-parallel-size 2 --moe-router-topk 2 "
             "--moe-token-dispatcher-type alltoall --swiglu --disable-bias-linear"),
    megatron("context-parallel", 2, "--context-parallel-size 2"),
]
