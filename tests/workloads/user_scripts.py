"""Training scripts as people write them for one machine, each with something that a plain loop does not have."""

import argparse

import torch
import torch.nn as nn
import torch.nn.functional as F

JOBS = {}


def job(run):
    JOBS[run.__name__] = run
    return run


def convolutions(*channels: int, transposed: bool = False) -> list[nn.Module]:
    kind = nn.ConvTranspose2d if transposed else nn.Conv2d
    layers: list[nn.Module] = []
    for a, b in zip(channels, channels[1:], strict=False):
        layers += [kind(a, b, 4, 2, 1, bias=False), nn.BatchNorm2d(b), nn.LeakyReLU(0.2, inplace=True)]
    return layers


@job
def adversarial():
    """A generator and a critic with an optimizer each, three backward passes in a step."""
    generator = nn.Sequential(nn.ConvTranspose2d(100, 256, 4), *convolutions(256, 128, 64, transposed=True),
                              nn.ConvTranspose2d(64, 3, 4, 2, 1), nn.Tanh()).cuda()
    critic = nn.Sequential(*convolutions(3, 64, 128, 256), nn.Conv2d(256, 1, 4), nn.Sigmoid()).cuda()
    optimizers = [torch.optim.Adam(m.parameters(), 2e-4, (0.5, 0.999)) for m in (critic, generator)]
    for _ in range(6):
        real = torch.randn(64, 3, 32, 32).cuda()
        yes = torch.ones(64, device="cuda")
        critic.zero_grad()
        F.binary_cross_entropy(critic(real).view(-1), yes).backward()
        fake = generator(torch.randn(64, 100, 1, 1, device="cuda"))
        F.binary_cross_entropy(critic(fake.detach()).view(-1), 0 * yes).backward()
        optimizers[0].step()
        generator.zero_grad()
        F.binary_cross_entropy(critic(fake).view(-1), yes).backward()
        optimizers[1].step()


class Spectral(nn.Module):
    """A layer of a Fourier neural operator: complex weights on the lowest frequencies."""

    def __init__(self, width: int, modes: int):
        super().__init__()
        self.modes = modes
        self.weights = nn.Parameter(torch.randn(width, width, modes, modes, dtype=torch.cfloat) / width)
        self.beside = nn.Conv2d(width, width, 1)

    def forward(self, x):
        spectrum = torch.fft.rfft2(x)
        low = torch.zeros_like(spectrum)
        m = self.modes
        low[:, :, :m, :m] = torch.einsum("bixy,ioxy->boxy", spectrum[:, :, :m, :m], self.weights)
        return F.gelu(torch.fft.irfft2(low, s=x.shape[-2:]) + self.beside(x))


@job
def fourier():
    model = nn.Sequential(nn.Conv2d(3, 32, 1), Spectral(32, 12), Spectral(32, 12), nn.Conv2d(32, 1, 1)).cuda()
    optimizer = torch.optim.Adam(model.parameters(), 1e-3)
    for _ in range(5):
        x, y = torch.randn(8, 3, 128, 128).cuda(), torch.randn(8, 1, 128, 128).cuda()
        optimizer.zero_grad()
        (model(x) - y).pow(2).mean().backward()
        optimizer.step()


@job
def replicas():
    """nn.DataParallel: replicas of the model in threads of one process."""
    model = nn.DataParallel(nn.Sequential(*convolutions(3, 32, 64), nn.Flatten(), nn.Linear(64 * 64, 10)).cuda())
    optimizer = torch.optim.SGD(model.parameters(), 0.1, momentum=0.9)
    for _ in range(5):
        x, y = torch.randn(64, 3, 32, 32), torch.randint(10, (64,)).cuda()
        optimizer.zero_grad()
        F.cross_entropy(model(x.cuda()), y).backward()
        optimizer.step()


@torch.jit.script
def bias_gelu(x, bias):
    y = x + bias
    return y * 0.5 * (1.0 + torch.tanh(0.79788456 * y * (1 + 0.044715 * y * y)))


class Scripted(nn.Module):
    def __init__(self, width: int):
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.up, self.down = nn.Linear(width, 4 * width, bias=False), nn.Linear(4 * width, width)
        self.bias = nn.Parameter(torch.zeros(4 * width))

    def forward(self, x):
        return x + self.down(bias_gelu(self.up(self.norm(x)), self.bias))


@job
def scripted():
    """Functions that TorchScript fuses: their kernels are compiled from source at run time."""
    model = nn.Sequential(Scripted(512), Scripted(512)).cuda().bfloat16()
    optimizer = torch.optim.AdamW(model.parameters(), 1e-4, fused=True)
    for _ in range(8):
        model(torch.randn(2048, 512, device="cuda", dtype=torch.bfloat16)).float().pow(2).mean().backward()
        optimizer.step()
        optimizer.zero_grad()


@job
def private():
    """Per-sample gradients with torch.func, clipped one by one; no optimizer."""
    from torch.func import functional_call, grad, vmap

    model = nn.Sequential(nn.Conv2d(1, 16, 3), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.LazyLinear(10)).cuda()
    model(torch.zeros(1, 1, 28, 28, device="cuda"))
    parameters = dict(model.named_parameters())

    def loss(p, x, y):
        return F.cross_entropy(functional_call(model, p, (x[None],)), y[None])

    each = vmap(grad(loss), in_dims=(None, 0, 0))
    for _ in range(6):
        x, y = torch.randn(64, 1, 28, 28).cuda(), torch.randint(10, (64,)).cuda()
        gradients = each(parameters, x, y)
        norm = torch.stack([g.flatten(1).norm(dim=1) for g in gradients.values()]).norm(dim=0).clamp(min=1)
        with torch.no_grad():
            for name, p in parameters.items():
                p -= 0.1 * (gradients[name] / norm.view(-1, *[1] * p.dim())).mean(0)


@job
def sharpness():
    """Sharpness-aware minimization: two backward passes an update, a scaler, an average, evaluations between."""
    model = nn.Sequential(*convolutions(3, 32, 64), nn.Flatten(), nn.Linear(64 * 64, 10)).cuda()
    average = torch.optim.swa_utils.AveragedModel(model)
    optimizer = torch.optim.SGD(model.parameters(), 0.1, momentum=0.9)
    scaler = torch.amp.GradScaler()
    for step in range(8):
        x, y = torch.randn(32, 3, 32, 32).cuda(), torch.randint(10, (32,)).cuda()
        moved = []
        for second in (False, True):
            with torch.autocast("cuda", torch.float16):
                loss = F.cross_entropy(model(x), y)
            scaler.scale(loss).backward()
            with torch.no_grad():
                for p in [] if second else model.parameters():
                    moved.append((p, 0.05 * p.grad / (p.grad.norm() + 1e-12)))
                    p.add_(moved[-1][1])
            if not second:
                optimizer.zero_grad()
        with torch.no_grad():
            for p, by in moved:
                p.sub_(by)
        scaler.step(optimizer)
        scaler.update()
        optimizer.zero_grad()
        average.update_parameters(model)
        if step % 3 == 2:
            model.eval()
            with torch.no_grad():
                print(model(torch.randn(64, 3, 32, 32).cuda()).argmax(1).float().mean().item())
            model.train()


@job
def converging():
    """A network for a differential equation: derivatives of derivatives, then L-BFGS."""
    model = nn.Sequential(nn.Linear(2, 128), nn.Tanh(), nn.Linear(128, 128), nn.Tanh(), nn.Linear(128, 1)).cuda()
    at = torch.rand(4096, 2, device="cuda", requires_grad=True)

    def loss():
        u = model(at)
        du = torch.autograd.grad(u.sum(), at, create_graph=True)[0]
        ddu = torch.autograd.grad(du[:, 0].sum(), at, create_graph=True)[0]
        return (du[:, 1] + u[:, 0] * du[:, 0] - 0.01 * ddu[:, 0]).pow(2).mean()

    optimizer = torch.optim.LBFGS(model.parameters(), max_iter=20, line_search_fn="strong_wolfe")

    def closure():
        optimizer.zero_grad()
        value = loss()
        value.backward()
        return value

    for _ in range(6):
        optimizer.step(closure)


parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("job", choices=JOBS)
JOBS[parser.parse_args().job]()
torch.cuda.synchronize()
print("done")
