#!/usr/bin/env python3
"""Stands in for the `maya` program in tests of the search: answers from a formula in milliseconds.

The formula has the structure of a transformer under tensor, pipeline and data parallelism: products that grow more
efficient with the micro-batch, collectives inside and between nodes, the bubble of the pipeline, recomputation, and
memory that decides what fits.
"""
import json
import os
import pathlib
import sys
import time

LAYERS, HIDDEN, LENGTH, VOCABULARY = 32, 4096, 2048, 51200
CLUSTERS = {"dgx-h100": ("h100-sxm", 8, 2.99, 450.0), "dgx-a100": ("a100-80gb-sxm", 8, 1.79, 300.0),
            "p4d": ("a100-40gb-sxm", 8, 1.5, 300.0), "h100-sxm": ("h100-sxm", 1, 2.99, 450.0)}
GPUS = {"h100-sxm": (989e12, 80), "a100-80gb-sxm": (312e12, 80), "a100-40gb-sxm": (312e12, 40)}


def option(words, name, default, kind=int):
    return kind(words[words.index(name) + 1]) if name in words else default


def predict(words, cluster, settings, slack=0.0):
    name, _, nodes = cluster.partition(":")
    gpu, per_node, price, nvlink = CLUSTERS[name]
    peak, capacity_gib = GPUS[gpu]
    world = option(words, "--world", 8)
    tp, pp, micro = option(words, "--tp", 1), option(words, "--pp", 1), option(words, "--micro", 1)
    batch, vpp = option(words, "--batch", 64), option(words, "--vpp", 1)
    layers = option(words, "--layers", LAYERS)
    zero = option(words, "--zero", 0)
    recompute = option(words, "--recompute", "none", str)
    sequence = "--sp" in words
    dp = world // (tp * pp)
    accumulation = batch // (dp * micro)
    nic = float(settings.get("network.nic_gbps", 50))
    parameters = 12 * layers * HIDDEN**2 + 2 * VOCABULARY * HIDDEN
    tokens = batch * LENGTH
    flops = 6 * parameters * tokens * {"none": 1.0, "selective": 1.03, "full": 4 / 3}[recompute]
    # Small products are less efficient: few rows per GPU, narrow shards.
    efficiency = 0.72 * (micro * LENGTH / (micro * LENGTH + 900)) * (1 - 0.035 * (tp.bit_length() - 1))
    gemm = flops / (world * peak * efficiency) * 1000
    memory_bound = (
        0.16 * gemm * (1 if sequence or tp == 1 else 1 + 0.05 * (tp.bit_length() - 1)) * (1 if tp == 1 else 1.02)
    )
    volume = 4 * layers / pp * accumulation * micro * LENGTH * HIDDEN * 2 * 2 * (tp - 1) / tp
    inside = volume / ((nvlink if tp <= per_node else nic) * 0.75e9) * 1000
    between = 2 * (parameters / (tp * pp)) * 2 * (dp - 1) / max(dp, 1) / (nic * 0.8e9) * 1000 * (
        1 if world > per_node else 0.12) * (0.5 if zero < 3 else 0.9)
    bubble = (gemm + memory_bound + inside) * (pp - 1) / (accumulation * vpp) if pp > 1 else 0.0
    host = 0.4 * layers / pp * accumulation * 0.03
    messages = (pp > 1) * accumulation * vpp * micro * LENGTH * HIDDEN * 2 / tp / (nic * 0.8e9) * 1000 * 0.3
    parts = {"gemm": gemm, "pointwise": memory_bound, "communication within a node": inside,
             "communication between nodes": between, "messages": messages, "waiting": bubble, "host": host}
    step = sum(parts.values())
    state = parameters / (tp * pp) * (2 + (2 if zero < 2 else 2 / dp) + (12 if zero < 1 else 12 / dp))
    if zero >= 3:
        state = parameters / (tp * pp) * 16 / dp + 2e9
    held = min(accumulation, pp) if pp > 1 else 1
    activation = layers / pp * micro * LENGTH * HIDDEN * {"none": 34, "selective": 24, "full": 2.5}[recompute]
    activation = activation * held / (tp if sequence else 1 + 0.6 * (tp - 1))
    memory = int(state + activation + micro * LENGTH * VOCABULARY * 6 / tp + 1.5e9)
    capacity = int(capacity_gib * 2**30 * 0.99)
    prediction = {
        "version": 1,
        "world_size": world,
        "gpus": world,
        "cluster": cluster,
        "gpu": gpu,
        "step": {"ms": step, "low_ms": 0.93 * step, "high_ms": 1.07 * step, "count": 3, "found_by": "optimizer"},
        "breakdown_ms": {
            "compute": gemm + memory_bound,
            "communication": inside + between,
            "exposed_communication": inside,
            "copy": 0.0,
            "idle": bubble + host,
            "host_bound": host,
        },
        "flops_per_step": flops,
        "mfu": flops / (step / 1000 * world * peak),
        "mfu_dtype": "bf16",
        "throughput": {"unit": "tokens", "per_step": tokens, "per_second": tokens / step * 1000, "found_by": "loss"},
        "memory": [{"rank": 0, "peak_bytes": memory, "reserved_bytes": memory, "capacity_bytes": capacity}],
        "out_of_memory": None,
        "cost": {"usd_per_gpu_hour": price, "usd_per_step": price * world * step / 3.6e6, "source": "test"},
        "coverage": {"measured": 0, "fitted": 1, "first_principles": 0, "unknown": 0},
        "largest_costs": [],
        "ops": [
            {"kind": "gemm", "name": "mm", "sizes": f"m={micro * LENGTH} n={HIDDEN // tp}", "ms": gemm},
            {"kind": "pointwise", "name": "gelu", "sizes": f"{micro}", "ms": memory_bound},
        ],
        "families": [
            {"family": f, "ms": ms, "low_ms": 0.94 * ms, "high_ms": 1.06 * ms} for f, ms in parts.items() if ms
        ],
        "common_error": 0.03,
        "notes": [],
    }
    if capacity < memory <= (1 + slack) * capacity:
        prediction["out_of_memory"] = {"rank": 0, "requested_bytes": memory - capacity, "in_use_bytes": capacity,
                                       "capacity_bytes": capacity, "during_run": False}
    elif memory > capacity:
        prediction["step"] = None
        prediction["out_of_memory"] = {"rank": 0, "requested_bytes": memory - capacity + 2**28,
                                       "in_use_bytes": capacity - 2**28, "capacity_bytes": capacity, "during_run": True}
    return prediction


def serve(words, command):
    """What a client of an engine sees: sequences that run at once raise throughput and the time of a token; requests
    that come faster than they are served wait."""
    cluster = option(words, "--cluster", "h100-sxm", str)
    load = {word.partition("=")[0]: word.partition("=")[2] for word in words if "=" in word and word[0] != "-"}
    tp, sequences = option(command, "-tp", 1), option(command, "--max-num-seqs", 64)
    output, requests = int(load["output"]), int(load["requests"])
    tpot = (20.0 / tp**0.7) * (1 + sequences / 128)
    most = sequences / (output * tpot / 1000)  # requests a second

    def figures(rate):
        served = min(rate, most)
        ttft = 40.0 if rate <= most else 40.0 + 1000 * requests * (1 / most - 1 / rate)
        spread = {share: factor for share, factor in (("mean", 1.0), ("p50", 1.0), ("p90", 1.2), ("p95", 1.3),
                                                      ("p99", 1.5))}
        found = {"load": f"{rate:g}", "requests": requests, "completed": requests, "failed": 0,
                 "requests_per_second": served, "output_tokens_per_second": served * output,
                 "total_tokens_per_second": served * (output + int(load["input"]))}
        for name, ms in (("ttft_ms", ttft), ("tpot_ms", tpot), ("itl_ms", tpot), ("e2e_ms", ttft + output * tpot)):
            found[name] = {share: factor * ms for share, factor in spread.items()}
        return found

    serving = {"model": "m", "loads": [figures(float(load["rate"]))]}
    if "--fails" in command:
        serving["loads"][0] |= {"failed": 3, "problems": ["400 Bad Request"]}
    if "--capacity" in words:
        limit = float(option(words, "--capacity", "", str).partition("p99_ttft<")[2].removesuffix("ms"))
        points = [{"rate": rate, **figures(rate)} for rate in (1, 2, 4, 8, 16, 32, 64, 128)]
        for point in points:
            point["kept"] = point["ttft_ms"]["p99"] <= limit
        serving["capacity"] = {"limit": f"p99_ttft<{limit:g}ms", "limited": True, "points": points,
                               "rate": max((p["rate"] for p in points if p["kept"]), default=0)}
    return predict(["--world", str(tp)], cluster, {}) | {"step": None, "gpus": tp, "serving": serving, "families": []}


def main():
    words = sys.argv[1:]
    if words[:2] == ["run", "--help"]:
        print("--cluster --out --ranks --stop-after --no-report --memory-slack --set")
        return 0
    if words[0] == "clusters":
        name, _, nodes = words[1].partition(":")
        if name not in CLUSTERS:
            print(f"maya: unknown cluster '{name}'", file=sys.stderr)
            return 1
        gpu, per_node, price, _ = CLUSTERS[name]
        print(json.dumps({"name": name, "gpu": gpu, "gpus_per_node": per_node, "nodes": int(nodes or 1),
                          "usd_per_gpu_hour": price}))
        return 0
    if words[0] == "gpus":
        print(json.dumps([{"name": n, "peak_tflops": {"bf16": p / 1e12}} for n, (p, _) in GPUS.items()]))
        return 0
    settings = dict(w.split("=", 1) for before, w in zip(words, words[1:]) if before == "--set")
    cluster = option(words, "--cluster", "dgx-h100", str)
    log = os.environ.get("FAKE_LOG")
    if log:
        with open(log, "a") as file:
            file.write(json.dumps(words) + "\n")
    if words[0] == "predict":
        command = json.loads((pathlib.Path(words[1]) / "command").read_text())
        pathlib.Path(option(words, "--out", "", str)).write_text(json.dumps(predict(command, cluster, settings)))
        return 0
    command = words[words.index("--") + 1:]
    if words[0] == "serve-bench":
        if option(command, "--max-num-seqs", 64) > 1000:
            print("ValueError: No available memory for the cache blocks. Try increasing gpu_memory_utilization.")
            return 1
        out = pathlib.Path(option(words, "--out", "", str))
        (out / "caches").mkdir(parents=True)
        (out / "prediction.json").write_text(json.dumps(serve(words[:words.index("--")], command)))
        return 1 if "--fails" in command else 0
    time.sleep(float(os.environ.get("FAKE_SECONDS", "0")))
    if "--hang" in command:
        print("loading", flush=True)
        os.system("trap 'echo killed; exit' TERM; sleep 1000 & wait")
    if "--unknown-flag" in command:
        print("usage: train.py\ntrain.py: error: unrecognized arguments: --unknown-flag", file=sys.stderr)
        return 2
    if "--crash" in command:
        print("Traceback (most recent call last):\n  File \"train.py\", line 3\n[rank0]: ValueError: heads 12 % tp 5",
              file=sys.stderr)
        return 1
    out = pathlib.Path(option(words, "--out", "", str))
    out.mkdir(parents=True, exist_ok=True)
    (out / "command").write_text(json.dumps(command))
    (out / "run.toml").write_text("")
    slack = option(words, "--memory-slack", 0.0, float)
    prediction = predict(["--layers", "4"] if "--ignores" in command else command, cluster, settings, slack)
    (out / "prediction.json").write_text(json.dumps(prediction))
    if (prediction["out_of_memory"] or {}).get("during_run"):
        print("torch.OutOfMemoryError: CUDA out of memory.", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
