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

import libc_waits

libc = libc_waits.libc


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
    # The processor time until the spinning is noticed counts; on a busy machine that takes a few tenths of a second.
    near(time.monotonic() - begin, 20, 2)
    done.set()


def timers_of_descriptors():
    timer = libc_waits.timer_descriptor()
    libc_waits.set_timer(timer, 2, interval=1)
    begin = time.monotonic()
    assert select.select([timer], [], [], 30)[0] == [timer]
    near(time.monotonic() - begin, 2)
    time.sleep(3.5)  # until 5.5: at 2, 3, 4 and 5
    assert int.from_bytes(os.read(timer, 8), "little") == 4
    left = libc_waits.Itimerspec()
    libc.timerfd_gettime(timer, ctypes.byref(left))
    near(left.value.sec + left.value.nsec * 1e-9, 0.5, 0.01)
    other = os.dup(timer)
    os.close(timer)
    os.read(other, 8)
    near(time.monotonic() - begin, 6)
    libc_waits.set_timer(other, 0)  # stopped
    assert select.select([other], [], [], 10)[0] == []
    near(time.monotonic() - begin, 16)
    os.close(other)
    for _ in range(2000):  # descriptors are given back
        os.close(libc_waits.timer_descriptor())
    assert libc.timerfd_settime(999, 0, ctypes.byref(left), None) == -1 and ctypes.get_errno() == 9
    timer = libc_waits.timer_descriptor()
    bad = libc_waits.Itimerspec(libc_waits.span(0), libc_waits.Timespec(0, 10**9))
    assert libc.timerfd_settime(timer, 0, ctypes.byref(bad), None) == -1 and ctypes.get_errno() == 22
    libc_waits.set_timer(timer, 1e-9, interval=1e-9)  # as often as can be, and the program still goes on
    near(timed(lambda: time.sleep(0.01)), 0.01)
    assert int.from_bytes(os.read(timer, 8), "little") > 1_000_000


def alarms():
    caught = []
    signal.signal(signal.SIGALRM, lambda *_: caught.append(time.monotonic()))
    begin = time.monotonic()
    signal.setitimer(signal.ITIMER_REAL, 1.5, 1.0)
    time.sleep(4)
    assert len(caught) == 3, caught
    for at, expected in zip(caught, (1.5, 2.5, 3.5)):
        near(at - begin, expected)
    near(signal.getitimer(signal.ITIMER_REAL)[0], 0.5, 0.01)
    assert signal.alarm(100) == 1 and signal.alarm(0) == 100
    time.sleep(200)
    assert len(caught) == 3
    # It outlives exec, as the kernel's does.
    code = "import signal, time; signal.alarm(7); import os, sys; " \
           "os.execv(sys.executable, [sys.executable, '-S', '-c', 'import time; time.sleep(1000)'])"
    begin = time.monotonic()
    assert subprocess.run([sys.executable, "-S", "-c", code]).returncode == -signal.SIGALRM
    near(time.monotonic() - begin, 7, 0.4)


def posix_timers():
    class Event(ctypes.Structure):
        _fields_ = [("value", ctypes.c_void_p), ("signo", ctypes.c_int), ("notify", ctypes.c_int),
                    ("function", ctypes.c_void_p), ("attributes", ctypes.c_void_p), ("rest", ctypes.c_char * 32)]

    begin, caught = time.monotonic(), []
    signal.signal(signal.SIGUSR2, lambda *_: caught.append(time.monotonic() - begin))
    timer = ctypes.c_void_p()
    event = Event(signo=signal.SIGUSR2, notify=0)
    assert libc.timer_create(1, ctypes.byref(event), ctypes.byref(timer)) == 0
    setting = libc_waits.Itimerspec(libc_waits.span(2), libc_waits.span(1))
    assert libc.timer_settime(timer, 0, ctypes.byref(setting), None) == 0
    time.sleep(6)
    for at, expected in zip(caught, (1, 3, 5)):
        near(at, expected)
    assert len(caught) == 3 and libc.timer_delete(timer) == 0 and libc.timer_delete(timer) == -1
    # In a thread of its own.
    ran, threaded = threading.Event(), []
    function = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(lambda _: (threaded.append(time.monotonic() - begin), ran.set()))
    event = Event(notify=2, function=ctypes.cast(function, ctypes.c_void_p).value)
    assert libc.timer_create(1, ctypes.byref(event), ctypes.byref(timer)) == 0
    setting = libc_waits.Itimerspec(libc_waits.span(0), libc_waits.span(4))
    assert libc.timer_settime(timer, 0, ctypes.byref(setting), None) == 0
    assert ran.wait(100)
    near(threaded[0], 10)
    libc.timer_delete(timer)


def the_clock_cannot_be_set():
    before = time.time()
    assert libc.clock_settime(0, ctypes.byref(libc_waits.span(0))) == -1 and ctypes.get_errno() == 1
    assert libc.settimeofday(ctypes.byref(libc_waits.span(0)), None) == -1 and ctypes.get_errno() == 1
    near(time.time() - before, 0)


def processor_time_goes_on():
    before = time.process_time(), time.thread_time(), os.times().user, time.monotonic()
    time.sleep(100)
    assert time.process_time() - before[0] < 1 and time.thread_time() - before[1] < 1
    assert os.times().elapsed > 0 and time.monotonic() - before[3] >= 100
    while time.process_time() - before[0] < 0.2:
        pass
    assert time.thread_time() - before[1] > 0.1


def a_debugger():
    # Another process holds this one's child and lets it go: time waits for nobody who is stopped, and goes on after.
    child = os.fork()
    if child == 0:
        libc.ptrace(0, 0, None, None)  # PTRACE_TRACEME
        os.kill(os.getpid(), signal.SIGUSR1)  # stops here
        time.sleep(2)
        os._exit(7)
    begin = time.monotonic()
    assert os.WIFSTOPPED(os.waitpid(child, 0)[1])
    assert libc.ptrace(7, child, None, None) == 0  # PTRACE_CONT, without the signal
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
    near(time.monotonic() - begin, 2, 0.3)


def main():
    for case in (clocks_agree, a_clock_loop_ends, fork_in_the_middle, exec_in_the_middle, signal_during_a_wait,
                 absurd_timeouts, a_spinning_thread_waits, timers_of_descriptors, alarms, posix_timers,
                 the_clock_cannot_be_set, processor_time_goes_on, a_debugger):
        case()
        print(case.__name__, "ok", flush=True)


if __name__ == "__main__":
    main()
