"""maya profile: measures the op families on a GPU of the user.

Runs matrix products, convolutions, attention, norms, softmax, pointwise ops, embeddings, optimizer steps and copies of
many sizes with torch, times them with CUDA events, and compares them with the models. Writes a calibration file for
`maya run`, `maya predict` and `maya estimate`, like `maya calibrate`. Needs torch and a GPU, and takes a few minutes.
"""
from __future__ import annotations

import argparse
import json
import statistics
import sys

from maya import MayaError, calibrate

SHORT = {"f32": "float32", "tf32": "float32", "f16": "float16", "bf16": "bfloat16"}


class Op:
    """One op to measure: its name in calibrate, and a function that makes the call."""

    def __init__(self, family, words, text, make, exact=True):
        self.family, self.words, self.text, self.make, self.exact = family, words, text, make, exact


def gemms(torch, device):
    shapes = [
        (4096, 4096, 4096),
        (8192, 4096, 1024),
        (2048, 8192, 2048),
        (16384, 768, 3072),
        (16384, 3072, 768),
        (1024, 4096, 14336),
        (8192, 28672, 4096),
        (512, 2048, 8192),
        (12288, 2304, 768),
        (8192, 1280, 5120),
    ]
    for dtype in ("bf16", "f16", "tf32", "f32"):
        if dtype == "bf16" and not torch.cuda.is_bf16_supported():
            continue
        if dtype == "tf32" and torch.cuda.get_device_capability(device)[0] < 8:
            continue
        for m, n, k in shapes if dtype != "f32" else shapes[:6]:
            def make(m=m, n=n, k=k, dtype=dtype):
                torch.backends.cuda.matmul.allow_tf32 = dtype == "tf32"
                a = torch.randn(m, k, device=device, dtype=getattr(torch, SHORT[dtype]))
                b = torch.randn(k, n, device=device, dtype=getattr(torch, SHORT[dtype]))
                return lambda: torch.mm(a, b)
            plain = "f32" if dtype == "tf32" else dtype
            yield Op(
                "gemm.f32" if dtype == "f32" else "gemm.tensor",
                dict(op="gemm", m=m, n=n, k=k, batch=1, dtype=dtype),
                f"gemm m={n} n={m} k={k} a={plain} b={plain} d={plain} compute={dtype}",
                make,
            )


def convolutions(torch, device):
    shapes = [
        (64, 64, 56, 3),
        (256, 64, 56, 1),
        (128, 128, 28, 3),
        (256, 512, 28, 1),
        (256, 256, 14, 3),
        (1024, 256, 14, 1),
        (512, 512, 7, 3),
    ]
    for dtype, layout in (("f16", "nhwc"), ("f16", "nchw"), ("f32", "nchw")):
        for c, k, size, window in shapes:
            def make(c=c, k=k, size=size, window=window, dtype=dtype, layout=layout):
                torch.backends.cudnn.allow_tf32, torch.backends.cudnn.benchmark = False, True
                format = torch.channels_last if layout == "nhwc" else torch.contiguous_format
                x = torch.randn(64, c, size, size, device=device, dtype=getattr(torch, SHORT[dtype])).contiguous(
                    memory_format=format
                )
                w = torch.randn(k, c, window, window, device=device, dtype=x.dtype).contiguous(memory_format=format)
                return lambda: torch.nn.functional.conv2d(x, w, padding=window // 2)
            yield Op(
                "conv.f32" if dtype == "f32" else "conv.tensor",
                dict(
                    op="conv",
                    n=64,
                    c=c,
                    k=k,
                    h=size,
                    w=size,
                    kernel_size=window,
                    padding=window // 2,
                    dtype=dtype,
                    layout=layout,
                ),
                f"conv n=64 c={c} k={k} size={size} window={window} {dtype} {layout}",
                make,
                exact=False,
            )


def attentions(torch, device):
    dtype = "bf16" if torch.cuda.is_bf16_supported() else "f16"
    for batch, heads, length, width in (
        (4, 32, 4096, 128),
        (1, 32, 8192, 128),
        (8, 16, 2048, 64),
        (16, 12, 1024, 64),
        (2, 16, 16384, 64),
        (8, 32, 1024, 128),
    ):

        def make(batch=batch, heads=heads, length=length, width=width):
            q, k, v = (
                torch.randn(batch, heads, length, width, device=device, dtype=getattr(torch, SHORT[dtype]))
                for _ in range(3)
            )
            return lambda: torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)

        yield Op(
            "attention",
            dict(op="attention", batch=batch, heads=heads, seq=length, head_dim=width, causal=1, dtype=dtype),
            f"attention batch={batch} heads={heads} seq={length} head_dim={width}",
            make,
            exact=False,
        )


def rows_and_columns(torch, device):
    dtypes = ("f32", "bf16" if torch.cuda.is_bf16_supported() else "f16")
    for dtype in dtypes:
        for rows, cols in ((8192, 4096), (16384, 2048), (32768, 1024), (65536, 768), (4096, 8192), (16384, 5120)):
            def tensor(rows=rows, cols=cols, dtype=dtype):
                return torch.randn(rows, cols, device=device, dtype=getattr(torch, SHORT[dtype]))

            def norm(tensor=tensor, cols=cols):
                x = tensor()
                weight, bias = (
                    torch.ones(cols, device=device, dtype=x.dtype),
                    torch.zeros(cols, device=device, dtype=x.dtype),
                )
                return lambda: torch.nn.functional.layer_norm(x, (cols,), weight, bias)

            def softmax(tensor=tensor):
                x = tensor()
                return lambda: torch.softmax(x, -1)

            def add(tensor=tensor):
                x, y = tensor(), tensor()
                return lambda: x + y

            def gelu(tensor=tensor):
                x = tensor()
                return lambda: torch.nn.functional.gelu(x)

            def sum_(tensor=tensor):
                x = tensor()
                return lambda: x.sum(-1)

            size = calibrate.SIZES[dtype]
            elements = rows * cols
            shape = dict(rows=rows, cols=cols, dtype=dtype)
            yield Op(
                "memory.layer_norm_forward",
                dict(op="layer_norm", **shape),
                f"normalization kind=layer rows={rows} cols={cols} dtype={dtype}",
                norm,
            )
            yield Op(
                "memory.softmax_forward",
                dict(op="softmax", **shape),
                f"softmax rows={rows} cols={cols} in={dtype} out={dtype}",
                softmax,
            )
            for inputs, make in ((2, add), (1, gelu)):
                read, written = elements * size * inputs, elements * size
                yield Op(
                    "memory.pointwise",
                    dict(op="pointwise", elements=elements, bytes_read=read, bytes_written=written, dtype=dtype),
                    f"pointwise elements={elements} bytes_read={read} bytes_written={written} inputs={inputs} "
                    f"dtype={dtype}",
                    make,
                )
            yield Op(
                "memory.reduction", dict(op="sum", **shape), f"sum rows={rows} cols={cols} {dtype}", sum_, exact=False
            )


def optimizers(torch, device):
    for elements in (1 << 24, 1 << 26, 3 << 25, 1 << 25, 5 << 24, 1 << 27):
        def make(elements=elements):
            p = torch.nn.Parameter(torch.zeros(elements, device=device))
            p.grad = torch.zeros_like(p)
            optimizer = torch.optim.AdamW([p], lr=1e-4, fused=True)
            return optimizer.step

        yield Op(
            "memory.optimizer_fused",
            dict(op="adamw", elements=elements, dtype="f32", fused=1),
            f"adamw elements={elements}",
            make,
            exact=False,
        )


FAMILIES = {
    "gemm": gemms,
    "conv": convolutions,
    "attention": attentions,
    "memory": rows_and_columns,
    "optimizer": optimizers,
}


def times_us(torch, call, repeats, calls):
    """Times of one call. Events enclose several consecutive calls, so that the launch of each is hidden by the
    previous."""
    for _ in range(3):
        call()
    torch.cuda.synchronize()
    out = []
    for _ in range(repeats):
        begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        begin.record()
        for _ in range(calls):
            call()
        end.record()
        end.synchronize()
        out.append(1e3 * begin.elapsed_time(end) / calls)
    return out


def measure(torch, device, families, repeats, calls, log):
    samples, skipped = [], []
    for name in families:
        count = 0
        for op in FAMILIES[name](torch, device):
            try:
                sample = calibrate.Sample(op.family, op.words, op.text, op.exact)
                sample.times = times_us(torch, op.make(), repeats, calls)
            except (RuntimeError, NotImplementedError) as error:  # too large for this GPU, or not supported by it
                skipped.append(f"{op.text}: {str(error).splitlines()[0][:100]}")
                continue
            finally:
                torch.cuda.empty_cache()
            if statistics.median(sample.times) > 0:
                samples.append(sample)
                count += 1
        log(f"{name}: {count} ops")
    return samples, skipped


def main(arguments=None):
    parser = argparse.ArgumentParser(
        prog="maya profile", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--gpu", help="name in the catalogue; default: the GPU that the driver reports")
    parser.add_argument("--families", nargs="+", choices=FAMILIES, default=list(FAMILIES))
    parser.add_argument("--repeats", type=int, default=15)
    parser.add_argument("--calls", type=int, default=10, help="calls between two events")
    parser.add_argument("--out", default="maya.calibration")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args(arguments)
    try:
        try:
            import torch
        except ImportError as error:
            raise MayaError(
                f"no torch in {sys.executable} ({error}); name an interpreter that has it with MAYA_PYTHON"
            ) from None
        if not torch.cuda.is_available():
            raise MayaError("no GPU here; run it where one is, and bring the file it writes")
        device = torch.device("cuda", 0)
        marketing = torch.cuda.get_device_name(device)
        gpu = options.gpu or calibrate.catalogue_name(marketing)
        if not gpu:
            raise MayaError(
                f"the catalogue does not know '{marketing}'; name the GPU with --gpu (see `maya gpus`), or add a "
                "TOML file with its data sheet"
            )
        samples, skipped = measure(torch, device, options.families, options.repeats, options.calls,
                                   lambda line: None if options.json else print(line, file=sys.stderr, flush=True))
        if not samples:
            raise MayaError("nothing could be measured: " + "; ".join(skipped[:2]))
        learned = calibrate.learn(samples, calibrate.predict(samples, gpu))
        calibrate.write(options.out, gpu, [f"profiled on {marketing}"], samples, learned, exact=True)
    except MayaError as error:
        print(f"maya: {error}", file=sys.stderr)
        return 1
    if options.json:
        print(json.dumps(dict(gpu=gpu, ops=len(samples), skipped=skipped, families=learned, out=options.out), indent=2))
        return 0
    calibrate.show(learned)
    for line in skipped:
        print(f"skipped {line}")
    print(f"{gpu}: {len(samples)} ops measured; wrote {options.out}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
