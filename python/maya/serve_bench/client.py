"""Sends a load to an OpenAI-compatible server and notes when each token came.

Plain asyncio and HTTP/1.1, so that nothing has to be installed beside the engine. One connection a request, as
benchmark clients of the engines do."""

from __future__ import annotations

import asyncio
import json
import time
import urllib.parse
from dataclasses import dataclass, field

from maya.serve_bench.load import Load, Request


@dataclass
class Answer:
    sent: float  # seconds on the job's clock
    input: int
    output: int = 0  # tokens that came
    times: list[float] = field(default_factory=list)  # when each piece of text came
    ended: float = 0.0
    problem: str = ""
    cached: int = 0  # tokens of the prompt that the engine says it had already


class Server:
    def __init__(self, url: str):
        parts = urllib.parse.urlsplit(url)
        self.host, self.port = parts.hostname or "127.0.0.1", parts.port or 80

    async def open(self, method: str, path: str, body: bytes = b""):
        """Status line read; the reader stands before the body."""
        reader, writer = await asyncio.open_connection(self.host, self.port, limit=1 << 24)
        try:
            head = (
                f"{method} {path} HTTP/1.1\r\nHost: {self.host}:{self.port}\r\nConnection: close\r\n"
                f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
            )
            writer.write(head.encode() + body)
            await writer.drain()
            status = (await reader.readline()).split()
            chunked = False
            while line := (await reader.readline()).strip().lower():
                chunked = chunked or line == b"transfer-encoding: chunked"
            if len(status) < 2:
                raise ConnectionError("the server closed the connection")
            return int(status[1]), Body(reader, chunked), writer
        except BaseException:
            writer.close()
            raise

    async def get(self, path: str) -> tuple[int, bytes]:
        status, body, writer = await self.open("GET", path)
        try:
            return status, await body.rest()
        finally:
            writer.close()

    async def model(self) -> str:
        status, text = await self.get("/v1/models")
        if status != 200:
            raise ConnectionError(f"/v1/models answers with {status}")
        return json.loads(text)["data"][0]["id"]


class Body:
    """The lines of an HTTP body, chunked or up to the end of the connection."""

    def __init__(self, reader: asyncio.StreamReader, chunked: bool):
        self.reader, self.chunked, self.left = reader, chunked, b""

    async def _more(self) -> bytes:
        if not self.chunked:
            return await self.reader.read(1 << 16)
        size = int((await self.reader.readline()).split(b";")[0] or b"0", 16)
        data = await self.reader.readexactly(size)
        await self.reader.readline()
        return data

    async def lines(self):
        while data := await self._more():
            self.left += data
            *whole, self.left = self.left.split(b"\n")
            for line in whole:
                yield line

    async def rest(self) -> bytes:
        parts = [self.left]
        while data := await self._more():
            parts.append(data)
        return b"".join(parts)


async def ask(server: Server, model: str, request: Request) -> Answer:
    answer = Answer(time.monotonic(), len(request.prompt))
    body = json.dumps(
        {
            "model": model,
            "prompt": request.prompt,
            "max_tokens": request.output,
            "temperature": 0.0,
            "ignore_eos": True,
            "stream": True,
            "stream_options": {"include_usage": True},
        }
    ).encode()
    try:
        answer.sent = time.monotonic()
        status, reply, writer = await server.open("POST", "/v1/completions", body)
        try:
            if status != 200:
                answer.problem = f"{status} {(await reply.rest()).decode(errors='replace').strip()[:300]}"
                return answer
            async for line in reply.lines():
                if not line.startswith(b"data:"):
                    continue
                moment, data = time.monotonic(), line[5:].strip()
                if data == b"[DONE]":
                    break
                piece = json.loads(data)
                if usage := piece.get("usage"):
                    answer.output = usage.get("completion_tokens") or answer.output
                    answer.cached = (usage.get("prompt_tokens_details") or {}).get("cached_tokens") or 0
                if "error" in piece:
                    answer.problem = str(piece["error"])[:300]
                elif piece.get("choices"):
                    answer.times.append(moment)
        finally:
            writer.close()
    except (OSError, ValueError, asyncio.IncompleteReadError) as problem:
        answer.problem = str(problem) or type(problem).__name__
    answer.ended = answer.times[-1] if answer.times else time.monotonic()
    if not answer.problem and not answer.times:
        answer.problem = "no token came"
    answer.output = answer.output or len(answer.times)
    return answer


async def run(server: Server, model: str, load: Load) -> list[Answer]:
    """Every request of the load to its end, in the order of the load."""
    begin = time.monotonic()
    if load.concurrency is None:

        async def arrive(request: Request) -> Answer:
            await asyncio.sleep(max(0.0, begin + request.at - time.monotonic()))
            return await ask(server, model, request)

        return list(await asyncio.gather(*(arrive(request) for request in load.requests)))
    answers: list[Answer | None] = [None] * len(load.requests)
    waiting = iter(enumerate(load.requests))

    async def worker() -> None:
        for number, request in waiting:
            answers[number] = await ask(server, model, request)

    await asyncio.gather(*(worker() for _ in range(load.concurrency)))
    return [answer for answer in answers if answer]
