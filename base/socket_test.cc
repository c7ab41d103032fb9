#include "base/socket.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <cstring>

#include "base/file.h"

namespace cb {
namespace {

std::span<const std::byte> bytes_of(const char* text) {
  return std::as_bytes(std::span(text, std::strlen(text)));
}

TEST(SocketTest, KeepsMessageBoundaries) {
  auto [a, b] = seqpacket_pair();
  ASSERT_TRUE(send_message(a.get(), bytes_of("one")));
  ASSERT_TRUE(send_message(a.get(), bytes_of("two")));
  std::array<std::byte, 16> buffer;
  EXPECT_EQ(receive_message(b.get(), buffer), 3u);
  EXPECT_EQ(std::memcmp(buffer.data(), "one", 3), 0);
  EXPECT_EQ(receive_message(b.get(), buffer), 3u);
}

TEST(SocketTest, TimesOutAndReportsTheEnd) {
  auto [a, b] = seqpacket_pair();
  std::array<std::byte, 16> buffer;
  EXPECT_EQ(receive_message(b.get(), buffer, 1), std::nullopt);
  a.reset();
  EXPECT_EQ(receive_message(b.get(), buffer, 1000), 0u);
  EXPECT_FALSE(send_message(b.get(), bytes_of("x")));
}

TEST(SocketTest, AnOversizedMessageIsAnError) {
  auto [a, b] = seqpacket_pair();
  ASSERT_TRUE(send_message(a.get(), bytes_of("longer than four")));
  std::array<std::byte, 4> buffer;
  EXPECT_THROW(receive_message(b.get(), buffer), Error);
}

TEST(SocketTest, DescriptorsArriveOnlyWhereTheyAreAskedFor) {
  auto [a, b] = seqpacket_pair();
  UniqueFd null(::open("/dev/null", O_RDONLY | O_CLOEXEC));
  std::array<int, 1> fds{null.get()};
  std::array<std::byte, 16> buffer;

  ASSERT_TRUE(send_message(a.get(), bytes_of("x"), fds));
  UniqueFd lowest_free(::dup(0));
  int number = lowest_free.get();
  lowest_free.reset();
  EXPECT_EQ(receive_message(b.get(), buffer), 1u);
  UniqueFd after(::dup(0));
  EXPECT_EQ(after.get(), number) << "an unwanted descriptor was installed";

  ASSERT_TRUE(send_message(a.get(), bytes_of("x"), fds));
  std::vector<UniqueFd> received;
  EXPECT_EQ(receive_message_with_fds(b.get(), buffer, received, 1), 1u);
  EXPECT_EQ(received.size(), 1u);
}

TEST(SocketTest, ConnectsToAPath) {
  TempDir folder("cb-test-");
  std::string path = folder.path() + "/s";
  UniqueFd listener = seqpacket_listen(path);
  UniqueFd client = seqpacket_connect(path, 1000);
  UniqueFd server = seqpacket_accept(listener.get());
  EXPECT_TRUE(send_message(client.get(), bytes_of("hi")));
  EXPECT_THROW(seqpacket_connect(folder.path() + "/none", 5), Error);
}

}  // namespace
}  // namespace cb
