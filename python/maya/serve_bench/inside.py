"""The part of serve-bench inside of the job's clock: starts the engine, waits for it, runs the loads, ends it.

maya run --clock virtual … -- python -m maya.serve_bench.inside PLAN.json ENGINE COMMAND…

The engine's command stands there and not in a file of ours: `maya run` masks credentials in what it stores of it.
"""

from __future__ import annotations

import asyncio
import json
import os
import pathlib
import pickle
import signal
import subprocess
import sys
import time
from typing import Any

from maya import files
from maya.serve_bench import capacity, client, counters, load, metrics, series

STOP_SECONDS = 60
READY_PATHS = ("/health", "/v1/models")


class EngineEnded(Exception):
    pass


async def ready(server: client.Server, engine: subprocess.Popen) -> None:
    """Until the engine answers. There is no limit on the time: compiling and capturing take as long as they take."""
    path = 0
    while True:
        if engine.poll() is not None:
            raise EngineEnded(f"the engine ended with code {engine.returncode} before it answered")
        try:
            status, _ = await server.get(READY_PATHS[path])
            if status == 200:
                return
            if status == 404 and path + 1 < len(READY_PATHS):
                path += 1
        except (OSError, ValueError):
            pass
        await asyncio.sleep(0.5)


async def counted(server: client.Server) -> dict[str, float]:
    """The engine's counters, where it has a page of them (vLLM; SGLang with --enable-metrics)."""
    try:
        status, page = await server.get("/metrics")
        return counters.read(page.decode(errors="replace")) if status == 200 else {}
    except (OSError, ValueError):
        return {}


async def measure(server: client.Server, model: str, requests: load.Load, plan: dict[str, Any],
                  whole: bool = True) -> dict[str, Any]:
    """`whole`: with its course over time and the engine's counters, which points of a capacity curve do without."""
    before = await counted(server) if whole else {}
    answers = await client.run(server, model, requests)
    slo = metrics.limits(plan["slo"], of_load=False) if plan["slo"] else []
    figures = {"load": requests.text, **metrics.figures(answers, slo)}
    if whole:
        figures["series"] = series.of(answers)
        figures["engine"] = counters.between(before, await counted(server))
    return figures


async def bench(plan: dict[str, Any], loads: list[load.Load], engine: subprocess.Popen) -> dict[str, Any]:
    server = client.Server(plan["url"])
    await ready(server, engine)
    result: dict[str, Any] = {"url": plan["url"], "ready_s": time.monotonic() - plan_began}
    result["model"] = await server.model()
    if plan["warmup"]:
        # The first requests of an engine pay for what it loads late; users of a running engine never see that.
        first = loads[0].requests[: plan["warmup"]]
        await client.run(
            server, result["model"], load.Load(tuple(load.Request(0.0, r.prompt[::-1], r.output) for r in first))
        )
    result["loads"] = [await measure(server, result["model"], each, plan) for each in loads]
    if plan["capacity"]:
        wanted = metrics.limits(plan["capacity"], of_load=True)

        async def point(rate: float) -> tuple[bool, dict[str, Any]]:
            figures = await measure(server, result["model"], load.with_rate(loads[0], rate, plan["seed"]), plan,
                                    whole=False)
            return metrics.meets(figures, wanted), figures

        result["capacity"] = {"limit": plan["capacity"], **await capacity.search(point, plan["first_rate"])}
    return result


def end(engine: subprocess.Popen) -> None:
    if engine.poll() is not None:
        return
    engine.send_signal(signal.SIGINT)
    try:
        engine.wait(STOP_SECONDS)
    except subprocess.TimeoutExpired:
        engine.kill()
        engine.wait()


plan_began = time.monotonic()


def main(path: str, command: list[str]) -> int:
    folder = pathlib.Path(path).parent
    plan = json.loads(pathlib.Path(path).read_text())
    with open(folder / "loads.pickle", "rb") as file:
        loads = pickle.load(file)
    engine = subprocess.Popen(command)
    try:
        result = asyncio.run(bench(plan, loads, engine))
    except (EngineEnded, OSError, ValueError) as problem:
        print(f"maya: {problem}", file=sys.stderr)
        return engine.returncode or 1
    finally:
        end(engine)
    target = pathlib.Path(os.environ["MAYA_RUN_DIR"]) / "serving.json"
    files.write_text(target, json.dumps(result, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2:]))
