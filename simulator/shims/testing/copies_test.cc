#include <gtest/gtest.h>

#include <cstring>

#include "simulator/shims/testing/fake_daemon.h"

namespace cb::sim {
namespace {

TEST(ShimCopies, LargeCopiesTravelInPiecesOfTheStagingMemory) {
  FakeDaemon daemon;
  CompletedProcess process = daemon.run("copies");
  EXPECT_EQ(process.standard_output,
            "to_device 0\nto_host 0\nsame 1\ninside 0\ninside_unknown 0\nhost 0\nsame 1\n"
            "wrong_way 1\nno_way 21\nnothing 0\n");
  constexpr uint64_t kBytes = (uint64_t{9} << 20) + 12345;
  auto copies = daemon.requests(Op::kMemcpy);
  ASSERT_EQ(copies.size(), 3u + 3u + 2u);
  uint64_t sizes[3] = {kStagingBytes, kStagingBytes, kBytes - 2 * kStagingBytes};
  for (size_t at = 0; at < 6; ++at) {
    EXPECT_EQ(copies[at].args[2], sizes[at % 3]);
    EXPECT_EQ(copies[at].flags & kCopyContinues, at % 3 == 0 ? 0 : kCopyContinues);
    EXPECT_EQ(copies[at].flags & (kCopySrcPageable | kCopyDstPageable),
              at < 3 ? kCopySrcPageable : kCopyDstPageable);
    if (at % 3 > 0) {
      EXPECT_EQ(copies[at].args[0], copies[at - 1].args[0] + sizes[at % 3 - 1]);
      EXPECT_EQ(copies[at].args[1], copies[at - 1].args[1] + sizes[at % 3 - 1]);
    }
  }
}

TEST(ShimCopies, OnlyCopiesInsideKnownMemoryGoOneWay) {
  FakeDaemon daemon;
  daemon.run("copies");
  auto copies = daemon.requests(Op::kMemcpy);
  ASSERT_EQ(copies.size(), 8u);
  EXPECT_EQ(copies[6].flags, kCopyAsync | kCopyOneWay);
  EXPECT_EQ(copies[7].flags, kCopyAsync);
}

TEST(ShimCopies, AnErrorOfAPieceEndsTheCopy) {
  FakeDaemon daemon;
  int piece = 0;
  daemon.answer(Op::kMemcpy, [&piece](Answering& answering) {
    if (++piece == 2) answering.reply.status = 1;
  });
  CompletedProcess process = daemon.run("copies");
  EXPECT_EQ(process.standard_output.find("to_device 1\nto_host 0\nsame 0\n"), 0u);
}

TEST(ShimCopies, RowsArePackedAndTheirGapsUntouched) {
  FakeDaemon daemon;
  CompletedProcess process = daemon.run("copy_rows");
  EXPECT_EQ(process.standard_output,
            "to_device 0\nto_host 0\nsame 1\nuntouched 1\nnarrow_pitch 12\n");
  auto copies = daemon.requests(Op::kMemcpy2D);
  // 4194 rows of 1000 bytes fit into the staging memory.
  ASSERT_EQ(copies.size(), 2u * 3u);
  Copy2D shape;
  memcpy(&shape, copies[2].payload.data(), sizeof shape);
  EXPECT_EQ(shape.width_bytes, 1000u);
  EXPECT_EQ(shape.height, 9000u - 2u * 4194u);
  EXPECT_EQ(shape.dst_pitch, 1536u);
}

}  // namespace
}  // namespace cb::sim
