"""Timed waits that Python has no function for, called in the C library. Each waits so many seconds, for nothing."""

import ctypes
import os
import socket
import struct
import threading
import time

libc = ctypes.CDLL(None, use_errno=True)
CLOCK_REALTIME, CLOCK_MONOTONIC = 0, 1
ETIMEDOUT, EAGAIN = 110, 11


class Timespec(ctypes.Structure):
    _fields_ = [("sec", ctypes.c_long), ("nsec", ctypes.c_long)]


class Itimerspec(ctypes.Structure):
    _fields_ = [("interval", Timespec), ("value", Timespec)]


def span(seconds):
    return Timespec(int(seconds), round(seconds % 1 * 1e9) % 10**9)


def at(clock, seconds):
    return ctypes.byref(span(time.clock_gettime(clock) + seconds))


def expect(found, wanted, what):
    assert found == wanted, f"{what} gave {found} instead of {wanted}, errno {ctypes.get_errno()}"


def timer_descriptor(clock=CLOCK_MONOTONIC, flags=0):
    made = libc.timerfd_create(clock, flags)
    assert made >= 0
    return made


def set_timer(descriptor, first, interval=0.0, absolute=False):
    setting = Itimerspec(span(interval), span(first))
    expect(libc.timerfd_settime(descriptor, 1 if absolute else 0, ctypes.byref(setting), None), 0, "timerfd_settime")


def kinds():
    """Waits for the use of one thread."""
    mutex, lock, semaphore = (ctypes.create_string_buffer(64) for _ in range(3))
    libc.pthread_mutex_init(mutex, None)
    libc.pthread_rwlock_init(lock, None)
    libc.sem_init(semaphore, 0, 0)
    held = threading.Thread(target=lambda: (libc.pthread_mutex_lock(mutex), libc.pthread_rwlock_wrlock(lock)))
    held.start()
    held.join()
    timer = timer_descriptor()
    ends = socket.socketpair()
    sleeper = ctypes.c_ulong()
    expect(libc.pthread_create(ctypes.byref(sleeper), None, libc.pause, None), 0, "pthread_create")
    signals = ctypes.create_string_buffer(128)
    libc.sigemptyset(signals)
    libc.sigaddset(signals, 12)  # SIGUSR2, which nobody sends

    def mutex_timedlock(t):
        expect(libc.pthread_mutex_timedlock(mutex, at(CLOCK_REALTIME, t)), ETIMEDOUT, "pthread_mutex_timedlock")

    def mutex_clocklock(t):
        expect(libc.pthread_mutex_clocklock(mutex, CLOCK_MONOTONIC, at(CLOCK_MONOTONIC, t)), ETIMEDOUT, "clocklock")

    def read_lock(t):
        expect(libc.pthread_rwlock_timedrdlock(lock, at(CLOCK_REALTIME, t)), ETIMEDOUT, "timedrdlock")

    def write_lock(t):
        expect(libc.pthread_rwlock_clockwrlock(lock, CLOCK_MONOTONIC, at(CLOCK_MONOTONIC, t)), ETIMEDOUT, "clockwrlock")

    def semaphore_wait(t):
        expect(libc.sem_timedwait(semaphore, at(CLOCK_REALTIME, t)), -1, "sem_timedwait")

    def join(t):
        expect(libc.pthread_timedjoin_np(sleeper, None, at(CLOCK_REALTIME, t)), ETIMEDOUT, "pthread_timedjoin_np")

    def signal_wait(t):
        expect(libc.sigtimedwait(signals, None, ctypes.byref(span(t))), -1, "sigtimedwait")

    def timer_read(t):
        set_timer(timer, t)
        expect(os.read(timer, 8), struct.pack("Q", 1), "read of a timer")

    def timer_read_absolute(t):
        set_timer(timer, time.monotonic() + t, absolute=True)
        expect(os.read(timer, 8), struct.pack("Q", 1), "read of a timer")

    def receive(t):
        setting = struct.pack("ll", int(t), round(t % 1 * 1e6))
        ends[0].setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, setting)
        text = ctypes.create_string_buffer(8)
        expect(libc.recv(ends[0].fileno(), text, 8, 0), -1, "recv")
        expect(ctypes.get_errno(), EAGAIN, "errno of recv")

    def thread_sleep(t):
        expect(libc.thrd_sleep(ctypes.byref(span(t)), None), 0, "thrd_sleep")

    return [mutex_timedlock, mutex_clocklock, read_lock, write_lock, semaphore_wait, join, signal_wait, timer_read,
            timer_read_absolute, receive, thread_sleep]


_made = []


def of_threads(count):
    """The same for each of so many threads, made once: they keep descriptors and a thread."""
    while len(_made) < count:
        _made.append(kinds())
    return _made[:count]
