"""Counters of an engine, from the page that it has for Prometheus. It is read before and after a load: what happened
in between is the load's."""

from __future__ import annotations

import re
from typing import Mapping

_LINE = re.compile(r"([A-Za-z_:][\w:]*)(?:\{[^}]*\})?\s+([0-9.eE+-]+)\s*$")

# Of vLLM and SGLang, under the names of their releases.
COUNTERS: dict[str, tuple[str, ...]] = {
    "preemptions": ("vllm:num_preemptions_total", "vllm:num_preemptions", "sglang:num_retractions_total"),
    "prefix_queries": ("vllm:prefix_cache_queries_total", "vllm:prefix_cache_queries"),
    "prefix_hits": ("vllm:prefix_cache_hits_total", "vllm:prefix_cache_hits", "sglang:cached_tokens_total"),
    "drafted_tokens": ("vllm:spec_decode_num_draft_tokens_total", "vllm:spec_decode_num_draft_tokens"),
    "accepted_tokens": ("vllm:spec_decode_num_accepted_tokens_total", "vllm:spec_decode_num_accepted_tokens"),
}


def read(page: str) -> dict[str, float]:
    """The counters that a page has, summed over engines and labels."""
    seen: dict[str, float] = {}
    for line in page.splitlines():
        if match := _LINE.match(line):
            seen[match[1]] = seen.get(match[1], 0.0) + float(match[2])
    found = {}
    for counter, names in COUNTERS.items():
        value = next((seen[name] for name in names if name in seen), None)
        if value is not None:
            found[counter] = value
    return found


def between(before: Mapping[str, float], after: Mapping[str, float]) -> dict[str, float]:
    return {name: value - before[name] for name, value in after.items() if name in before}
