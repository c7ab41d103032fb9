#!/usr/bin/env bash
# Makes kernels.ptx from kernels.cu. The PTX is kept so that every measurement runs the same code.
set -euo pipefail
cd -- "$(dirname -- "$0")"
"${CUDA_HOME:-/usr/local/cuda}/bin/nvcc" -std=c++17 -O3 -arch=compute_90a -ptx kernels.cu -o kernels.ptx
