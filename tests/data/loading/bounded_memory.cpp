// SPDX-License-Identifier: Apache-2.0
// A loader's memory is bounded by what it reads ahead, whatever the size of the set.
#include <frugal/data/loading/loader.hpp>

#include <frugal/data/shards/record_set.hpp>
#include <frugal/data/shards/shard_writer.hpp>

#include <doctest/doctest.h>

#include "support/files.hpp"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <fstream>
#include <string>
#include <thread>

#include <sys/resource.h>

namespace frugal_test::data_bounded_memory {

using frugal::RecordSet;
using support::TemporaryFolder;

constexpr std::int64_t mib = 1 << 20;
constexpr std::int64_t sample_bytes = 4 * mib;
constexpr std::int64_t samples = 64;  // 256 MiB

/// Bytes of this process that the limit counts: private memory that can be written to.
std::uint64_t data_bytes() {
  std::ifstream status("/proc/self/status");
  for (std::string word; status >> word;) {
    if (word != "VmData:") continue;
    std::uint64_t kib = 0;
    status >> kib;
    return kib * 1024;
  }
  FAIL("/proc/self/status has no VmData");
  return 0;
}

/// While it exists, this process may add so many bytes to its memory.
class MemoryLimit {
 public:
  explicit MemoryLimit(std::int64_t more) {
    REQUIRE(::getrlimit(RLIMIT_DATA, &before_) == 0);
    rlimit now = before_;
    now.rlim_cur = data_bytes() + static_cast<std::uint64_t>(more);
    REQUIRE(::setrlimit(RLIMIT_DATA, &now) == 0);
  }
  ~MemoryLimit() { ::setrlimit(RLIMIT_DATA, &before_); }
  MemoryLimit(MemoryLimit const&) = delete;
  MemoryLimit& operator=(MemoryLimit const&) = delete;

 private:
  rlimit before_{};
};

std::int64_t read_all(std::string const& folder, std::size_t depth) {
  auto source = frugal::loader(RecordSet<>(folder), {.batch = 1, .shuffle = false}, frugal::Stack{},
                               {.workers = 2, .depth = depth});
  source.seek({.seed = 1});
  std::int64_t sum = 0;
  auto const first = source.next();
  sum += first->target.item<std::int64_t>();
  std::this_thread::sleep_for(std::chrono::milliseconds(300));  // it reads ahead as far as it may
  while (auto batch = source.next()) sum += batch->target.item<std::int64_t>();
  return sum;
}

TEST_CASE("a set that is larger than the memory limit is read") {
  TemporaryFolder const folder;
  std::string const path = (folder / "set").string();
  {
    frugal::ShardWriter writer(path, {.records_per_shard = 16});
    for (std::int64_t i = 0; i < samples; ++i) {
      writer.add(
          frugal::Batch{at::full({sample_bytes}, i, at::kByte), at::scalar_tensor(i, at::kLong)});
    }
    writer.close();
  }
  constexpr std::int64_t sum = samples * (samples - 1) / 2;
  REQUIRE(read_all(path, 4) == sum);  // what is made once has been made now

  // Depth 4, two workers and the batch in use are 28 MiB; a thread's stack counts as 8.
  MemoryLimit const limit(100 * mib);
  CHECK_THROWS(at::full({samples * sample_bytes}, 1, at::kByte));  // the set would not fit
  CHECK(read_all(path, 4) == sum);
  CHECK(read_all(path, 4) == sum);
}

}  // namespace frugal_test::data_bounded_memory
