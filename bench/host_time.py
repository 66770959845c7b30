"""What emulation adds to the host time of a training step: run by bench/run under `maya run`.

The clock of the device library counts the time its own entry points take (MAYA_MEASURE). Against empty stubs, which
take next to none, a step is longer by no more than that.
"""

import ctypes
import time

import torch
import torch.nn.functional as F

LAYERS, WIDTH, HEADS, LENGTH, BATCH, WARM, STEPS = 24, 2048, 16, 1024, 1, 3, 10


class Block(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second = torch.nn.LayerNorm(WIDTH), torch.nn.LayerNorm(WIDTH)
        self.attention, self.join = torch.nn.Linear(WIDTH, 3 * WIDTH), torch.nn.Linear(WIDTH, WIDTH)
        self.up, self.down = torch.nn.Linear(WIDTH, 4 * WIDTH), torch.nn.Linear(4 * WIDTH, WIDTH)

    def forward(self, x):
        q, k, v = (t.view(BATCH, LENGTH, HEADS, -1).transpose(1, 2) for t in self.attention(self.first(x)).chunk(3, -1))
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).reshape(x.shape)
        x = x + self.join(y)
        return x + self.down(F.gelu(self.up(self.second(x))))


inside = ctypes.CDLL(None).maya_inside_ns
inside.restype = ctypes.c_uint64
with torch.device("cuda"):
    model = torch.nn.Sequential(torch.nn.Embedding(50304, WIDTH), *(Block() for _ in range(LAYERS)),
                                torch.nn.LayerNorm(WIDTH), torch.nn.Linear(WIDTH, 50304))
optimizer = torch.optim.AdamW(model.parameters(), fused=True)
tokens = torch.randint(50304, (BATCH, LENGTH + 1), device="cuda")
host, ours = [], []
for step in range(WARM + STEPS):
    torch.cuda.synchronize()
    began, calls = time.process_time_ns(), inside()
    with torch.autocast("cuda", torch.bfloat16):
        loss = F.cross_entropy(model(tokens[:, :-1]).flatten(0, 1), tokens[:, 1:].flatten())
    loss.backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    optimizer.zero_grad()
    if step >= WARM:
        host.append(time.process_time_ns() - began)
        ours.append(inside() - calls)
best = min(range(STEPS), key=lambda i: host[i])
print(
    f"GPT of {sum(p.numel() for p in model.parameters()) / 1e9:.1f} B parameters, host time of a step "
    f"{host[best] / 1e6:7.2f} ms"
)
print(f"of it inside emulated calls                        {ours[best] / 1e6:7.2f} ms")
print(
    f"against empty stubs, at most                      +{100 * ours[best] / (host[best] - ours[best]):7.2f} %  "
    "(limit 5)"
)
