// SPDX-License-Identifier: Apache-2.0
// needs: cluster
// left to clang: shard.cpp has the same templates
#include <doctest/doctest.h>

#include <frugal/cluster/replicate/ring_gradients.hpp>

#include <cstdint>
#include <limits>
#include <vector>

namespace frugal_test::cluster_ring_gradients {

using frugal::detail::BucketMessage;

at::Tensor words_of(std::int64_t process) {
  return at::tensor(std::vector<std::int64_t>{std::numeric_limits<std::int64_t>::min(), -1, 0,
                                              process, std::numeric_limits<std::int64_t>::max(),
                                              0x7ff8000000000001, 0x00ff00ff80018000},
                    at::kLong);
}

TEST_CASE("every bit of every process's numbers comes through a sum in the bucket's type") {
  constexpr std::int64_t processes = 3, words = 7;
  for (at::ScalarType type : {at::kFloat, at::kDouble, at::kBFloat16, at::kHalf}) {
    CAPTURE(at::toString(type));
    at::Tensor sum;
    std::vector<at::Tensor> buckets;
    std::vector<BucketMessage> messages;
    for (std::int64_t process = 0; process < processes; ++process) {
      BucketMessage message = *BucketMessage::of(type, processes, words);
      buckets.push_back(at::full({message.lanes()}, 7.0, type));  // what the last window has left
      message.set_lanes(buckets.back());
      message.write(words_of(process), process);
      messages.push_back(message);
      sum = process == 0 ? buckets.back().clone() : sum + buckets.back();
    }
    for (std::int64_t process = 0; process < processes; ++process) {
      buckets[static_cast<std::size_t>(process)].copy_(sum);
      at::Tensor const rows = messages[static_cast<std::size_t>(process)].read();
      CHECK(rows.sizes() == at::IntArrayRef({processes, words}));
      for (std::int64_t each = 0; each < processes; ++each) CHECK(rows[each].equal(words_of(each)));
    }
  }
}

TEST_CASE("a bucket of another type takes no message") {
  CHECK_FALSE(BucketMessage::of(at::kLong, 2, 3));
  CHECK_FALSE(BucketMessage::of(at::kComplexFloat, 2, 3));
}

}  // namespace frugal_test::cluster_ring_gradients
