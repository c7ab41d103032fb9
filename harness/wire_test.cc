#include "harness/wire.h"

#include <gtest/gtest.h>

#include <thread>

#include "base/error.h"
#include "base/socket.h"

namespace cb::harness {
namespace {

TEST(WireTest, TextsOfAnySizeArriveWhole) {
  auto [left, right] = seqpacket_pair();
  for (size_t bytes : {size_t{0}, size_t{1}, size_t{65536}, size_t{65537}, size_t{3} << 20}) {
    std::string text(bytes, 'x');
    std::thread sender([&, fd = left.get()] { EXPECT_TRUE(send_text(fd, text)); });
    std::optional<std::string> got = receive_text(right.get(), 10'000);
    sender.join();
    ASSERT_TRUE(got);
    EXPECT_TRUE(*got == text) << bytes;
  }
}

TEST(WireTest, AHangUpIsNothing) {
  auto [left, right] = seqpacket_pair();
  left.reset();
  EXPECT_FALSE(receive_text(right.get(), 1'000));
  EXPECT_FALSE(send_text(right.get(), "text"));
}

TEST(WireTest, SilenceIsAnError) {
  auto [left, right] = seqpacket_pair();
  EXPECT_THROW(receive_text(right.get(), 10), Error);
}

}  // namespace
}  // namespace cb::harness
