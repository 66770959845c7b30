"""Sixteen threads that misuse the device, while the process forks and gets signals. Ends with 0 if nothing broke."""

import ctypes
import os
import random
import signal
import sys
import threading
import time

runtime = ctypes.CDLL("libcudart.so.13")
blas, dnn = ctypes.CDLL("libcublas.so.13"), ctypes.CDLL("libcudnn.so.9")
seconds = float(sys.argv[1]) if len(sys.argv) > 1 else 2
end = time.time() + seconds
shared = [ctypes.c_void_p() for _ in range(64)]  # all threads free and destroy what any of them made
calls = [0] * 16
signals = 0


def count(*_):
    global signals
    signals += 1


def attack(number: int) -> None:
    dice = random.Random(number)
    while time.time() < end:
        for _ in range(100):
            slot = shared[dice.randrange(64)]
            what = dice.randrange(12)
            if what in (0, 3, 5, 9):  # its place is taken: or tens of thousands of streams would live at once
                runtime.cudaStreamDestroy(slot)
            if what == 0:
                runtime.cudaMalloc(ctypes.byref(slot), ctypes.c_size_t(dice.randrange(1 << 20)))
            elif what < 3:
                runtime.cudaFree(slot)
            elif what == 3:
                runtime.cudaStreamCreate(ctypes.byref(slot))
            elif what == 4:
                runtime.cudaStreamDestroy(slot)
            elif what == 5:
                runtime.cudaEventCreate(ctypes.byref(slot))
            elif what == 6:
                runtime.cudaEventRecord(slot, shared[dice.randrange(64)])
            elif what == 7:
                runtime.cudaEventDestroy(slot)
            elif what == 8:
                runtime.cudaMemsetAsync(slot, 0, ctypes.c_size_t(256), shared[dice.randrange(64)])
            elif what == 9:
                blas.cublasCreate_v2(ctypes.byref(slot))
            elif what == 10:
                blas.cublasDestroy_v2(slot)
            else:
                dnn.cudnnDestroyTensorDescriptor(slot)
        calls[number] += 100


signal.signal(signal.SIGALRM, count)
signal.setitimer(signal.ITIMER_REAL, 0.01, 0.01)
threads = [threading.Thread(target=attack, args=(i,)) for i in range(16)]
for thread in threads:
    thread.start()
forks = 0
while time.time() < end:
    child = os.fork()
    if child == 0:
        runtime.cudaFree(shared[0])  # refused in a child, and harmless
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
    forks += 1
    time.sleep(0.05)
for thread in threads:
    thread.join()
signal.setitimer(signal.ITIMER_REAL, 0)  # Python takes its handlers back before it ends
print(f"{sum(calls)} calls {forks} forks {signals} signals", flush=True)
