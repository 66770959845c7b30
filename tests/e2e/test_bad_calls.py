"""Bad arguments of CUDA calls are error codes and not crashes: the calls that once ended or blocked a program.

`make attack` (tests/attack/api_calls.py) tries every parameter of every function; these have their exact codes.
"""

import json
import textwrap

CALLS = """
    import ctypes as c, json
    p, s = c.c_void_p, c.c_size_t
    rt, cu = c.CDLL("libcudart.so.13"), c.CDLL("libcuda.so.1")
    blas, lt, dnn, nccl = (c.CDLL(n) for n in ("libcublas.so.13", "libcublasLt.so.13", "libcudnn.so.9", "libnccl.so.2"))
    host, device, wild = c.create_string_buffer(4096), p(), p(0x123456789000)
    context, module, handle, pinned = p(), p(), p(), p()
    rt.cudaMalloc(c.byref(device), s(4096))
    elf = bytearray(256)
    elf[:7], elf[16:20], elf[40:48] = b"\\x7fELF\\x02\\x01\\x01", b"\\x02\\0\\xbe\\0", b"\\xff" * 8
    elf[52:54], elf[58:64] = b"\\x40\\0", b"\\x40\\0\\xff\\xff\\xff\\xff"
    load = lambda data: cu.cuModuleLoadData(c.byref(module), c.create_string_buffer(bytes(data)))
    print(json.dumps({
        "memset of an address that is nobody's": rt.cudaMemset(wild, 0, s(64)),
        "copy to an address that is nobody's": rt.cudaMemcpy(wild, host, s(64), 1),
        "copy of kind 77": rt.cudaMemcpy(device, host, s(64), 77),
        "copy of height -1": rt.cudaMemcpy2D(device, s(64), host, s(64), s(64), s(2**64 - 1), 1),
        "copy of a size that overflows": rt.cudaMemcpy2D(device, s(2**62), host, s(2**62), s(2**62), s(2**62), 1),
        "made-up context": cu.cuCtxSetCurrent(wild),
        "context": cu.cuCtxCreate_v2(c.byref(context), 0, 0),
        "its end": cu.cuCtxDestroy_v2(context),
        "its second end": cu.cuCtxDestroy_v2(context),
        "use of a destroyed context": cu.cuCtxSetCurrent(context),
        "module of garbage": load(b"garbage" * 100),
        "ELF with wild offsets": load(elf),
        "ELF that was cut off": load(elf[:20] + bytes(2000)),
        "module that is a folder": cu.cuModuleLoad(c.byref(module), b"/"),
        "module without an end": cu.cuModuleLoad(c.byref(module), b"/dev/zero"),
        "made-up cuBLAS handle": blas.cublasSetStream_v2(wild, None),
        "cuBLAS handle": blas.cublasCreate_v2(c.byref(handle)),
        "its destroy": blas.cublasDestroy_v2(handle),
        "its second destroy": blas.cublasDestroy_v2(handle),
        "made-up cuBLASLt handle": lt.cublasLtDestroy(wild),
        "made-up cuDNN handle": dnn.cudnnSetStream(wild, None),
        "null communicator": nccl.ncclCommDestroy(None),
        "made-up communicator": nccl.ncclCommDestroy(wild),
        "host memory beyond the machine's": rt.cudaMallocHost(c.byref(pinned), s(2**50)),
        "made-up stream": rt.cudaStreamSynchronize(wild),
    }))
    """
CODES = {
    "memset of an address that is nobody's": 1,
    "copy to an address that is nobody's": 1,
    "copy of kind 77": 21,  # cudaErrorInvalidMemcpyDirection
    "copy of height -1": 1,
    "copy of a size that overflows": 1,
    "made-up context": 201,  # CUDA_ERROR_INVALID_CONTEXT
    "context": 0,
    "its end": 0,
    "its second end": 201,
    "use of a destroyed context": 201,
    "module of garbage": 200,  # CUDA_ERROR_INVALID_IMAGE
    "ELF with wild offsets": 200,
    "ELF that was cut off": 200,
    "module that is a folder": 301,  # CUDA_ERROR_FILE_NOT_FOUND
    "module without an end": 301,
    "made-up cuBLAS handle": 1,  # CUBLAS_STATUS_NOT_INITIALIZED
    "cuBLAS handle": 0,
    "its destroy": 0,
    "its second destroy": 1,
    "made-up cuBLASLt handle": 1,
    "made-up cuDNN handle": 1001,  # CUDNN_STATUS_NOT_INITIALIZED
    "null communicator": 4,  # ncclInvalidArgument
    "made-up communicator": 4,
    "host memory beyond the machine's": 2,  # cudaErrorMemoryAllocation
    "made-up stream": 400,  # cudaErrorInvalidResourceHandle
}


def test_bad_calls_have_the_documented_codes(run):
    done = run("python", "-c", textwrap.dedent(CALLS), options=("--no-predict",), cluster="h100-sxm")
    assert done.code == 0, done.stderr
    assert json.loads(done.stdout.splitlines()[-1]) == CODES
