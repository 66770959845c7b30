"""Linear layers in FP8: torch._scaled_mm forward (e4m3) and backward (e5m2), with dynamic scaling."""

import torch
import torch.nn as nn
from common import Transformer, finish, start, train

E4M3, E5M2 = torch.float8_e4m3fn, torch.float8_e5m2


def to_fp8(x, dtype):
    scale = torch.finfo(dtype).max / x.abs().amax().float().clamp(min=1e-12)
    return (x * scale).to(dtype), scale.reciprocal()


class Fp8Product(torch.autograd.Function):
    @staticmethod
    def forward(context, x, weight):
        x8, x_scale = to_fp8(x, E4M3)
        w8, w_scale = to_fp8(weight, E4M3)
        context.save_for_backward(x, weight)
        return torch._scaled_mm(x8, w8.t(), scale_a=x_scale, scale_b=w_scale, out_dtype=torch.bfloat16)

    @staticmethod
    def backward(context, gradient):
        x, weight = context.saved_tensors
        g8, g_scale = to_fp8(gradient.contiguous(), E5M2)
        w8, w_scale = to_fp8(weight.t().contiguous(), E4M3)
        dx = torch._scaled_mm(g8, w8.t(), scale_a=g_scale, scale_b=w_scale, out_dtype=torch.bfloat16)
        gt8, gt_scale = to_fp8(gradient.t().contiguous(), E5M2)
        xt8, xt_scale = to_fp8(x.t().contiguous(), E4M3)
        dw = torch._scaled_mm(gt8, xt8.t(), scale_a=gt_scale, scale_b=xt_scale, out_dtype=torch.bfloat16)
        return dx, dw


class Fp8Linear(nn.Linear):
    def forward(self, x):
        y = Fp8Product.apply(x.flatten(0, -2).bfloat16(), self.weight.bfloat16())
        return y.view(*x.shape[:-1], -1)


job = start()
model = Transformer(layers=2)
for block in model.blocks:
    for module in (block.attention, block.feed_forward):
        for name, child in list(module.named_children()):
            module.add_module(name, Fp8Linear(child.in_features, child.out_features, bias=False))
model.to(job.device)
train(job, model, torch.optim.AdamW(model.parameters(), lr=1e-4, fused=True))
finish(job)
