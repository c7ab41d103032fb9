#!/bin/sh
# Writes the .ptx and .fatbin files of this folder from the .cu files, with nvcc 13.0 in $PATH.
set -e
cd "$(dirname "$0")"
for name in asm_scopes calls numbers sync tables; do
  nvcc -std=c++17 -O3 -arch=sm_90a -ptx "$name.cu" -o "$name.ptx"
done
nvcc -std=c++17 -O3 -arch=sm_90a -lineinfo -ptx lineinfo.cu -o lineinfo.ptx
# nvcc writes the absolute path of the source.
sed -i 's|"/.*/\([^/"]*\)"|"\1"|' lineinfo.ptx
nvcc -std=c++17 -O3 -gencode "arch=compute_90a,code=[compute_90a,sm_90a]" \
  -gencode arch=compute_80,code=compute_80 --compress-mode=size -fatbin resources.cu \
  -o resources.fatbin
