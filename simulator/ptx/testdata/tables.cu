// Module-scope data: constant and device tables, pointers to data and code, structures.
struct Entry {
  int* target;
  int weight;
};

struct __align__(16) Wide {
  unsigned long long low, high;
};

struct __attribute__((packed)) Packed {
  char tag;
  int* target;
};

using Operation = int (*)(int);

__device__ __noinline__ int twice(int x) { return x * 2; }
__device__ __noinline__ int negate(int x) { return -x; }

__constant__ int primes[8] = {2, 3, 5, 7, 11};
__constant__ float scale = 1.5f;
__device__ double matrix[2][3] = {{1.0, 2.0}, {-3.0, 4.0, 5.5}};
__device__ int counter = -7;
__device__ int zeroed[1024];
__device__ Entry entry = {&counter, 42};
__device__ Packed packed = {7, &counter};
__device__ int* pointers[3] = {&counter, &zeroed[4], nullptr};
__device__ const char* message = "table";
__device__ Operation operations[2] = {twice, negate};
__device__ Wide wide = {1, 0xffffffffffffffffull};
__device__ __managed__ int shared_with_host = 3;

__global__ void lookup(int* out, int i) {
  __shared__ int tile[64];
  extern __shared__ double dynamic[];
  tile[threadIdx.x] = primes[i & 7] + zeroed[i];
  dynamic[threadIdx.x] = matrix[i & 1][i % 3] * scale;
  __syncthreads();
  int picked = operations[i & 1](tile[63 - threadIdx.x]);
  out[threadIdx.x] = picked + *entry.target + entry.weight + packed.tag + *pointers[i % 2] +
                     message[i] + static_cast<int>(dynamic[i]) + static_cast<int>(wide.high) +
                     shared_with_host;
}
