"""torch.profiler switched on with a schedule, as a user does to look at a few steps."""

import os
import tempfile

import torch
from common import Transformer, finish, loss_of, start, tokens_for
from torch.profiler import ProfilerActivity, profile, record_function, schedule

job = start()
model = Transformer(layers=2).to(job.device)
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, fused=True)
traces = []
with tempfile.TemporaryDirectory() as folder:
    def save(profiler):
        path = os.path.join(folder, "trace.json")
        profiler.export_chrome_trace(path)
        traces.append(os.path.getsize(path))

    with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA],
                 schedule=schedule(wait=1, warmup=1, active=2), on_trace_ready=save) as profiler:
        for step in range(5):
            tokens, targets = tokens_for(job, 2, 256, 8192)
            with record_function("forward"), torch.autocast("cuda", dtype=torch.bfloat16):
                loss = loss_of(model(tokens), targets)
            loss.backward()
            optimizer.step()
            optimizer.zero_grad()
            profiler.step()
assert traces and traces[0] > 1000, traces
finish(job)
