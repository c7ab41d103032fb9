#!/usr/bin/env bash
# Compiles every starter, wrong candidate, reference and example as the grader would, for the
# architecture in ARCH (default 90a). The examples that must not compile are the ones that do not.
set -euo pipefail
cd "$(dirname "$0")/.."
cuda=${CUDA_HOME:-/usr/local/cuda}
arch=${ARCH:-90a}
launcher=$(command -v ccache || true)
out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT

compile() {
  $launcher "$cuda/bin/nvcc" -std=c++17 -O3 -lineinfo --extended-lambda --expt-relaxed-constexpr \
    -cudart shared -Xcompiler -fPIC -Itasks/include \
    -gencode "arch=compute_$arch,code=[compute_$arch,sm_$arch]" -c "$1" -o "$out/object.o" \
    >"$out/log" 2>&1
}

failed=0
count=0
for source in tasks/*/starter.cu tasks/wrong/*.cu reference/*/*.cu examples/candidates/*.cu; do
  count=$((count + 1))
  case $source in
    *.does-not-compile.cu) wanted=1 ;;
    *) wanted=0 ;;
  esac
  compile "$source" && got=0 || got=1
  if [[ $got -ne $wanted ]]; then
    failed=$((failed + 1))
    echo "$source: expected $([[ $wanted -eq 0 ]] && echo success || echo a compile error)"
    head -n 20 "$out/log"
  fi
done
echo "$count files, $failed unexpected"
[[ $failed -eq 0 ]]
