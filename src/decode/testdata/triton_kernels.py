#!/usr/bin/env python3
"""Makes the PTX of ptx_test.cpp: TRITON_DISABLE_LINE_INFO=1 python triton_kernels.py OUT (needs triton, no GPU)."""
import re
import sys

import triton
import triton.language as tl
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource


@triton.jit
def add(x, y, o, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    m = i < n
    tl.store(o + i, tl.load(x + i, mask=m) + tl.load(y + i, mask=m), mask=m)


@triton.jit
def weighted_sum(x, w, o, xnumel, rnumel, XB: tl.constexpr, RB: tl.constexpr):
    xi = tl.program_id(0) * XB + tl.arange(0, XB)[:, None]
    xm = xi < xnumel
    acc = tl.zeros((XB, RB), tl.float32)
    for r in range(0, rnumel, RB):
        ri = r + tl.arange(0, RB)[None, :]
        rm = ri < rnumel
        a = tl.load(x + xi * rnumel + ri, mask=xm & rm, other=0.0).to(tl.float32)
        acc += a * tl.load(w + ri, mask=rm, other=0.0)
    tl.store(o + xi, tl.sum(acc, 1)[:, None], mask=xm)


@triton.jit
def gather(o, table, index, cols, BLOCK: tl.constexpr):
    row = tl.load(index + tl.program_id(0))
    c = tl.arange(0, BLOCK)
    tl.store(o + tl.program_id(0) * cols + c, tl.load(table + row * cols + c, mask=c < cols), mask=c < cols)


@triton.jit
def matmul(a, b, c, M, N, K, sam, sbk, scm, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    pm = tl.program_id(0)
    pn = tl.program_id(1)
    om = (pm * BM + tl.arange(0, BM)) % M
    on = (pn * BN + tl.arange(0, BN)) % N
    ok = tl.arange(0, BK)
    ap = a + om[:, None] * sam + ok[None, :]
    bp = b + ok[:, None] * sbk + on[None, :]
    acc = tl.zeros((BM, BN), tl.float32)
    for k in range(0, tl.cdiv(K, BK)):
        x = tl.load(ap, mask=ok[None, :] < K - k * BK, other=0.0)
        y = tl.load(bp, mask=ok[:, None] < K - k * BK, other=0.0)
        acc = tl.dot(x, y, acc)
        ap += BK
        bp += BK * sbk
    cm = pm * BM + tl.arange(0, BM)
    cn = pn * BN + tl.arange(0, BN)
    tl.store(c + cm[:, None] * scm + cn[None, :], acc.to(tl.bfloat16), mask=(cm[:, None] < M) & (cn[None, :] < N))


@triton.jit
def causal(q, k, v, o, S, scale, D: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr):
    pm = tl.program_id(0)
    h = tl.program_id(1)
    om = pm * BM + tl.arange(0, BM)
    od = tl.arange(0, D)
    on = tl.arange(0, BN)
    qq = tl.load(q + h * S * D + om[:, None] * D + od[None, :])
    m = tl.full((BM,), -1e30, tl.float32)
    l = tl.zeros((BM,), tl.float32)
    acc = tl.zeros((BM, D), tl.float32)
    for n in range(0, (pm + 1) * BM, BN):
        kk = tl.load(k + h * S * D + (n + on)[None, :] * D + od[:, None])
        s = tl.dot(qq, kk) * scale
        s = tl.where(om[:, None] >= (n + on)[None, :], s, -1e30)
        mn = tl.maximum(m, tl.max(s, 1))
        p = tl.exp(s - mn[:, None])
        alpha = tl.exp(m - mn)
        l = l * alpha + tl.sum(p, 1)
        acc = acc * alpha[:, None]
        vv = tl.load(v + h * S * D + (n + on)[:, None] * D + od[None, :])
        acc = tl.dot(p.to(tl.bfloat16), vv, acc)
        m = mn
    tl.store(o + h * S * D + om[:, None] * D + od[None, :], (acc / l[:, None]).to(tl.bfloat16))


HALF, FLOAT = "*bf16", "*fp32"
CASES = [
    (add, {"x": FLOAT, "y": FLOAT, "o": FLOAT, "n": "i32"}, {"BLOCK": 1024}, 4, (80,)),
    (weighted_sum, {"x": HALF, "w": FLOAT, "o": FLOAT, "xnumel": "i32", "rnumel": "i32"}, {"XB": 4, "RB": 128}, 4, (80,)),
    (gather, {"o": FLOAT, "table": FLOAT, "index": "*i64", "cols": "i32"}, {"BLOCK": 512}, 4, (80,)),
    (matmul, {"a": HALF, "b": HALF, "c": HALF, "M": "i32", "N": "i32", "K": "i32", "sam": "i32", "sbk": "i32", "scm": "i32"},
     {"BM": 64, "BN": 64, "BK": 32}, 4, (80, 90, 100)),
    (causal, {"q": HALF, "k": HALF, "v": HALF, "o": HALF, "S": "i32", "scale": "fp32"}, {"D": 32, "BM": 64, "BN": 32}, 4, (80,)),
]

for function, types, constants, warps, capabilities in CASES:
    signature = dict(types, **{c: "constexpr" for c in constants})
    aligned = {(i,): [["tt.divisibility", 16]] for i, (n, t) in enumerate(signature.items())
               if t.startswith("*") or n in ("K", "S", "sam", "sbk", "scm")}
    for capability in capabilities:
        source = ASTSource(fn=function, signature=signature, constexprs=constants, attrs=aligned)
        compiled = triton.compile(source, target=GPUTarget("cuda", capability, 32), options={"num_warps": warps})
        text = re.sub(r"[ \t]*//[^\n]*", "", compiled.asm["ptx"])
        text = re.sub(r"\n\s*\n+", "\n", text[: text.rindex("\n}") + 3])
        with open(f"{sys.argv[1]}/{function.__name__}_{capability}.ptx", "w") as file:
            file.write(text)
