"""Image classifiers through cuDNN: torchvision or timm, NCHW or NHWC, cudnn.benchmark, AMP with GradScaler."""

import argparse

import torch
import torch.nn.functional as F
from common import finish, start

parser = argparse.ArgumentParser()
parser.add_argument("--model", default="resnet50")
parser.add_argument("--package", choices=["torchvision", "timm"], default="torchvision")
parser.add_argument("--channels-last", action="store_true")
parser.add_argument("--benchmark", action="store_true")
parser.add_argument("--amp", action="store_true", help="fp16 autocast and GradScaler")
parser.add_argument("--batch", type=int, default=32)
parser.add_argument("--steps", type=int, default=4)
args = parser.parse_args()

job = start()
torch.backends.cudnn.benchmark = args.benchmark
if args.package == "timm":
    import timm

    model = timm.create_model(args.model, pretrained=False, num_classes=1000)
else:
    import torchvision

    model = torchvision.models.get_model(args.model, weights=None)
layout = torch.channels_last if args.channels_last else torch.contiguous_format
model = model.to(job.device, memory_format=layout).train()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9, weight_decay=1e-4)
# torch 2.3 moved it.
scaler = (torch.amp.GradScaler("cuda", enabled=args.amp) if hasattr(torch.amp, "GradScaler")
          else torch.cuda.amp.GradScaler(enabled=args.amp))
for step in range(args.steps):
    images = torch.randn(args.batch, 3, 224, 224).pin_memory().to(job.device, non_blocking=True, memory_format=layout)
    labels = torch.randint(1000, (args.batch,)).to(job.device)
    with torch.autocast("cuda", dtype=torch.float16, enabled=args.amp):
        loss = F.cross_entropy(model(images), labels)
    scaler.scale(loss).backward()
    scaler.step(optimizer)
    scaler.update()
    optimizer.zero_grad()
if args.amp:
    # The scale starts at 65536 and only moves when a gradient is infinite or after 2000 good steps.
    assert scaler.get_scale() > 0, scaler.get_scale()
finish(job)
