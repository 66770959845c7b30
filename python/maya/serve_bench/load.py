"""What is asked of an engine: requests with their tokens, lengths and arrival times."""

from __future__ import annotations

import csv
import datetime
import json
import math
import pathlib
import random
from dataclasses import dataclass, replace
from typing import Any, Iterable

from maya import MayaError

MOONCAKE_BLOCK = 512  # tokens of a block of the Mooncake traces (their README)
FIRST_TOKEN = 10  # ids below are special tokens in most vocabularies


class BadLoad(MayaError):
    """The load cannot be used; the message says what is wrong and where."""


@dataclass(frozen=True)
class Request:
    at: float  # seconds after the beginning of the load; 0 in a closed loop
    prompt: tuple[int, ...]  # token ids
    output: int  # tokens to generate


@dataclass(frozen=True)
class Load:
    requests: tuple[Request, ...]
    concurrency: int | None = None  # a closed loop: so many requests in flight, arrival times play no part
    text: str = ""  # how it is called in tables


KEYS = {
    "rate": "requests a second; inf sends all at once",
    "arrivals": "fixed or poisson (default) intervals",
    "concurrency": "closed loop with so many requests in flight, in place of a rate",
    "requests": "how many requests (default 100; with a file: the first so many)",
    "input": "tokens of a prompt: a number, or LEAST-MOST",
    "output": "tokens of an answer: a number, or LEAST-MOST",
    "prefix": "tokens at the beginning that all prompts share (default 0)",
    "seed": "of lengths, tokens and arrival times (default 0)",
    "speed": "with a file: how much faster than recorded the requests arrive (default 1)",
    "vocabulary": "token ids are drawn below this number (default 1000)",
}


def parse(words: Iterable[str]) -> Load:
    """`FILE [KEY=VALUE…]` or `KEY=VALUE…`."""
    options: dict[str, str] = {}
    file = None
    for word in words:
        key, equals, value = word.partition("=")
        if equals and key in KEYS:
            options[key] = value
        elif pathlib.Path(word).is_file():
            if file:
                raise BadLoad(f"two files in one load: {file} and {word}")
            file = word
        elif equals:
            raise BadLoad(f"a load has no {key!r}; it has {', '.join(KEYS)}")
        else:
            raise BadLoad(f"no such file: {word}")
    return _of_file(file, options) if file else _synthetic(options)


def with_rate(load: Load, rate: float, seed: int) -> Load:
    """The same requests, arriving at random with this rate."""
    chance = random.Random(seed)
    at, requests = 0.0, []
    for request in load.requests:
        requests.append(replace(request, at=at))
        at += chance.expovariate(rate)
    return Load(tuple(requests), None, f"{rate:g} requests/s, Poisson")


def _number(options: dict[str, str], key: str, default: float, least: float = 0.0) -> float:
    text = options.get(key)
    if text is None:
        return default
    try:
        value = float(text)
    except ValueError:
        raise BadLoad(f"{key}={text}: a number is expected") from None
    if not value >= least or (key != "rate" and math.isinf(value)):
        raise BadLoad(f"{key}={text}: at least {least:g} is expected")
    return value


def _lengths(options: dict[str, str], key: str, default: str) -> tuple[int, int]:
    text = options.get(key, default)
    least, dash, most = text.partition("-")
    try:
        bounds = int(least), int(most if dash else least)
    except ValueError:
        raise BadLoad(f"{key}={text}: a number of tokens or LEAST-MOST is expected") from None
    if bounds[0] < 1 or bounds[1] < bounds[0]:
        raise BadLoad(f"{key}={text}: lengths begin at 1 and LEAST is not above MOST")
    return bounds


def _tokens(chance: random.Random, count: int, vocabulary: int) -> tuple[int, ...]:
    return tuple(chance.choices(range(FIRST_TOKEN, vocabulary), k=count))


def _vocabulary(options: dict[str, str]) -> int:
    return int(_number(options, "vocabulary", 1000, FIRST_TOKEN + 1))


def _synthetic(options: dict[str, str]) -> Load:
    if "speed" in options:
        raise BadLoad("speed= belongs to a file with arrival times")
    count = int(_number(options, "requests", 100, 1))
    inputs, outputs = _lengths(options, "input", "1024"), _lengths(options, "output", "128")
    prefix = int(_number(options, "prefix", 0))
    seed = int(_number(options, "seed", 0))
    chance, vocabulary = random.Random(seed), _vocabulary(options)
    shared = _tokens(random.Random(seed + 1), prefix, vocabulary)
    requests = []
    for _ in range(count):
        length = chance.randint(*inputs)
        requests.append(
            Request(
                0.0, shared[:length] + _tokens(chance, max(0, length - prefix), vocabulary), chance.randint(*outputs)
            )
        )
    return _arrivals(requests, options, chance)


def _arrivals(requests: list[Request], options: dict[str, str], chance: random.Random) -> Load:
    if "concurrency" in options:
        if "rate" in options or "arrivals" in options:
            raise BadLoad("concurrency= is a closed loop and has no rate")
        flight = int(_number(options, "concurrency", 1, 1))
        return Load(tuple(replace(request, at=0.0) for request in requests), flight, f"{flight} in flight")
    kind = options.get("arrivals", "poisson")
    if kind not in ("fixed", "poisson"):
        raise BadLoad(f"arrivals={kind}: fixed or poisson is expected")
    rate = _number(options, "rate", math.inf, 0.0)
    if rate == 0:
        raise BadLoad("rate=0: no request would ever arrive")
    at, placed = 0.0, []
    for request in requests:
        placed.append(replace(request, at=at))
        if not math.isinf(rate):
            at += 1 / rate if kind == "fixed" else chance.expovariate(rate)
    text = "all at once" if math.isinf(rate) else f"{rate:g} requests/s, {kind}"
    return Load(tuple(placed), None, text)


def _of_file(name: str, options: dict[str, str]) -> Load:
    for key in ("input", "output", "prefix"):
        if key in options:
            raise BadLoad(f"{key}= belongs to a load without a file; {name} has its own lengths")
    chance, vocabulary = random.Random(int(_number(options, "seed", 0))), _vocabulary(options)
    try:
        reader = _azure if name.endswith(".csv") else _json_lines
        requests = reader(pathlib.Path(name), chance, vocabulary)
    except (OSError, UnicodeDecodeError) as problem:
        raise BadLoad(f"{name}: {problem}") from None
    if "requests" in options:
        requests = requests[: int(_number(options, "requests", 0, 1))]
    if not requests:
        raise BadLoad(f"{name}: no requests")
    if "rate" in options or "concurrency" in options:
        return _arrivals(requests, options, chance)
    speed = _number(options, "speed", 1.0)
    if speed == 0:
        raise BadLoad("speed=0: no request would ever arrive")
    begin = requests[0].at if name.endswith(".csv") else 0.0
    placed, before = [], 0.0
    for number, request in enumerate(requests, 1):
        at = request.at - begin
        if at < 0:
            raise BadLoad(f"{name}: request {number} arrives at {at:g} s; arrival times are not negative")
        if at < before:
            raise BadLoad(f"{name}: request {number} arrives at {at:g} s, before the one ahead of it ({before:g} s)")
        before = at
        placed.append(replace(request, at=at / speed))
    return Load(tuple(placed), None, pathlib.Path(name).name + (f" × {speed:g}" if speed != 1 else ""))


def _azure(path: pathlib.Path, chance: random.Random, vocabulary: int) -> list[Request]:
    """Azure's LLM inference traces of 2023: TIMESTAMP, ContextTokens, GeneratedTokens."""
    with path.open(newline="") as text:
        rows = csv.DictReader(text)
        wanted = {"TIMESTAMP", "ContextTokens", "GeneratedTokens"}
        if not wanted <= set(rows.fieldnames or ()):
            raise BadLoad(f"{path}: a CSV trace has the columns {', '.join(sorted(wanted))}")
        requests = []
        for line, row in enumerate(rows, 2):
            try:
                stamp = row["TIMESTAMP"].replace("T", " ")
                day, _, fraction = stamp.partition(".")
                moment = datetime.datetime.fromisoformat(day).replace(tzinfo=datetime.timezone.utc).timestamp()
                moment += float("0." + fraction.rstrip("Z")) if fraction else 0.0
                requests.append(
                    _checked(
                        path,
                        line,
                        moment,
                        _tokens(chance, int(row["ContextTokens"]), vocabulary),
                        int(row["GeneratedTokens"]),
                    )
                )
            except (TypeError, ValueError) as problem:
                raise BadLoad(f"{path}, line {line}: {problem}") from None
        return requests


def _json_lines(path: pathlib.Path, chance: random.Random, vocabulary: int) -> list[Request]:
    """One request a line: with token ids, as vLLM's traces have them, or with the block hashes of Mooncake's."""
    blocks: dict[int, tuple[int, ...]] = {}
    requests = []
    with path.open() as text:
        for number, line in enumerate(text, 1):
            if not line.strip():
                continue
            try:
                entry = json.loads(line)
                if not isinstance(entry, dict):
                    raise ValueError("an object is expected")
                prompt, output = _prompt(entry, blocks, chance, vocabulary), _first(entry, OUTPUTS)
                if output is None:
                    raise ValueError(f"the length of the answer is missing: one of {', '.join(OUTPUTS)}")
                requests.append(_checked(path, number, _moment(entry), prompt, int(output)))
            except (TypeError, ValueError) as problem:
                raise BadLoad(f"{path}, line {number}: {problem}") from None
    return requests


OUTPUTS = ("output_toks", "output_length", "output_len", "output_tokens", "max_tokens")
PROMPTS = ("input_tok_ids", "prompt_token_ids", "prompt")
INPUTS = ("input_length", "input_toks", "input_len", "prompt_len", "input_tokens")


def _first(entry: dict[str, Any], names: Iterable[str]) -> Any:
    return next((entry[name] for name in names if entry.get(name) is not None), None)


def _moment(entry: dict[str, Any]) -> float:
    if "arrival_time_ns" in entry:
        return float(entry["arrival_time_ns"]) / 1e9
    if "timestamp" in entry:  # Mooncake and vLLM's timed traces: milliseconds
        return float(entry["timestamp"]) / 1e3
    return float(entry.get("arrival_time", 0.0))


def _prompt(
    entry: dict[str, Any], blocks: dict[int, tuple[int, ...]], chance: random.Random, vocabulary: int
) -> tuple[int, ...]:
    given = _first(entry, PROMPTS)
    if isinstance(given, list):
        return tuple(int(token) for token in given)
    if given is not None:
        raise ValueError("prompts are lists of token ids; this one is text, which has no tokens without a tokenizer")
    length = _first(entry, INPUTS)
    if length is None:
        raise ValueError(f"neither token ids ({', '.join(PROMPTS)}) nor a length ({', '.join(INPUTS)})")
    length, tokens = int(length), []
    for block in entry.get("hash_ids") or ():  # equal blocks have equal tokens: the engine finds its prefixes itself
        if block not in blocks:
            blocks[block] = _tokens(random.Random(f"block {block}"), MOONCAKE_BLOCK, vocabulary)
        tokens.extend(blocks[block])
    tokens.extend(_tokens(chance, max(0, length - len(tokens)), vocabulary))
    return tuple(tokens[:length])


def _checked(path: pathlib.Path, line: int, at: float, prompt: tuple[int, ...], output: int) -> Request:
    if not prompt or output < 1:
        raise ValueError("a request has at least one token in and one out")
    if not math.isfinite(at):
        raise ValueError(f"{at} is not a time")
    return Request(at, prompt, output)
