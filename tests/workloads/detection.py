"""torchvision's detectors: anchors, NMS and sampling, whose shapes depend on values."""

from __future__ import annotations

import argparse

import torch
import torchvision


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", default="fasterrcnn_resnet50_fpn")
    parser.add_argument("--steps", type=int, default=5)
    parser.add_argument("--amp", action="store_true")
    args = parser.parse_args()
    torch.manual_seed(0)
    model = getattr(torchvision.models.detection, args.model)(weights=None, weights_backbone=None, num_classes=21,
                                                              min_size=320, max_size=512).cuda().train()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
    for _ in range(args.steps):
        images = [torch.rand(3, 320, 320).cuda() for _ in range(2)]
        targets = []
        for _ in images:
            corner = torch.rand(5, 2) * 160
            boxes = torch.cat([corner, corner + 20 + torch.rand(5, 2) * 100], 1)
            targets.append({"boxes": boxes.cuda(), "labels": torch.randint(1, 21, (5,)).cuda()})
            if "mask" in args.model:
                targets[-1]["masks"] = torch.randint(2, (5, 320, 320), dtype=torch.uint8).cuda()
        with torch.autocast("cuda", torch.bfloat16, enabled=args.amp):
            loss = sum(model(images, targets).values())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    torch.cuda.synchronize()
    print("done", flush=True)


if __name__ == "__main__":
    main()
