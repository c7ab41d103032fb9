#include "simulator/bench/workloads.h"

#include <cstring>
#include <map>

#include "base/check.h"
#include "simulator/bench/plain_loops.h"
#include "simulator/decode/decode.h"

namespace cb::sim {

extern const char kBenchPtx[];

namespace {

constexpr uint64_t kCopyFloats = (uint64_t{64} << 20) / sizeof(float);
constexpr uint64_t kReduceFloats = (uint64_t{16} << 20) / sizeof(float);
constexpr int kDevices = 8;
constexpr uint32_t kReduceBlocks = 36;
constexpr uint32_t kTiledSize = 512;
constexpr uint32_t kNaiveSize = 256;

/// Parameters laid out as the kernel's signature: each at a multiple of its size.
class Parameters {
 public:
  template <typename T>
  Parameters& add(T value, size_t align = alignof(T)) {
    bytes_.resize((bytes_.size() + align - 1) / align * align);
    bytes_.resize(bytes_.size() + sizeof value);
    std::memcpy(bytes_.data() + bytes_.size() - sizeof value, &value, sizeof value);
    return *this;
  }
  std::vector<std::byte> take() { return std::move(bytes_); }

 private:
  std::vector<std::byte> bytes_;
};

/// Small whole numbers, so that sums are exact in any order.
void fill(float* values, uint64_t count, uint32_t salt) {
  for (uint64_t i = 0; i < count; ++i) {
    values[i] = static_cast<float>((i * 2654435761u + salt) >> 7 & 15);
  }
}

std::function<bool()> start_copy(Workbench& bench) {
  float* source = bench.floats(0, kCopyFloats);
  float* target = bench.floats(0, kCopyFloats);
  fill(source, kCopyFloats, 1);
  auto parameters = Parameters().add(source).add(target).add(static_cast<int>(kCopyFloats / 4));
  bench.launch("copy", 0, {132 * 4, 1, 1}, {512, 1, 1}, parameters.take());
  return [=] { return std::memcmp(source, target, kCopyFloats * sizeof(float)) == 0; };
}

std::function<void()> plain_copy_of_vectors() {
  auto source = std::make_shared<std::vector<float>>(kCopyFloats, 1.0f);
  auto target = std::make_shared<std::vector<float>>(kCopyFloats, 2.0f);
  return [=] { plain_copy(source->data(), target->data(), kCopyFloats); };
}

std::function<void()> plain_all_reduce_of_vectors() {
  auto vectors = std::make_shared<std::vector<std::vector<float>>>(
      2 * kDevices, std::vector<float>(kReduceFloats, 1.0f));
  return [=] {
    std::vector<const float*> inputs;
    std::vector<float*> outputs;
    for (size_t i = 0; i < kDevices; ++i) {
      inputs.push_back((*vectors)[i].data());
      outputs.push_back((*vectors)[kDevices + i].data());
    }
    plain_all_reduce(inputs, outputs, kReduceFloats);
  };
}

template <auto matmul>
std::function<void()> plain_matmul_of_vectors(uint32_t size) {
  auto vectors = std::make_shared<std::vector<std::vector<float>>>(
      3, std::vector<float>(size_t{size} * size, 1.0f));
  return [=] { matmul((*vectors)[0].data(), (*vectors)[1].data(), (*vectors)[2].data(), size); };
}

struct Peers {
  const float* input[kDevices];
  uint32_t* flags[kDevices];
};

std::function<bool()> start_all_reduce(Workbench& bench) {
  Peers peers = {};
  std::vector<float*> outputs;
  for (int device = 0; device < kDevices; ++device) {
    float* input = bench.floats(device, kReduceFloats);
    fill(input, kReduceFloats, static_cast<uint32_t>(device));
    peers.input[device] = input;
    peers.flags[device] = bench.words(device, kReduceBlocks * kDevices);
    outputs.push_back(bench.floats(device, kReduceFloats));
  }
  for (int device = 0; device < kDevices; ++device) {
    auto parameters = Parameters()
                          .add(peers, 8)
                          .add(outputs[static_cast<size_t>(device)])
                          .add(static_cast<int>(kReduceFloats / 4))
                          .add(device);
    bench.launch("all_reduce", device, {kReduceBlocks, 1, 1}, {512, 1, 1}, parameters.take());
  }
  return [=] {
    for (uint64_t i = 0; i < kReduceFloats; i += 37) {
      float sum = 0;
      for (const float* input : peers.input) sum += input[i];
      for (const float* output : outputs) {
        if (output[i] != sum) return false;
      }
    }
    return true;
  };
}

std::function<bool()> start_matmul(Workbench& bench, const std::string& kernel, uint32_t size) {
  uint64_t count = uint64_t{size} * size;
  float* a = bench.floats(0, count);
  float* b = bench.floats(0, count);
  float* c = bench.floats(0, count);
  fill(a, count, 1);
  fill(b, count, 2);
  auto parameters = Parameters().add(a).add(b).add(c).add(static_cast<int>(size));
  uint32_t tiles = size / 32;
  bench.launch(kernel, 0, {tiles, tiles, 1}, {32, 32, 1}, parameters.take());
  return [=] {
    for (uint64_t row = 0; row < size; row += 19) {
      for (uint64_t column = 0; column < size; column += 7) {
        float sum = 0;
        for (uint64_t k = 0; k < size; ++k) sum += a[row * size + k] * b[k * size + column];
        if (c[row * size + column] != sum) return false;
      }
    }
    return true;
  };
}

std::shared_ptr<const Program> program_of(const Profile& profile, const std::string& kernel) {
  static std::map<std::string, std::shared_ptr<const Program>> programs;
  auto& program = programs[kernel];
  if (program == nullptr) {
    auto module = std::make_shared<const ptx::Module>(value_or_throw(ptx::parse(kBenchPtx)));
    program = value_or_throw(decode(module, kernel, StallModel::of(profile)));
  }
  return program;
}

}  // namespace

Workbench::Workbench(const Profile& profile, bool timed) : profile_(profile) {
  memory_ = std::make_unique<AddressSpace>(kDevices, kDevices, profile.device.global_memory_bytes,
                                           MemoryQuota{});
  engine_ = std::make_unique<Engine>(*memory_, profile, EngineOptions{.timed = timed});
}

float* Workbench::floats(int device, uint64_t count) {
  return reinterpret_cast<float*>(words(device, count));
}

uint32_t* Workbench::words(int device, uint64_t count) {
  const Allocation* allocation = memory_->allocate({.rank = device,
                                                    .device = device,
                                                    .bytes = count * sizeof(uint32_t),
                                                    .kind = Allocation::Kind::kSymmetric,
                                                    .zeroed = true});
  CB_CHECK(allocation != nullptr, "the benchmark's buffers fit");
  memory_->grant_everyone(allocation->base);
  std::memset(reinterpret_cast<void*>(allocation->base), 0, count * sizeof(uint32_t));
  return reinterpret_cast<uint32_t*>(allocation->base);
}

void Workbench::launch(const std::string& kernel, int device, const uint32_t (&grid)[3],
                       const uint32_t (&block)[3], std::vector<std::byte> parameters) {
  KernelLaunch launch;
  launch.program = program_of(profile_, kernel);
  launch.variables = std::make_shared<const std::vector<uint64_t>>();
  launch.rank = device;
  launch.device = device;
  std::memcpy(launch.grid, grid, sizeof launch.grid);
  std::memcpy(launch.block, block, sizeof launch.block);
  launch.registers = 32;
  launch.static_shared_bytes = launch.program->static_shared_bytes;
  launch.parameters = std::move(parameters);
  launch.name = kernel;
  ++running_;
  engine_->start(std::move(launch), [this](Time, bool failed) {
    --running_;
    failed_ |= failed;
  });
}

Time Workbench::finish() {
  engine_->run(kNever - 1);
  if (!engine_->findings().empty()) {
    const Finding& finding = engine_->findings().front();
    throw Error(ErrorCode::kRemote, "the benchmark kernel failed: " + finding.detail);
  }
  if (failed_ || running_ != 0) throw Error(ErrorCode::kRemote, "the benchmark kernel hangs");
  return engine_->now();
}

uint64_t Workbench::warp_instructions() const {
  uint64_t total = 0;
  for (int rank = 0; rank < kDevices; ++rank) total += engine_->stats(rank).warp_instructions;
  return total;
}

std::vector<Workload> workloads() {
  return {
      {"copy", start_copy, plain_copy_of_vectors},
      {"all_reduce", start_all_reduce, plain_all_reduce_of_vectors},
      {"matmul_tiled",
       [](Workbench& bench) { return start_matmul(bench, "matmul_tiled", kTiledSize); },
       [] { return plain_matmul_of_vectors<plain_matmul_tiled>(kTiledSize); }},
      {"matmul_naive",
       [](Workbench& bench) { return start_matmul(bench, "matmul_naive", kNaiveSize); },
       [] { return plain_matmul_of_vectors<plain_matmul_naive>(kNaiveSize); }},
  };
}

}  // namespace cb::sim
