"""Fifty threads make a thousand timed waits of every kind. Prints what went wrong: a wait that took another time than
asked for, or one that ended before another with an earlier deadline."""

import os
import queue
import random
import select
import socket
import sys
import threading
import time

import libc_waits

THREADS, ROUNDS = 50, 20
TOLERANCE = 0.025  # processor time of the interpreter, while fifty threads start at once


def kinds():
    lock = threading.Lock()
    lock.acquire()
    condition, event, items = threading.Condition(), threading.Event(), queue.Queue()
    reader, writer = os.pipe()
    poll, epoll = select.poll(), select.epoll()
    poll.register(reader, select.POLLIN)
    epoll.register(reader, select.EPOLLIN)
    ends = socket.socketpair()

    def conditioned(t):
        with condition:
            condition.wait(t)

    def queued(t):
        try:
            items.get(timeout=t)
        except queue.Empty:
            pass

    def received(t):
        ends[0].settimeout(t)
        try:
            ends[0].recv(1)
        except TimeoutError:
            pass

    return [time.sleep, lambda t: lock.acquire(timeout=t), conditioned, event.wait, queued, received,
            lambda t: select.select([reader], [], [], t), lambda t: poll.poll(t * 1000), lambda t: epoll.poll(t),
            *libc_waits.kinds()]


def main():
    threading.stack_size(1 << 18)
    mutex, log, wrong, ready = threading.Lock(), [], [], threading.Barrier(THREADS)

    def work(number):
        rng, waits = random.Random(number), kinds()
        ready.wait()
        for k in range(ROUNDS):
            duration = rng.randrange(1, 40) * 0.1 + number * 0.0005
            wait = waits[(number + k) % len(waits)]
            before = time.monotonic()
            wait(duration)
            after = time.monotonic()
            with mutex:
                log.append((before + duration, after))
                if not -0.002 < after - before - duration < TOLERANCE:
                    wrong.append(f"thread {number}, wait {k}: {after - before:.4f} s instead of {duration:.4f}")

    threads = [threading.Thread(target=work, args=(i,)) for i in range(THREADS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for (deadline, _), (later, _) in zip(log, log[1:]):
        if deadline > later + TOLERANCE:
            wrong.append(f"a wait until {deadline:.4f} ended before one until {later:.4f}")
    print(f"{len(log)} waits, {len(wrong)} wrong")
    for line in wrong[:10]:
        print(line)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
