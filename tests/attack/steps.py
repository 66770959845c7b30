"""A process that will be killed. It counts the work it has put on the device, so that losses of its recording are known.

Prints its number, then the count of finished calls after every hundred.
"""

import ctypes
import os
import sys
import time

runtime = ctypes.CDLL("libcudart.so.13")
pointer = ctypes.c_void_p()
assert runtime.cudaMalloc(ctypes.byref(pointer), ctypes.c_size_t(1 << 20)) == 0
print(os.getpid(), flush=True)
done, end = 0, int(sys.argv[1]) if len(sys.argv) > 1 else 1 << 60
pause = float(sys.argv[2]) if len(sys.argv) > 2 else 0
while done < end:
    for _ in range(100):
        runtime.cudaMemset(pointer, 0, ctypes.c_size_t(64))
    done += 100
    os.write(1, b"%d\n" % done)
    if pause:
        time.sleep(pause)
