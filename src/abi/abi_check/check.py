#!/usr/bin/env python3
"""Compare one of our headers with NVIDIA's: generate the assertions (generate.py) and compile them.

usage: check.py NAME --compiler CXX --root SRC --include DIR... --work DIR
exit status: 0 equal, 1 different, 77 NVIDIA's header is not in DIR
"""
import argparse
import pathlib
import re
import subprocess
import sys

# Our header → NVIDIA's. The first one given decides whether the check can run.
HEADERS = {
    "cudart": ["cuda_runtime_api.h"],
    "cuda": ["cuda.h"],
    "nvml": ["nvml.h"],
    "cublas": ["cublas_v2.h", "cublasLt.h"],
    "cudnn": ["cudnn.h"],
    "nccl": ["nccl.h"],
    "cufft": ["cufft.h"],
    "curand": ["curand.h"],
    "cusparse": ["cusparse.h"],
    "cusparselt": ["cusparseLt.h"],
    "cusolver": ["cusolverDn.h", "cublasLt.h"],
    "cupti": ["cupti.h"],
    "nvrtc": ["nvrtc.h", "nvJitLink.h"],
    "cufile": ["cufile.h"],
}
# Ours alone: types that stand for several of NVIDIA's.
ALIASES = ["half_bits=-", "float_complex=-", "double_complex=-"]


# 13.1 added an execution context at the end.
GROWN = ["cudaConditionalNodeParams"]


def version(include, header, macro):
    for folder in include:
        path = folder / header
        if path.exists():
            found = re.search(rf"#define\s+{macro}\s+(\d+)", path.read_text(errors="replace"))
            if found:
                return int(found.group(1))
    return None


def standard_includes(compiler):
    """The compiler's own include folders without /usr/local/include, where a CUDA of another version may sit."""
    text = subprocess.run([compiler, "-xc++", "-E", "-v", "/dev/null"], capture_output=True, text=True, check=True).stderr
    block = text.split("#include <...> search starts here:")[1].split("End of search list")[0]
    return [line.strip() for line in block.splitlines() if line.strip() and line.strip() != "/usr/local/include"]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("name", choices=HEADERS)
    parser.add_argument("--compiler", default="c++")
    parser.add_argument("--root", type=pathlib.Path, required=True)
    parser.add_argument("--include", type=pathlib.Path, nargs="+", required=True)
    parser.add_argument("--work", type=pathlib.Path, required=True)
    args = parser.parse_args()

    absent = [header for header in HEADERS[args.name] if not any((folder / header).exists() for folder in args.include)]
    if absent:
        print(f"{', '.join(absent)} not found in {', '.join(map(str, args.include))}")
        return 77
    major = (version(args.include, "cuda_runtime_api.h", "CUDART_VERSION") or 13000) // 1000
    cudnn = version(args.include, "cudnn_version.h", "CUDNN_MAJOR") or 9
    aliases = ALIASES + [f"{struct}{other}={struct if other == major else '-'}"
                         for struct in ("cudaDeviceProp", "cudaPointerAttributes") for other in (12, 13)]
    args.work.mkdir(parents=True, exist_ok=True)
    source = args.work / f"{args.name}.cpp"
    subprocess.run([sys.executable, "-B", pathlib.Path(__file__).with_name("generate.py"), f"abi/{args.name}.h", "--root", args.root,
                    "--nvidia", "library_types.h", "cuda_runtime_api.h", *HEADERS[args.name], "--include", *args.include,
                    "--out", source, "--alias", *aliases, "--grown", *GROWN], check=True)
    command = [args.compiler, "-std=c++20", "-fsyntax-only", "-w", "-nostdinc", f"-DMAYA_CUDA_MAJOR={major}",
               f"-DMAYA_CUDNN_MAJOR={cudnn}", f"-I{args.root}"]
    for folder in args.include:
        command += ["-isystem", folder]
        if (folder / "cccl").is_dir():
            command += ["-isystem", folder / "cccl"]
    for folder in standard_includes(args.compiler):
        command += ["-isystem", folder]
    return 1 if subprocess.run([*command, source]).returncode else 0


if __name__ == "__main__":
    sys.exit(main())
