"""What a load did over its time, from the client's side: nothing asks the engine while it works, because answering
would take its time."""

from __future__ import annotations

from typing import Any, Sequence

from maya.serve_bench.client import Answer

BINS = 80
MOST_REQUESTS = 1000  # whose own times are kept


def of(answers: Sequence[Answer]) -> dict[str, Any]:
    """By intervals of equal length: output tokens a second, requests that wait for their first token (in the queue or
    in their prompt), requests that get tokens. And the times of each request, in the order they were sent."""
    good = [answer for answer in answers if not answer.problem]
    if not good:
        return {}
    begin = min(answer.sent for answer in good)
    end = max(answer.ended for answer in good)
    if end <= begin:
        return {}
    width = (end - begin) / BINS
    pieces = [0.0] * BINS
    for answer in good:
        # A piece of text may hold several tokens; the answer says how many there were in all.
        tokens = answer.output / len(answer.times) if answer.times else 0.0
        for time in answer.times:
            pieces[min(BINS - 1, int((time - begin) / width))] += tokens
    middles = [begin + (i + 0.5) * width for i in range(BINS)]
    ordered = sorted(good, key=lambda answer: answer.sent)
    return {
        "seconds": width,
        "output_tokens_per_second": [round(count / width, 3) for count in pieces],
        "waiting": [sum(a.sent <= t < a.times[0] for a in good) for t in middles],
        "answered": [sum(a.times[0] <= t < a.ended for a in good) for t in middles],
        "requests": [
            {"sent_s": round(a.sent - begin, 6), "input": a.input, "output": a.output,
             "ttft_ms": round(1e3 * (a.times[0] - a.sent), 3), "e2e_ms": round(1e3 * (a.ended - a.sent), 3)}
            for a in ordered[:MOST_REQUESTS]
        ],
    }
