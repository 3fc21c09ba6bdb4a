// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/core/source/source.hpp>
#include <frugal/error.hpp>

#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <utility>
#include <vector>

namespace frugal::detail {

/// A batch that another process reads.
struct PassedOver {
  std::uint64_t samples = 0;
  std::uint64_t consumed = 0;  ///< position in the epoch after it
};

/// Counts the batches of an epoch where it is dealt, and says which are this process's.
class DivisionCounter {
 public:
  void begin(Division const& own) {
    own_ = own;
    batch_ = 0;
  }
  void count() { ++batch_; }
  /// The batches of others up to the next own one, or to the end. `pass` passes over one; its samples
  /// are 0 at the end.
  template <class Pass>
  std::vector<PassedOver> others(Pass const& pass) {
    std::vector<PassedOver> passed;
    while (!own_.has(batch_)) {
      PassedOver const each = pass();
      if (each.samples == 0) break;
      ++batch_;
      passed.push_back(each);
    }
    return passed;
  }

 private:
  Division own_{};
  std::uint64_t batch_ = 0;
};

/// What was dealt and is not asked for yet: the batches of others, and an own one after them.
///
/// `Item` has `std::vector<PassedOver> before`, those since the seek, `after`, those up to the next own
/// batch, and `bool is_batch() const`.
template <class Item>
class PassedQueue {
 public:
  void clear() {
    passed_.clear();
    own_.reset();
  }

  /// The next own batch. `take()` gives the next item, or nothing at the end.
  template <class Take>
  std::optional<Item> next(Take const& take) {
    if (passed_.empty() && !own_) fill(take);
    if (!passed_.empty()) refuse();
    std::optional<Item> item = std::exchange(own_, std::nullopt);
    if (item) passed_.assign(item->after.begin(), item->after.end());
    return item;
  }
  /// The next batch of another process; nothing at the end. `left` gets an own batch, if it is one.
  template <class Take>
  std::optional<PassedOver> skip(Take const& take, std::optional<Item>& left) {
    if (passed_.empty() && !own_) fill(take);
    if (passed_.empty()) {
      left = next(take);
      return std::nullopt;
    }
    PassedOver const first = passed_.front();
    passed_.pop_front();
    return first;
  }

 private:
  template <class Take>
  void fill(Take const& take) {
    own_ = take();
    if (!own_) return;
    passed_.assign(own_->before.begin(), own_->before.end());
    if (!own_->is_batch()) own_.reset();  // the epoch has none for this process
  }

  [[noreturn]] static void refuse() {
    throw StateError({.what = "a batch of another process is asked for",
                      .where = "training data",
                      .why = "the source is divided among processes, and this one was not read",
                      .fix = "Call skip() for it, or seek first."});
  }

  std::deque<PassedOver> passed_;
  std::optional<Item> own_;  ///< it comes after these
};

}  // namespace frugal::detail
