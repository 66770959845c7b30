#!/bin/sh
# Builds heat.cu beside a temporary file and becomes it. The compiler must not see the emulated libraries.
set -e
here=$(dirname "$0")
out=${TMPDIR:-/tmp}/maya-heat-$$
nvcc=$(command -v nvcc || echo /usr/local/cuda/bin/nvcc)
env -u LD_PRELOAD "$nvcc" -cudart shared -o "$out" "$here/heat.cu"
"$out"
code=$?
rm -f "$out"
exit $code
