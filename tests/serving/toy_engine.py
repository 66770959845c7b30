"""An OpenAI-compatible server without a model: a prompt takes 50 ms, a token 10 ms, at most four requests at a time.

It answers like the engines do (server-sent events, chunked), so that clients can be tested without vLLM."""

import asyncio
import json
import sys

PROMPT_S, TOKEN_S, SLOTS = 0.05, 0.01, 4


async def chunk(writer, text):
    data = text.encode()
    writer.write(f"{len(data):x}\r\n".encode() + data + b"\r\n")
    await writer.drain()


async def complete(writer, body, slots):
    if len(body["prompt"]) > 4096:
        text = json.dumps({"error": {"message": "the prompt is longer than the model's context"}})
        writer.write(f"HTTP/1.1 400 Bad Request\r\nContent-Length: {len(text)}\r\n\r\n{text}".encode())
        return
    writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n")
    async with slots:
        await asyncio.sleep(PROMPT_S)
        for number in range(body["max_tokens"]):
            if number:
                await asyncio.sleep(TOKEN_S)
            await chunk(writer, 'data: {"choices": [{"index": 0, "text": "t0 "}]}\n\n')
    usage = {"prompt_tokens": len(body["prompt"]), "completion_tokens": body["max_tokens"]}
    await chunk(writer, f"data: {json.dumps({'choices': [], 'usage': usage})}\n\n")
    await chunk(writer, "data: [DONE]\n\n")
    writer.write(b"0\r\n\r\n")


def plain(writer, status, text):
    writer.write(f"HTTP/1.1 {status}\r\nContent-Length: {len(text)}\r\n\r\n{text}".encode())


async def serve(port, slow_start):
    slots, begin = asyncio.Semaphore(SLOTS), asyncio.get_running_loop().time()
    answered = [0]  # shown as preemptions, so that a load has as many as requests

    async def client(reader, writer):
        try:
            words = (await reader.readline()).decode().split()
            size = 0
            while line := (await reader.readline()).strip():
                if line.lower().startswith(b"content-length:"):
                    size = int(line.split(b":")[1])
            body = json.loads(await reader.readexactly(size)) if size else {}
            if words[1] == "/health":
                ready = asyncio.get_running_loop().time() - begin > slow_start
                plain(writer, "200 OK" if ready else "503 Service Unavailable", "")
            elif words[1] == "/v1/models":
                plain(writer, "200 OK", json.dumps({"data": [{"id": "toy"}]}))
            elif words[1] == "/metrics":
                plain(writer, "200 OK", 'vllm:num_preemptions_total{engine="0"} %d.0\n' % answered[0])
            elif words[1] == "/v1/completions":
                answered[0] += 1
                await complete(writer, body, slots)
            await writer.drain()
        finally:
            writer.close()

    server = await asyncio.start_server(client, "127.0.0.1", port)
    async with server:
        await server.serve_forever()


if __name__ == "__main__":
    if "--fail" in sys.argv:
        sys.exit("toy engine: the model does not fit")
    try:
        asyncio.run(serve(int(sys.argv[sys.argv.index("--port") + 1]), slow_start=2.0))
    except KeyboardInterrupt:
        pass
