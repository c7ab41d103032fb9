// Numbers of devices, their properties and attributes, which agree with each other.

#include <cstring>

#include "check.h"

int main() {
  int count = 0;
  REQUIRE_OK(cudaGetDeviceCount(&count));
  EXPECT(count >= 1);
  int device = -1;
  EXPECT_OK(cudaGetDevice(&device));
  EXPECT_EQUAL(device, 0);
  EXPECT_ERROR(cudaSetDevice(count), cudaErrorInvalidDevice);
  EXPECT_ERROR(cudaSetDevice(-1), cudaErrorInvalidDevice);
  EXPECT_ERROR(cudaGetLastError(), cudaErrorInvalidDevice);
  EXPECT_OK(cudaGetLastError());
  EXPECT_OK(cudaGetDevice(&device));
  EXPECT_EQUAL(device, 0);

  for (int at = 0; at < count; ++at) {
    cudaDeviceProp properties;
    REQUIRE_OK(cudaGetDeviceProperties(&properties, at));
    EXPECT(strlen(properties.name) > 0);
    EXPECT(properties.major >= 8);
    EXPECT_EQUAL(properties.warpSize, 32);
    EXPECT_EQUAL(properties.maxThreadsPerBlock, 1024);
    EXPECT(properties.sharedMemPerBlockOptin > properties.sharedMemPerBlock);
    auto attribute = [at](cudaDeviceAttr which) {
      int value = -1;
      EXPECT_OK(cudaDeviceGetAttribute(&value, which, at));
      return value;
    };
    EXPECT_EQUAL(attribute(cudaDevAttrMultiProcessorCount), properties.multiProcessorCount);
    EXPECT_EQUAL(attribute(cudaDevAttrComputeCapabilityMajor), properties.major);
    EXPECT_EQUAL(attribute(cudaDevAttrMaxSharedMemoryPerBlockOptin),
                 properties.sharedMemPerBlockOptin);
    EXPECT_EQUAL(attribute(cudaDevAttrUnifiedAddressing), 1);
    EXPECT_EQUAL(attribute(cudaDevAttrCooperativeLaunch), 1);
    EXPECT_EQUAL(attribute(cudaDevAttrClusterLaunch), properties.major >= 9);

    char bus_id[32] = {};
    int found = -1;
    EXPECT_OK(cudaDeviceGetPCIBusId(bus_id, sizeof bus_id, at));
    EXPECT_OK(cudaDeviceGetByPCIBusId(&found, bus_id));
    EXPECT_EQUAL(found, at);
    EXPECT_ERROR(cudaDeviceGetPCIBusId(bus_id, 4, at), cudaErrorInvalidValue);

    REQUIRE_OK(cudaSetDevice(at));
    size_t free_bytes = 0, total_bytes = 0;
    EXPECT_OK(cudaMemGetInfo(&free_bytes, &total_bytes));
    EXPECT(free_bytes > 0 && free_bytes <= total_bytes);
  }
  int value;
  EXPECT_ERROR(cudaDeviceGetAttribute(&value, static_cast<cudaDeviceAttr>(100000), 0),
               cudaErrorInvalidValue);
  EXPECT_ERROR(cudaDeviceGetAttribute(&value, cudaDevAttrWarpSize, count), cudaErrorInvalidDevice);

  int runtime = 0, driver = 0;
  EXPECT_OK(cudaRuntimeGetVersion(&runtime));
  EXPECT_OK(cudaDriverGetVersion(&driver));
  EXPECT_EQUAL(runtime / 1000, CUDART_VERSION / 1000);
  EXPECT(driver >= runtime);
  int least = -1, greatest = 1;
  EXPECT_OK(cudaDeviceGetStreamPriorityRange(&least, &greatest));
  EXPECT_EQUAL(least, 0);
  EXPECT(greatest < 0);
  return failures();
}
