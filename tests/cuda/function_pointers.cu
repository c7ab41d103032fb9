// Calls through pointers: tables of functions, a different function in each lane, virtual
// functions, and recursion to a depth of each lane's own.

#include "array.h"

using Function = int (*)(int);

__device__ __noinline__ int twice(int n) { return 2 * n; }
__device__ __noinline__ int square(int n) { return n * n; }
__device__ __noinline__ int negate(int n) { return -n; }
__device__ Function table[3] = {twice, square, negate};

__global__ void call_table(int* out) { out[threadIdx.x] = table[threadIdx.x % 3](threadIdx.x); }

__global__ void call_argument(Function function, int* out) {
  out[threadIdx.x] = function(static_cast<int>(threadIdx.x) + 1);
}

__global__ void address_of_square(Function* out) { *out = square; }

class Shape {
 public:
  __device__ virtual int area() const = 0;
  __device__ virtual int corners() const { return 0; }

 protected:
  ~Shape() = default;
};
class Box : public Shape {
 public:
  __device__ explicit Box(int side) : side_(side) {}
  __device__ int area() const override { return side_ * side_; }
  __device__ int corners() const override { return 4; }

 private:
  int side_;
};
class Strip : public Shape {
 public:
  __device__ explicit Strip(int length) : length_(length) {}
  __device__ int area() const override { return length_; }

 private:
  int length_;
};

__device__ __noinline__ int measure(const Shape& shape) {
  return 1000 * shape.corners() + shape.area();
}

__global__ void call_virtual(int* out) {
  int n = threadIdx.x;
  Box box(n);
  Strip strip(n);
  const Shape& shape = n % 2 == 0 ? static_cast<const Shape&>(box) : strip;
  out[n] = measure(shape);
}

__device__ __noinline__ int ackermann(int m, int n) {
  if (m == 0) return n + 1;
  return n == 0 ? ackermann(m - 1, 1) : ackermann(m - 1, ackermann(m, n - 1));
}

struct Tree {
  int left, right, value;
};

__device__ int sum_of(const Tree* nodes, int at) {
  if (at < 0) return 0;
  return nodes[at].value + sum_of(nodes, nodes[at].left) + sum_of(nodes, nodes[at].right);
}

__global__ void recurse(const Tree* nodes, int* out) {
  int n = threadIdx.x;
  out[n] = ackermann(n % 3, n % 4) + 1000 * sum_of(nodes, n);
}

int host_ackermann(int m, int n) {
  if (m == 0) return n + 1;
  return n == 0 ? host_ackermann(m - 1, 1) : host_ackermann(m - 1, host_ackermann(m, n - 1));
}

int main() {
  Array<int> out(32);
  call_table<<<1, 32>>>(out.device);
  out.to_host();
  for (int n = 0; n < 32; ++n) {
    EXPECT_EQUAL(out.host[n], n % 3 == 0 ? 2 * n : n % 3 == 1 ? n * n : -n);
  }
  Array<Function> pointer(1);
  address_of_square<<<1, 1>>>(pointer.device);
  pointer.to_host();
  call_argument<<<1, 32>>>(pointer.host[0], out.device);
  out.to_host();
  for (int n = 0; n < 32; ++n) EXPECT_EQUAL(out.host[n], (n + 1) * (n + 1));

  call_virtual<<<1, 32>>>(out.device);
  out.to_host();
  for (int n = 0; n < 32; ++n) EXPECT_EQUAL(out.host[n], n % 2 == 0 ? 4000 + n * n : n);

  Array<Tree> nodes(32);
  int sums[32];
  for (int n = 31; n >= 0; --n) {
    int left = 2 * n + 1 < 32 ? 2 * n + 1 : -1, right = 2 * n + 2 < 32 ? 2 * n + 2 : -1;
    nodes.host[n] = {left, right, n};
    sums[n] = n + (left < 0 ? 0 : sums[left]) + (right < 0 ? 0 : sums[right]);
  }
  nodes.to_device();
  recurse<<<1, 32>>>(nodes.device, out.device);
  out.to_host();
  for (int n = 0; n < 32; ++n) {
    EXPECT_EQUAL(out.host[n], host_ackermann(n % 3, n % 4) + 1000 * sums[n]);
  }
  return failures();
}
