#!/usr/bin/env bash
# Makes this machine ready to build and run CommBench. Safe to run again: it does only what is
# missing, and says what it did.
set -euo pipefail

root=$(cd -- "$(dirname -- "$(readlink -f -- "${BASH_SOURCE[0]}")")" && pwd)
cuda=$root/.cuda
assume_yes=false
cuda_from_pypi=false

usage() {
  cat <<'USAGE'
usage: ./setup.sh [--yes] [--cuda-from-pypi]

  --yes             do not ask: install Debian packages (with sudo when not root) and, if this
                    machine has no CUDA 13 compiler, fetch one as --cuda-from-pypi does
  --cuda-from-pypi  unpack NVIDIA's CUDA 13.0 compiler and NCCL from PyPI into ./.cuda (390 MB to
                    download, 1 GB on disk, no root needed) unless a compiler is found
USAGE
}

say() { printf 'setup: %s\n' "$*" >&2; }
fail() {
  printf 'setup: %s\n' "$@" >&2
  exit 1
}

agreed() {
  "$assume_yes" && return 0
  [ -t 0 ] || return 1
  local answer
  read -r -p "setup: $1 [y/N] " answer
  [[ $answer == [yY]* ]]
}

check_machine() {
  [ "$(uname -sm)" = "Linux x86_64" ] ||
    fail "CommBench runs on x86-64 Linux; this is $(uname -sm)." \
      "On other machines use a Linux virtual machine or a remote x86-64 host."
  grep -qw avx2 /proc/cpuinfo ||
    fail "this processor has no AVX2, which the simulator needs (Intel Haswell, AMD Zen or newer)"
}

wanted_packages() { sed -e 's/#.*//' -e '/^[[:space:]]*$/d' "$root/tools/debian-packages.txt"; }

missing_packages() {
  local installed
  # dpkg-query complains about names it has never heard of; those are the missing ones.
  # shellcheck disable=SC2046
  installed=$(dpkg-query -W -f='${db:Status-Status} ${Package}\n' $(wanted_packages) 2>/dev/null |
    sed -n 's/^installed //p' || true)
  comm -23 <(wanted_packages | sort) <(sort -u <<<"$installed")
}

install_packages() {
  if ! command -v apt-get >/dev/null || ! command -v dpkg-query >/dev/null; then
    say "no apt-get here; these must be installed in your distribution's own way:"
    wanted_packages | paste -sd' ' - | fold -s -w 96 >&2
    local tool
    for tool in cmake ninja g++ bwrap pkg-config mpirun; do
      command -v "$tool" >/dev/null || fail "$tool is missing"
    done
    return
  fi
  local missing=()
  mapfile -t missing < <(missing_packages)
  if [ ${#missing[@]} -eq 0 ]; then
    say "all Debian packages are installed"
    return
  fi
  local become=()
  if [ "$(id -u)" != 0 ]; then
    command -v sudo >/dev/null ||
      fail "these packages are missing, and there is no sudo to install them with: ${missing[*]}" \
        "As root: apt-get install ${missing[*]}"
    become=(sudo)
  fi
  agreed "install ${missing[*]}?" ||
    fail "not installed: ${missing[*]}" "Run ./setup.sh --yes, or: sudo apt-get install ${missing[*]}"
  local apt=("${become[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -qq
    -o DPkg::Lock::Timeout=300 -o Acquire::Retries=3)
  "${apt[@]}" update >&2
  "${apt[@]}" install -y --no-install-recommends "${missing[@]}" >&2
  say "installed ${missing[*]}"
}

# The jail needs namespaces of an ordinary user, also when we are root.
check_jail() {
  local as=()
  [ "$(id -u)" = 0 ] && as=(setpriv --reuid 60000 --regid 60000 --clear-groups)
  local error
  if ! error=$("${as[@]}" bwrap --unshare-user --unshare-pid --unshare-net --unshare-ipc \
    --unshare-uts --ro-bind / / --proc /proc true 2>&1); then
    fail "bubblewrap cannot make a jail here: $error" \
      "Candidates are run in jails only. Unprivileged user namespaces must be allowed:" \
      "  sysctl kernel.unprivileged_userns_clone=1                 (older Debian kernels)" \
      "  sysctl kernel.apparmor_restrict_unprivileged_userns=0     (Ubuntu 24.04 and newer)" \
      "  sysctl user.max_user_namespaces=10000                     (RHEL and relatives)" \
      "In a container: --security-opt seccomp=unconfined --security-opt systempaths=unconfined"
  fi
  say "jails work"
}

cuda_release() { "$1/bin/nvcc" --version 2>/dev/null | sed -n 's/.*release \([0-9]*\).*/\1/p'; }

# Where CMakeLists.txt looks: $CUDA_HOME and nowhere else if it is set.
find_cuda() {
  local folder folders=("$cuda" /usr/local/cuda)
  [ -z "${CUDA_HOME:-}" ] || folders=("$CUDA_HOME")
  for folder in "${folders[@]}"; do
    if [ -x "$folder/bin/nvcc" ] && [ "$(cuda_release "$folder")" = 13 ]; then
      echo "$folder"
      return
    fi
  done
}

# Whether users who own nothing can reach a folder.
is_public() {
  local folder=$1
  while [ "$folder" != / ]; do
    [ $((0$(stat -c %a "$folder") & 5)) = 5 ] || return 1
    folder=$(dirname "$folder")
  done
}

# Where CUDA goes. As root we jail compilers under a user of their own, who cannot read below /root.
cuda_place() {
  if [ "$(id -u)" = 0 ] && ! is_public "$root"; then
    echo /opt/commbench/cuda-13.0
  else
    echo "$cuda"
  fi
}

unpack_cuda() {
  local staging
  python3 -m pip --version >/dev/null 2>&1 || fail "python3 has no pip; run ./setup.sh first"
  staging=$(mktemp -d "$root/.cuda.XXXXXX")
  # shellcheck disable=SC2064
  trap "rm -rf '$staging'" EXIT
  say "fetching CUDA 13.0 from PyPI (390 MB)"
  python3 -m pip install --quiet --disable-pip-version-check --no-deps --only-binary :all: \
    --require-hashes --target "$staging/wheels" -r "$root/tools/cuda-wheels.txt" >&2
  mkdir "$staging/cuda"
  cp -rl "$staging/wheels/nvidia/cu13/." "$staging/wheels/nvidia/nccl/." "$staging/cuda/"
  local library
  for library in "$staging"/cuda/lib/*.so.*; do
    ln -sf "$(basename "$library")" "${library%%.so.*}.so"
  done
  ln -s lib "$staging/cuda/lib64"
  mkdir -p "$staging/cuda/targets/x86_64-linux"
  ln -s ../../include "$staging/cuda/targets/x86_64-linux/include"
  ln -s ../../lib "$staging/cuda/targets/x86_64-linux/lib"
  chmod +x "$staging"/cuda/bin/* "$staging"/cuda/nvvm/bin/*
  # A jail's user has to read it when the harness runs as root.
  chmod -R go+rX "$staging/cuda"
  check_cuda "$staging/cuda"
  local place
  place=$(cuda_place)
  rm -rf "$cuda" "$place"
  mkdir -p "$(dirname "$place")"
  mv "$staging/cuda" "$place"
  [ "$place" = "$cuda" ] || ln -s "$place" "$cuda"
  say "unpacked CUDA 13.0 into $place"
}

check_cuda() {
  local scratch
  scratch=$(mktemp -d)
  cat >"$scratch/probe.cu" <<'CUDA'
#include <cooperative_groups.h>
#include <nccl.h>
__global__ void probe(int* p) { *p = NCCL_MAJOR; }
CUDA
  if ! "$1/bin/nvcc" -std=c++17 -cudart shared -shared -Xcompiler -fPIC \
    -gencode 'arch=compute_90a,code=[compute_90a,sm_90a]' -o "$scratch/probe.so" \
    "$scratch/probe.cu" -lnccl >"$scratch/log" 2>&1; then
    cat "$scratch/log" >&2
    rm -rf "$scratch"
    fail "$1/bin/nvcc does not compile a small kernel that includes NCCL (messages above)"
  fi
  rm -rf "$scratch"
}

prepare_cuda() {
  local found
  found=$(find_cuda)
  if [ -n "$found" ]; then
    check_cuda "$found"
    say "CUDA 13 compiler: $found"
    return
  fi
  [ -z "${CUDA_HOME:-}" ] ||
    fail "CUDA_HOME is $CUDA_HOME, but there is no CUDA 13 compiler in it; correct or unset it"
  "$cuda_from_pypi" || agreed "no CUDA 13 compiler found; fetch one from PyPI into ./.cuda (390 MB)?" ||
    fail "no CUDA 13 compiler in \$CUDA_HOME, ./.cuda or /usr/local/cuda" \
      "Run ./setup.sh --cuda-from-pypi (390 MB, no root, no GPU needed), or set CUDA_HOME."
  unpack_cuda
}

while [ $# -gt 0 ]; do
  case $1 in
    --yes | -y) assume_yes=true ;;
    --cuda-from-pypi) cuda_from_pypi=true ;;
    --help | -h)
      usage
      exit 0
      ;;
    *)
      usage >&2
      exit 2
      ;;
  esac
  shift
done

# Root asks nobody: containers and CI have no one to answer.
[ "$(id -u)" = 0 ] && assume_yes=true
check_machine
install_packages
check_jail
prepare_cuda
say "ready; ./commbench builds on its first use"
