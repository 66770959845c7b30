"""Public training code, started as its README says, with `--stop-after 3` and synthetic data.

A line of the list: what is run, and how much a step processes by the script's own account. {data} is the folder that
data.py fills. `folder` is a clone below the folder of sources, or empty for a package of PyPI.
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
    links: tuple[tuple[str, str], ...] = ()   # name in the folder → part of the data it points to
    options: tuple[str, ...] = ()     # of `maya run`
    variables: tuple[tuple[str, str], ...] = ()
    timeout: int = 900


LLAMA = "--model_name_or_path {data}/llama"
CLM = "run_clm.py --config_name {data}/llama --tokenizer_name {data}/tokenizer --train_file {data}/text/train.txt --do_train --block_size 512 " \
      "--per_device_train_batch_size 4 --bf16 --output_dir {data}/out --overwrite_cache --report_to none"
MEGATRON = ("bash -c 'torchrun --nproc_per_node {gpus} pretrain_gpt.py --num-layers 4 --hidden-size 512 --num-attention-heads 8 --seq-length 1024 "
            "--max-position-embeddings 1024 --micro-batch-size 2 --global-batch-size 16 --train-iters 1000 --lr 1e-4 --bf16 --mock-data "
            "--tokenizer-type NullTokenizer --vocab-size 8191 --transformer-impl local --no-masked-softmax-fusion "
            "--no-persist-layer-norm --no-gradient-accumulation-fusion --split 949,50,1 --eval-interval 1000 --eval-iters 1 {more}'")


def megatron(name: str, gpus: int, more: str, **others) -> CodeBase:
    # {data} must survive.
    command = MEGATRON.replace("{gpus}", str(gpus)).replace("{more}", more)
    return CodeBase(f"megatron-{name}", "Megatron-LM", command, "dgx-h100", 16 * 1024, "tokens",
                    variables=(("CUDA_DEVICE_MAX_CONNECTIONS", "1"),), **others)


CODE_BASES = [
    # nanoGPT's README: one GPU, compiled, several GPUs. Micro-batch × length × accumulation.
    CodeBase("nanogpt", "nanoGPT", "python train.py config/train_shakespeare_char.py --compile=False", "h100-sxm", 64 * 256, "tokens",
             data=("tokens",), links=(("data/shakespeare_char", "tokens/shakespeare_char"),)),
    CodeBase("nanogpt-compiled", "nanoGPT", "python train.py config/train_shakespeare_char.py", "h100-sxm", 64 * 256, "tokens",
             data=("tokens",), links=(("data/shakespeare_char", "tokens/shakespeare_char"),)),
    CodeBase("nanogpt-ddp", "nanoGPT", "torchrun --standalone --nproc_per_node=2 train.py --dataset=openwebtext --compile=False --eval_iters=4 "
             "--gradient_accumulation_steps=4", "dgx-h100", 4 * 12 * 1024, "tokens",
             data=("tokens",), links=(("data/openwebtext", "tokens/openwebtext"),)),
    CodeBase("modded-nanogpt", "modded-nanogpt", "torchrun --standalone --nproc_per_node=8 train_gpt.py", "dgx-h100", 8 * 48 * 1024, "tokens",
             data=("fineweb",), links=(("data/fineweb10B", "fineweb"),)),
    CodeBase("dit", "DiT", "torchrun --nnodes=1 --nproc_per_node=2 train.py --model DiT-S/2 --data-path {data}/images/train --global-batch-size 32",
             "dgx-a100", 32, "images", data=("images", "vae"), links=(("stabilityai", "vae/stabilityai"),)),
    CodeBase("pytorch-imagenet", "examples/imagenet", "python main.py --dummy -a resnet50 -b 128 --workers 0", "a100-80gb-sxm", 128, "images"),
    CodeBase("pytorch-imagenet-spawn", "examples/imagenet", "python main.py --dummy -a resnet18 -b 128 --workers 0 --dist-url tcp://127.0.0.1:29876 "
             "--dist-backend nccl --multiprocessing-distributed --world-size 1 --rank 0", "dgx-a100", 128, "images",
             variables=(("CUDA_VISIBLE_DEVICES", "0,1"),)),
    CodeBase("pytorch-fsdp2", "examples/distributed/FSDP2", "torchrun --nproc_per_node 2 example.py", "dgx-h100", 2 * 32 * 64, "tokens"),
    CodeBase("pytorch-tensor-parallel", "examples/distributed/tensor_parallelism", "torchrun --nnodes=1 --nproc_per_node=4 fsdp_tp_example.py",
             "dgx-h100", 2 * 8 * 256, "tokens"),
    CodeBase("hf-run-clm", "transformers/examples/pytorch/language-modeling", f"python {CLM}", "h100-sxm", 4 * 512, "tokens", data=("llama", "tokenizer", "text")),
    CodeBase("hf-run-clm-zero3-offload", "transformers/examples/pytorch/language-modeling",
             f"deepspeed --num_gpus 2 {CLM} --deepspeed {{here}}/zero3_offload.json", "dgx-h100", 2 * 4 * 512, "tokens", data=("llama", "tokenizer", "text")),
    CodeBase("hf-no-trainer-accelerate-fsdp", "transformers/examples/pytorch/language-modeling",
             "accelerate launch --use_fsdp --fsdp_version 2 --fsdp_auto_wrap_policy TRANSFORMER_BASED_WRAP --num_processes 2 --mixed_precision bf16 "
             "run_clm_no_trainer.py --config_name {data}/llama --tokenizer_name {data}/tokenizer --train_file {data}/text/train.txt "
             "--validation_file {data}/text/train.txt --block_size 512 --per_device_train_batch_size 4 --output_dir {data}/out",
             "dgx-h100", 2 * 4 * 512, "tokens", data=("llama", "tokenizer", "text")),
    CodeBase("diffusers-unconditional", "diffusers/examples/unconditional_image_generation",
             "accelerate launch --num_processes 1 --mixed_precision bf16 train_unconditional.py --train_data_dir {data}/images/train --resolution 64 "
             "--train_batch_size 16 --output_dir {data}/out --dataloader_num_workers 0", "h100-sxm", 16, "images", data=("images",)),
    CodeBase("ultralytics", "", "yolo train model=yolo11n.yaml data={data}/detection/data.yaml epochs=50 batch=16 workers=0 device=0 plots=False "
             "project={data}/out pretrained=False amp=False nbs=16", "a100-80gb-sxm", 16, "images", data=("detection",)),
    CodeBase("trl-sft", "", f"trl sft {LLAMA} --dataset_name {{data}}/chat --max_length 128 --per_device_train_batch_size 8 "
             "--output_dir {data}/out --report_to none", "h100-sxm", 8 * 120, "tokens", data=("llama", "chat")),
    CodeBase("trl-grpo", "", f"trl grpo {LLAMA} --dataset_name {{data}}/chat/prompts --reward_funcs accuracy_reward --per_device_train_batch_size 8 "
             "--num_generations 8 --max_completion_length 32 --output_dir {data}/out --report_to none", "h100-sxm", 8, "tokens", data=("llama", "chat")),
    CodeBase("torchtitan-llama3", "torchtitan", "bash run_train.sh", "dgx-h100", 2 * 8 * 2048, "tokens", data=("c4",),
             links=(("tests/assets/c4_test", "c4"),), variables=(("NGPU", "2"),)),
    CodeBase("torchtitan-deepseek", "torchtitan", "bash run_train.sh", "dgx-h100", 2 * 8 * 2048, "tokens", data=("c4",),
             links=(("tests/assets/c4_test", "c4"),), variables=(("NGPU", "2"), ("MODULE", "deepseek_v3"), ("CONFIG", "deepseek_v3_debugmodel"))),
    megatron("dense", 1, ""),
    megatron("distributed-optimizer", 2, "--use-distributed-optimizer --overlap-grad-reduce"),
    megatron("tp-pp", 4, "--tensor-model-parallel-size 2 --pipeline-model-parallel-size 2"),
    megatron("interleaved", 2, "--pipeline-model-parallel-size 2 --num-layers-per-virtual-pipeline-stage 1"),
    megatron("moe", 2, "--num-experts 4 --expert-model-parallel-size 2 --moe-router-topk 2 --moe-token-dispatcher-type alltoall"),
    megatron("context-parallel", 2, "--context-parallel-size 2"),
]
