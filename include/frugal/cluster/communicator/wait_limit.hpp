// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace frugal::detail {

/// What a rank says of its work on checkpoints.
struct BusyTime {
  std::uint64_t total = 0;  ///< microseconds of it so far
  bool now = false;
};

/// The limit of a wait for other ranks. It runs while no rank is busy, and begins again when one was:
/// what a rank does between two looks is in its total. The total of a rank that has ended stands still.
///
/// The rank that waits counts, too: another one may wait for what a thread of this one writes.
class WaitLimit {
 public:
  using Time = std::chrono::milliseconds;

  /// `beat`: after this time a rank says again how long it has been busy.
  WaitLimit(Time limit, Time beat)
      : limit_(limit),
        pause_(std::clamp<Time>(limit / 8, Time(1), std::chrono::seconds(5))),
        late_(5 * beat) {}

  /// So much time has passed, in which this process was not stopped.
  void pass(Time time) {
    waited_ += time;
    unseen_ += time;
  }
  bool wants_look() const { return unseen_ >= pause_; }
  /// After a look at all ranks: whether the wait has to end. Empty: they could not be seen.
  bool is_over(std::vector<BusyTime> const& now) {
    unseen_ = Time(0);
    bool was_busy = false, is_busy = false;
    for (std::size_t rank = 0; rank < now.size(); ++rank) {
      is_busy = is_busy || now[rank].now;
      was_busy =
          was_busy || (before_.empty() ? now[rank].now : now[rank].total > before_[rank].total);
    }
    if (was_busy) waited_ = Time(0);
    if (!now.empty()) before_ = now;
    // A busy rank whose beat is late may have ended.
    return waited_ >= limit_ + (is_busy ? late_ : Time(0));
  }

 private:
  Time limit_, pause_, late_;
  Time waited_{0};  ///< since a rank was busy
  Time unseen_{0};  ///< since the last look
  std::vector<BusyTime> before_{};
};

}  // namespace frugal::detail
