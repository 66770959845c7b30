"""A latent-diffusion UNet of diffusers, trained to predict noise as its examples do."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from accelerate import Accelerator
from diffusers import DDPMScheduler, UNet2DConditionModel
from diffusers.optimization import get_scheduler


def main() -> None:
    accelerator = Accelerator(mixed_precision="bf16")
    model = UNet2DConditionModel(sample_size=32, block_out_channels=(64, 128, 256), layers_per_block=1,
                                 down_block_types=("CrossAttnDownBlock2D", "CrossAttnDownBlock2D", "DownBlock2D"),
                                 up_block_types=("UpBlock2D", "CrossAttnUpBlock2D", "CrossAttnUpBlock2D"),
                                 cross_attention_dim=256, attention_head_dim=8)
    noises = DDPMScheduler(num_train_timesteps=1000)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
    schedule = get_scheduler("constant", optimizer)
    data = torch.utils.data.TensorDataset(torch.randn(48, 4, 32, 32), torch.randn(48, 77, 256))
    loader = torch.utils.data.DataLoader(data, batch_size=4, shuffle=True)
    model, optimizer, loader, schedule = accelerator.prepare(model, optimizer, loader, schedule)
    for step, (latents, text) in enumerate(loader):
        with accelerator.accumulate(model):
            noise = torch.randn_like(latents)
            times = torch.randint(0, 1000, (latents.shape[0],), device=latents.device)
            noisy = noises.add_noise(latents, noise, times)
            loss = F.mse_loss(model(noisy, times, text, return_dict=False)[0].float(), noise.float())
            accelerator.backward(loss)
            accelerator.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            schedule.step()
            optimizer.zero_grad()
        if step == 5:
            break
    torch.cuda.synchronize()
    accelerator.end_training()
    print("done", flush=True)


if __name__ == "__main__":
    main()
