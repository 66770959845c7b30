"""Starts a serving engine, waits until it answers, runs a load against it and stops it.

    maya run --clock virtual --cluster h100-sxm -- python bench.py [--url URL] ENGINE COMMAND… --load LOAD COMMAND…

Engine and load are in one run and so in one virtual time: what the load measures are the predicted times. Without
`maya run` the same file measures a real engine on a real GPU.
"""

import signal
import subprocess
import sys
import time
import urllib.request


def answers(url):
    try:
        with urllib.request.urlopen(url, timeout=5) as reply:
            return reply.status == 200
    except OSError:
        return False


def main(words):
    url = "http://127.0.0.1:8000/health"
    if words[:1] == ["--url"]:
        url, words = words[1], words[2:]
    if "--load" not in words or words.index("--load") in (0, len(words) - 1):
        sys.exit(__doc__)
    at = words.index("--load")
    engine = subprocess.Popen(words[:at])
    try:
        while not answers(url):
            if engine.poll() is not None:
                sys.exit(f"bench.py: the engine ended with code {engine.returncode} before it answered at {url}")
            time.sleep(1)
        return subprocess.call(words[at + 1:])
    finally:
        engine.send_signal(signal.SIGTERM)
        try:
            engine.wait(60)
        except subprocess.TimeoutExpired:
            engine.kill()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
