#include "simulator/shims/client/attributes.h"

#include <cuda.h>
#include <gtest/gtest.h>

#include "simulator/shims/testing/fake_daemon.h"

namespace cb::sim::client {
namespace {

TEST(Attributes, EveryAttributeOfTheToolkitHasAValue) {
  for (int attribute = 1; attribute < cudaDevAttrMax; ++attribute) {
    int value = -12345;
    EXPECT_TRUE(device_attribute(FakeDaemon::device(), attribute, &value)) << attribute;
  }
}

TEST(Attributes, AnUnknownNumberHasNone) {
  int value = 7;
  EXPECT_FALSE(device_attribute(FakeDaemon::device(), 0, &value));
  EXPECT_FALSE(device_attribute(FakeDaemon::device(), -1, &value));
  EXPECT_FALSE(device_attribute(FakeDaemon::device(), 100'000, &value));
  EXPECT_EQ(value, 7);
}

TEST(Attributes, TheProfileDecidesWhatDiffersBetweenDevices) {
  DeviceInfo device = FakeDaemon::device();
  device.num_sms = 78;
  device.multicast_supported = 0;
  device.compute_major = 8;
  auto value = [&](int attribute) {
    int result = -1;
    device_attribute(device, attribute, &result);
    return result;
  };
  EXPECT_EQ(value(cudaDevAttrMultiProcessorCount), 78);
  EXPECT_EQ(value(CU_DEVICE_ATTRIBUTE_MULTICAST_SUPPORTED), 0);
  EXPECT_EQ(value(cudaDevAttrClusterLaunch), 0);
  EXPECT_EQ(value(cudaDevAttrPciBusId), 0x1b);
}

TEST(Attributes, PropertiesAgreeWithThem) {
  cudaDeviceProp properties = device_properties(FakeDaemon::device());
  EXPECT_STREQ(properties.name, "NVIDIA H100 80GB HBM3");
  EXPECT_EQ(properties.major, 9);
  EXPECT_EQ(properties.multiProcessorCount, 132);
  EXPECT_EQ(properties.totalGlobalMem, size_t{80} << 30);
  EXPECT_EQ(properties.sharedMemPerBlockOptin, 232448u);
  EXPECT_EQ(properties.maxThreadsDim[2], 64);
  EXPECT_EQ(properties.maxGridSize[0], 0x7fffffff);
  EXPECT_EQ(properties.maxTexture2DLinear[2], 2097120);
  EXPECT_EQ(properties.clusterLaunch, 1);
  EXPECT_EQ(properties.uuid.bytes[0], 7);
}

TEST(PciBusId, IsReadInItsThreeForms) {
  int domain = -1, bus = -1, device = -1;
  EXPECT_TRUE(parse_pci_bus_id("0001:1B:02.0", &domain, &bus, &device));
  EXPECT_EQ(domain, 1);
  EXPECT_EQ(bus, 0x1b);
  EXPECT_EQ(device, 2);
  EXPECT_TRUE(parse_pci_bus_id("0000:c1:00", &domain, &bus, &device));
  EXPECT_EQ(bus, 0xc1);
  EXPECT_TRUE(parse_pci_bus_id("3d:04.0", &domain, &bus, &device));
  EXPECT_EQ(domain, 0);
  EXPECT_EQ(bus, 0x3d);
  EXPECT_EQ(device, 4);
  for (const char* bad : {"", "1b", "1b:", "0000:1b:00.0q", "zz:00.0"}) {
    EXPECT_FALSE(parse_pci_bus_id(bad, &domain, &bus, &device)) << bad;
  }
  EXPECT_FALSE(parse_pci_bus_id(nullptr, &domain, &bus, &device));
}

}  // namespace
}  // namespace cb::sim::client
