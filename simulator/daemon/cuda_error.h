#pragma once

namespace cb::sim {

/// Values of cudaError_t (driver_types.h of CUDA 13) that replies carry.
enum CudaError : int {
  kCudaSuccess = 0,
  kCudaInvalidValue = 1,
  kCudaMemoryAllocation = 2,
  kCudaInvalidConfiguration = 9,
  kCudaInvalidDevice = 101,
  kCudaInvalidKernelImage = 200,
  kCudaDeviceUninitialized = 201,
  kCudaNoKernelImageForDevice = 209,
  kCudaPeerAccessUnsupported = 217,
  kCudaInvalidPtx = 218,
  kCudaUnsupportedPtxVersion = 222,
  kCudaInvalidResourceHandle = 400,
  kCudaNotReady = 600,
  kCudaIllegalAddress = 700,
  kCudaLaunchOutOfResources = 701,
  kCudaPeerAccessAlreadyEnabled = 704,
  kCudaPeerAccessNotEnabled = 705,
  kCudaCooperativeLaunchTooLarge = 720,
  kCudaNotPermitted = 800,
  kCudaNotSupported = 801,
  kCudaInvalidClusterSize = 912,
  kCudaUnknown = 999,
};

/// Values of cb_status (commbench/task.h) that bootstrap replies carry.
enum CbStatus : int {
  kCbOk = 0,
  kCbInvalid = 1,
  kCbPhase = 2,
  kCbMemory = 5,
  kCbPeerFailed = 7,
};

}  // namespace cb::sim
