"""Replays requests with given token ids and arrival times against vLLM's AsyncLLM, and writes their time stamps.

    maya run --clock virtual --cluster rtx4090 -- python replay.py WORKLOAD.jsonl OUT.jsonl --engine '{"model": …}' [--first N]

A line of the workload has `input_tok_ids`, `output_toks` and `arrival_time_ns`. The output has, per request, the figures
that vLLM keeps itself (RequestStateStats): arrival by the wall clock, the others by the engine core's monotonic clock.
Beside it, OUT.engine.json says what the engine decided about its cache.
"""

import argparse
import asyncio
import json
import pathlib
import time


async def request(engine, sampling, number, line, start):
    await asyncio.sleep(max(0.0, start + line["arrival_time_ns"] / 1e9 - time.monotonic()))
    sent = time.monotonic()
    last = first = None
    async for answer in engine.generate(dict(prompt_token_ids=line["input_tok_ids"]), sampling, f"bench-{number}"):
        last = answer
        first = first or time.monotonic()
    stats = last.metrics
    return dict(request_id=f"bench-{number}", input_toks=len(line["input_tok_ids"]),
                output_toks=stats.num_generation_tokens, arrival_time=stats.arrival_time, queued_ts=stats.queued_ts,
                scheduled_ts=stats.scheduled_ts, first_token_ts=stats.first_token_ts, last_token_ts=stats.last_token_ts,
                client_sent=sent, client_first=first, client_last=time.monotonic())


async def replay(engine, lines):
    from vllm import SamplingParams
    from vllm.sampling_params import RequestOutputKind
    start = time.monotonic()
    return await asyncio.gather(*(
        request(engine, SamplingParams(temperature=0.0, max_tokens=line["output_toks"], min_tokens=line["output_toks"],
                                       ignore_eos=True, output_kind=RequestOutputKind.DELTA), number, line, start)
        for number, line in enumerate(lines)))


async def run(options, lines):
    from vllm import AsyncEngineArgs
    from vllm.v1.engine.async_llm import AsyncLLM
    engine = AsyncLLM.from_engine_args(AsyncEngineArgs(**json.loads(options.engine)))
    try:
        began = time.monotonic()
        answers = await replay(engine, lines)
        cache = engine.vllm_config.cache_config
        with open(options.out, "w") as out:
            out.writelines(json.dumps(answer) + "\n" for answer in answers)
        pathlib.Path(options.out).with_suffix(".engine.json").write_text(json.dumps(dict(
            num_gpu_blocks=cache.num_gpu_blocks, block_size=cache.block_size, seconds=time.monotonic() - began)) + "\n")
    finally:
        engine.shutdown()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("workload")
    parser.add_argument("out")
    parser.add_argument("--engine", required=True, help="arguments of vLLM's AsyncEngineArgs as JSON")
    parser.add_argument("--first", type=int, help="only the first N requests")
    options = parser.parse_args()
    with open(options.workload) as text:
        lines = [json.loads(line) for line in text][:options.first]
    asyncio.run(run(options, lines))


if __name__ == "__main__":
    main()
