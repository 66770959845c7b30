"""Training steps of image models on one GPU, synthetic data: the loops of timm's benchmark.py, of pytorch-gpu-benchmark
and of NVIDIA's ConvNets examples.

    vision.py resnet50:256:224:nhwc --package torchvision --amp --scaler --optimizer sgd
    vision.py resnet18:12:224:nchw vgg16:12:224:nchw       several configurations in one process

The range of a configuration is its own name, model:batch:size:layout.
"""

from __future__ import annotations

import argparse
import gc
import sys

import torch
import torch.nn as nn
from common import finish, measure, start


def build(package, name, device):
    with torch.device(device):
        if package == "timm":
            import timm

            return timm.create_model(name, num_classes=1000)
        import torchvision

        kwargs = {"aux_logits": False} if name in ("inception_v3", "googlenet") else {}
        return getattr(torchvision.models, name)(**kwargs)


def train(args, spec, device):
    name, batch, size, layout = spec.split(":")
    batch, size = int(batch), int(size)
    model = build(args.package, name, device).train()
    if args.half:
        model.half()
    format = torch.channels_last if layout == "nhwc" else torch.contiguous_format
    model.to(memory_format=format)
    dtype = torch.half if args.half else torch.float
    if args.host_input:  # a batch in pageable memory is copied in every step
        image = torch.empty(batch, 3, size, size, dtype=dtype)
    else:
        image = torch.randn(batch, 3, size, size, device=device, dtype=dtype).contiguous(memory_format=format)
    loss_of = nn.CrossEntropyLoss(label_smoothing=args.smoothing)
    optimizer = None
    if args.optimizer == "sgd":
        # One launch per tensor or many tensors per launch: as the framework of the measurement did.
        optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9, weight_decay=args.weight_decay,
                                    nesterov=args.nesterov, foreach=args.foreach)
    scaler = torch.amp.GradScaler("cuda", enabled=args.scaler)
    fixed = torch.randint(1000, (batch,), device=device)

    def step():
        if args.zero_grad == "inside":
            model.zero_grad(set_to_none=not args.keep_grads)
        with torch.autocast("cuda", dtype=torch.float16, enabled=args.amp):
            output = model(image.to(device) if args.host_input else image)
        target = fixed if not args.random_target else torch.empty(batch, dtype=torch.long, device=device).random_(1000)
        if args.scaler:
            with torch.autocast("cuda", dtype=torch.float16, enabled=args.amp):
                loss = loss_of(output, target)
            scaler.scale(loss).backward()
            scaler.step(optimizer)
            scaler.update()
        else:
            loss_of(output, target).backward()
            if optimizer:
                optimizer.step()

    before = (lambda: optimizer.zero_grad()) if args.zero_grad == "before" and optimizer else None
    measure(step, spec, steps=args.steps, before=before, synchronize=not args.free_running)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("models", nargs="+", help="model:batch:size:layout")
    parser.add_argument("--package", choices=["torchvision", "timm"], default="torchvision")
    parser.add_argument("--amp", action="store_true")
    parser.add_argument("--half", action="store_true", help="the whole model in half precision")
    parser.add_argument("--scaler", action="store_true", help="with loss scaling")
    parser.add_argument("--optimizer", choices=["none", "sgd"], default="sgd")
    parser.add_argument("--foreach", action=argparse.BooleanOptionalAction, default=None)
    parser.add_argument("--nesterov", action="store_true")
    parser.add_argument("--weight-decay", type=float, default=0.0)
    parser.add_argument("--smoothing", type=float, default=0.0)
    parser.add_argument("--zero-grad", choices=["before", "inside"], default="inside")
    parser.add_argument("--keep-grads", action="store_true", help="fill gradients with zeros in place of dropping them, as torch did before 2.0")
    parser.add_argument("--random-target", action="store_true")
    parser.add_argument("--host-input", action="store_true")
    parser.add_argument("--no-tf32", action="store_true")
    parser.add_argument("--no-benchmark", action="store_true")
    parser.add_argument("--free-running", action="store_true", help="no synchronization between steps")
    parser.add_argument("--steps", type=int, default=3)
    args = parser.parse_args()
    _, _, device = start()
    torch.backends.cudnn.benchmark = not args.no_benchmark
    torch.backends.cuda.matmul.allow_tf32 = not args.no_tf32
    torch.backends.cudnn.allow_tf32 = not args.no_tf32
    failed = 0
    for spec in args.models:
        try:
            train(args, spec, device)
        except Exception as error:  # one model that is gone from the package does not end the sweep
            if len(args.models) == 1:
                raise
            print(f"{spec}: {type(error).__name__}: {str(error)[:200]}", file=sys.stderr, flush=True)
            failed += 1
        gc.collect()
        torch.cuda.empty_cache()
    finish()
    return int(failed == len(args.models))


if __name__ == "__main__":
    sys.exit(main())
