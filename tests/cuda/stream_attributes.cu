// Attributes of streams: what they are at first, what setting and copying them changes, what is
// refused; and the number and device of a stream.

#include "check.h"

namespace {

cudaLaunchAttributeValue get(cudaStream_t stream, cudaLaunchAttributeID attribute) {
  cudaLaunchAttributeValue value = {};
  EXPECT_OK(cudaStreamGetAttribute(stream, attribute, &value));
  return value;
}

}  // namespace

int main() {
  cudaStream_t first, second;
  REQUIRE_OK(cudaStreamCreate(&first));
  REQUIRE_OK(cudaStreamCreate(&second));
  EXPECT_EQUAL(get(first, cudaLaunchAttributeSynchronizationPolicy).syncPolicy, cudaSyncPolicyAuto);
  cudaLaunchAttributeValue value = {};
  value.syncPolicy = cudaSyncPolicyYield;
  EXPECT_OK(cudaStreamSetAttribute(first, cudaLaunchAttributeSynchronizationPolicy, &value));
  EXPECT_EQUAL(get(first, cudaLaunchAttributeSynchronizationPolicy).syncPolicy,
               cudaSyncPolicyYield);
  EXPECT_EQUAL(get(second, cudaLaunchAttributeSynchronizationPolicy).syncPolicy,
               cudaSyncPolicyAuto);
  EXPECT_OK(cudaStreamCopyAttributes(second, first));
  EXPECT_EQUAL(get(second, cudaLaunchAttributeSynchronizationPolicy).syncPolicy,
               cudaSyncPolicyYield);
  EXPECT_EQUAL(get(first, cudaLaunchAttributeMemSyncDomain).memSyncDomain,
               cudaLaunchMemSyncDomainDefault);
  EXPECT_ERROR(cudaStreamGetAttribute(first, cudaLaunchAttributeCooperative, &value),
               cudaErrorInvalidValue);

  unsigned long long first_id = 0, second_id = 0;
  EXPECT_OK(cudaStreamGetId(first, &first_id));
  EXPECT_OK(cudaStreamGetId(second, &second_id));
  EXPECT(first_id != second_id);
  int device = -1;
  EXPECT_OK(cudaStreamGetDevice(first, &device));
  EXPECT_EQUAL(device, 0);
  cudaGetLastError();
  EXPECT_OK(cudaStreamDestroy(first));
  EXPECT_OK(cudaStreamDestroy(second));
  return failures();
}
