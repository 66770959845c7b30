"""Things a program may do with time. Each prints a line, and what it took by the program's own clock is checked
here."""

import ctypes
import os
import select
import signal
import subprocess
import sys
import threading
import time

libc = ctypes.CDLL(None, use_errno=True)


def near(took, expected, slack=0.05):
    assert expected - 0.002 <= took <= expected + slack, f"took {took:.4f} s instead of {expected}"


def timed(function):
    begin = time.monotonic()
    function()
    return time.monotonic() - begin


def clocks_agree():
    readings = [time.time(), time.clock_gettime(time.CLOCK_REALTIME), time.time_ns() * 1e-9]
    assert max(readings) - min(readings) < 0.01, readings
    before = time.clock_gettime(time.CLOCK_MONOTONIC), time.clock_gettime(time.CLOCK_BOOTTIME), time.time()
    time.sleep(1000)
    after = time.clock_gettime(time.CLOCK_MONOTONIC), time.clock_gettime(time.CLOCK_BOOTTIME), time.time()
    for a, b in zip(before, after):
        near(b - a, 1000)


def a_clock_loop_ends():
    begin = time.perf_counter()
    while time.perf_counter() - begin < 0.05:
        pass


def fork_in_the_middle():
    reader, writer = os.pipe()
    begin = time.monotonic()
    child = os.fork()
    if child == 0:
        time.sleep(3)
        os.write(writer, f"{time.monotonic():.6f}".encode())
        os._exit(0)
    at = float(os.read(reader, 100))
    near(at - begin, 3)
    near(time.monotonic() - begin, 3)
    os.waitpid(child, 0)


def exec_in_the_middle():
    begin = time.monotonic()
    code = "import time; time.sleep(2); print(time.monotonic())"
    at = float(subprocess.run([sys.executable, "-S", "-c", code], capture_output=True, check=True).stdout)
    near(at - begin, 2, 0.2)
    near(time.monotonic() - begin, 2, 0.3)


def signal_during_a_wait():
    caught = []
    signal.signal(signal.SIGUSR1, lambda *_: caught.append(time.monotonic()))
    begin = time.monotonic()
    threading.Timer(1, lambda: os.kill(os.getpid(), signal.SIGUSR1)).start()
    time.sleep(5)  # goes on after the handler
    near(time.monotonic() - begin, 5)
    near(caught[0] - begin, 1, 0.2)


def absurd_timeouts():
    lock = threading.Lock()
    lock.acquire()
    threading.Timer(2, lock.release).start()
    near(timed(lambda: lock.acquire(timeout=threading.TIMEOUT_MAX)), 2)
    near(timed(lambda: select.select([], [], [], 0)), 0)
    near(timed(lambda: lock.acquire(timeout=0)), 0)
    assert libc.nanosleep(ctypes.byref((ctypes.c_long * 2)(0, -1)), None) == -1 and ctypes.get_errno() == 22
    assert libc.nanosleep(ctypes.byref((ctypes.c_long * 2)(-1, 0)), None) == -1 and ctypes.get_errno() == 22
    near(timed(lambda: libc.usleep(1500000)), 1.5)
    near(timed(lambda: libc.sleep(3)), 3)


def a_spinning_thread_waits():
    # Asks again and again without a pause: it would take as long as the time it waits for.
    done = threading.Event()
    reader, writer = os.pipe()

    def later():
        time.sleep(20)
        os.write(writer, b"x")

    begin = time.monotonic()
    threading.Thread(target=later).start()
    while not select.select([reader], [], [], 0)[0]:
        pass
    near(time.monotonic() - begin, 20, 0.2)
    done.set()


def main():
    for case in (clocks_agree, a_clock_loop_ends, fork_in_the_middle, exec_in_the_middle, signal_during_a_wait,
                 absurd_timeouts, a_spinning_thread_waits):
        case()
        print(case.__name__, "ok", flush=True)


if __name__ == "__main__":
    main()
