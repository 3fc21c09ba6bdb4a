// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/ATen.h>

#include <cstdint>
#include <optional>

namespace frugal::detail {

/// Messages of 64-bit numbers in a bucket of floating-point gradients that is summed over processes.
/// Each number is cut into small integers, which the bucket's type holds exactly; a process fills its
/// own row, and the others have zeros there. So the sum has every row as it was.
class BucketMessage {
 public:
  /// `type`: in which the bucket is summed. Nothing for a type that holds no such integers.
  static std::optional<BucketMessage> of(at::ScalarType type, std::int64_t processes,
                                         std::int64_t words) {
    switch (type) {
      case at::kFloat:
      case at::kDouble:
        return BucketMessage(at::kShort, processes, words);
      case at::kBFloat16:
      case at::kHalf:
        return BucketMessage(at::kChar, processes, words);
      default:
        return std::nullopt;
    }
  }

  /// Elements of the bucket that they take.
  std::int64_t lanes() const { return processes_ * words_ * lanes_of_a_word_; }
  /// Where they are.
  void set_lanes(at::Tensor const& lanes) { rows_ = lanes.view({processes_, -1}); }

  /// `message`: the process's own, of the given number of words.
  void write(at::Tensor const& message, std::int64_t process) {
    rows_.zero_();
    rows_[process].copy_(message.view(lane_));
  }
  /// Those of all, after the sum: [processes, words].
  at::Tensor read() const { return rows_.to(lane_).view(at::kLong); }

 private:
  BucketMessage(at::ScalarType lane, std::int64_t processes, std::int64_t words)
      : lane_(lane),
        processes_(processes),
        words_(words),
        lanes_of_a_word_(8 / static_cast<std::int64_t>(at::elementSize(lane))) {}

  at::ScalarType lane_;  ///< a small integer
  std::int64_t processes_;
  std::int64_t words_;
  std::int64_t lanes_of_a_word_;
  at::Tensor rows_;  ///< [processes, lanes of a message]
};

}  // namespace frugal::detail
