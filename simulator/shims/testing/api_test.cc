// What programs get back from single calls, against the scripted daemon.

#include <gtest/gtest.h>

#include <csignal>

#include "simulator/shims/testing/fake_daemon.h"

namespace cb::sim {
namespace {

TEST(ShimApi, AllocatesAndFrees) {
  FakeDaemon daemon;
  CompletedProcess process = daemon.run("memory");
  EXPECT_EQ(process.standard_output,
            "malloc 0\nmalloc 0\ndistinct 1\nmalloc_null 1\nmalloc_nothing 0\nfree 0\n"
            "free_null 0\nfree_host_memory 1\n");
  // What the library can answer itself is not asked.
  EXPECT_EQ(daemon.requests(Op::kMalloc).size(), 2u);
  EXPECT_EQ(daemon.requests(Op::kFree).size(), 1u);
}

TEST(ShimApi, WrongHandlesAreErrorsAndNeverReachTheDaemon) {
  FakeDaemon daemon;
  CompletedProcess process = daemon.run("handles");
  EXPECT_TRUE(process.status.success()) << process.status.describe();
  EXPECT_EQ(process.standard_output,
            "stream_sync 400\nstream_destroy_null 400\nevent_query 400\ndestroy 0\n"
            "destroy_again 400\nsync_stale 400\nlaunch 98\ndevice 101\nlast 101\nlast_again 0\n"
            "query_unrecorded 0\nelapsed_unrecorded 400\ninterprocess_with_timing 1\n"
            "peer_self 101\npeer 0\npeer_twice 704\npeer_off 0\npeer_off_twice 705\n");
  EXPECT_TRUE(daemon.requests(Op::kStreamSync).empty());
  EXPECT_TRUE(daemon.requests(Op::kLaunch).empty());
  EXPECT_EQ(daemon.requests(Op::kPeerAccess).size(), 2u);
}

TEST(ShimApi, AnErrorThatBreaksTheContextStays) {
  FakeDaemon daemon;
  daemon.answer(Op::kDeviceSync, [](Answering& answering) { answering.reply.status = 700; });
  CompletedProcess process = daemon.run("sticky");
  EXPECT_EQ(process.standard_output,
            "sync 700\nmalloc 700\npeek 700\nlast 700\nlast_again 700\ncount 0\n"
            "other_device 0\nmalloc_there 0\nback 700\n");
  EXPECT_EQ(daemon.requests(Op::kMalloc).size(), 1u);
}

TEST(ShimApi, APlainErrorOfTheDaemonDoesNotStay) {
  FakeDaemon daemon;
  daemon.answer(Op::kDeviceSync, [](Answering& answering) { answering.reply.status = 2; });
  CompletedProcess process = daemon.run("sticky");
  EXPECT_EQ(process.standard_output,
            "sync 2\nmalloc 0\npeek 2\nlast 2\nlast_again 0\ncount 0\n"
            "other_device 0\nmalloc_there 0\nback 0\n");
}

TEST(ShimApi, PinnedMemoryIsTheDaemonsAtTheSameAddress) {
  FakeDaemon daemon;
  CompletedProcess process = daemon.run("pinned");
  EXPECT_EQ(process.standard_output,
            "alloc 0\ndevice_pointer 0\nsame 1\nflags 0\nflags_are 2\nfree_wrong 1\nfree 0\n"
            "free_again 1\nbad_flags 1\n");
  EXPECT_EQ(daemon.requests(Op::kHostFree).size(), 1u);
}

TEST(ShimApi, DereferencingADevicePointerIsACrash) {
  FakeDaemon daemon;
  CompletedProcess process = daemon.run("dereference");
  EXPECT_EQ(process.status.signal, SIGSEGV);
}

TEST(ShimApi, WhatKernelsPrintComesOutAtTheNextSynchronisation) {
  FakeDaemon daemon;
  daemon.answer(Op::kDeviceSync, [](Answering& answering) { answering.reply.results[5] = 12; });
  int piece = 0;
  daemon.answer(Op::kKernelOutput, [&piece](Answering& answering) {
    answering.payload = piece == 0 ? "from " : "kernel\n";
    answering.reply.results[0] = piece == 0 ? 7 : 0;
    ++piece;
  });
  CompletedProcess process = daemon.run("output");
  EXPECT_EQ(process.standard_output, "before\nfrom kernel\nsync 0\n");
}

TEST(ShimApi, ARefusedFunctionSaysItsNameOnce) {
  FakeDaemon daemon;
  CompletedProcess process = daemon.run("refused");
  EXPECT_EQ(process.standard_output, "graph 801\nlast 801\ngraph 801\narray 801\n");
  EXPECT_EQ(process.standard_error,
            "commbench sim: cudaGraphCreate is not supported\n"
            "commbench sim: cudaFreeArray is not supported\n");
}

}  // namespace
}  // namespace cb::sim
