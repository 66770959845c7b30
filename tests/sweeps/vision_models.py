"""A model or two of every family of timm, trained for two steps in AMP, channels last."""

import timm
import torch
from sweep import sweep


def train(name):
    with torch.device("cuda"):
        model = timm.create_model(name, num_classes=10)
    model = model.cuda().train().to(memory_format=torch.channels_last)
    images = torch.randn(4, *model.default_cfg.get("input_size", (3, 224, 224)), device="cuda")
    images = images.to(memory_format=torch.channels_last)
    optimizer, scaler = torch.optim.AdamW(model.parameters()), torch.amp.GradScaler("cuda")
    for _ in range(2):
        with torch.autocast("cuda", torch.float16):
            result = model(images)
            loss = (result[0] if isinstance(result, (tuple, list)) else result).float().mean()
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
        optimizer.zero_grad()


def cases():
    for family in sorted(timm.models.list_modules()):
        names = timm.models.list_models(module=family)
        for name in sorted({names[0], names[len(names) // 2]} if names else ()):
            yield name, name


sweep("models", cases(), train)
