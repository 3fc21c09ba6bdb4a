// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <bit>
#include <cstdint>
#include <exception>
#include <future>
#include <list>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <utility>

namespace frugal::detail {

/// Decoded groups of rows, the least recently used of which go when they take more than a limit.
/// Safe to use from several threads. A group that two threads want is decoded once.
///
/// The last group stays even if it alone is above the limit, and a group that is still in use stays
/// in memory until it is not: with w threads at most w groups more than the limit holds.
template <class T>
class GroupCache {
 public:
  /// A decoded group and the bytes that it takes.
  struct Made {
    std::shared_ptr<T const> group;
    std::uint64_t bytes = 0;
  };

  explicit GroupCache(std::uint64_t limit_bytes) : limit_(limit_bytes) {}

  /// Group `key`, made by `make() -> Made` unless it is here. What `make` throws goes to all that
  /// wait for the group, and the next call tries again.
  template <class Make>
  std::shared_ptr<T const> get(std::uint64_t key, Make&& make) {
    std::promise<std::shared_ptr<T const>> promise;
    std::shared_future<std::shared_ptr<T const>> waiting;
    {
      std::lock_guard const lock(mutex_);
      if (auto const found = entries_.find(key); found != entries_.end()) {
        order_.splice(order_.begin(), order_, found->second.place);
        waiting = found->second.group;
      } else {
        order_.push_front(key);
        entries_.emplace(key, Entry{promise.get_future().share(), 0, order_.begin()});
      }
    }
    if (waiting.valid()) return waiting.get();
    try {
      Made made = std::forward<Make>(make)();
      keep(key, made.bytes);
      promise.set_value(made.group);
      return std::move(made.group);
    } catch (...) {
      forget(key);
      promise.set_exception(std::current_exception());
      throw;
    }
  }

  /// How often a group was decoded, and the bytes of those that are here.
  std::uint64_t decoded() const {
    std::lock_guard const lock(mutex_);
    return decoded_;
  }
  std::uint64_t bytes() const {
    std::lock_guard const lock(mutex_);
    return bytes_;
  }

  /// What to change if groups are decoded again and again, because the order reads from `at_once`
  /// of them at a time and the cache holds fewer; empty if it holds them, or none was decoded again
  /// yet.
  std::string warning(std::uint64_t at_once) const {
    std::lock_guard const lock(mutex_);
    if (at_once < 2 || decoded_ <= at_once) return {};
    std::uint64_t const needed = at_once * (decoded_bytes_ / decoded_);
    if (needed <= limit_) return {};
    // A power of two, so that the text is the same after a resume.
    std::uint64_t const mebibytes = std::bit_ceil(needed >> 20 | 1);
    return "the order reads from " + std::to_string(at_once) +
           " groups of rows at a time, and cache_bytes (" + std::to_string(limit_) +
           ") holds fewer, so each is decoded again and again: raise cache_bytes to " +
           std::to_string(mebibytes) +
           " MiB, read through a ShardOrder with a smaller ShuffleWindow, or write smaller groups";
  }

 private:
  struct Entry {
    std::shared_future<std::shared_ptr<T const>> group;
    std::uint64_t bytes;  ///< 0 until it is decoded
    std::list<std::uint64_t>::iterator place;
  };

  void keep(std::uint64_t key, std::uint64_t bytes) {
    std::lock_guard const lock(mutex_);
    ++decoded_;
    auto const made = entries_.find(key);
    // An entry of 0 bytes would never be seen as decoded.
    made->second.bytes = bytes == 0 ? 1 : bytes;
    decoded_bytes_ += bytes;
    bytes_ += made->second.bytes;
    for (auto each = order_.end(); bytes_ > limit_ && each != order_.begin();) {
      --each;
      auto const oldest = entries_.find(*each);
      if (*each == key || oldest->second.bytes == 0) continue;  // being decoded
      bytes_ -= oldest->second.bytes;
      entries_.erase(oldest);
      each = order_.erase(each);
    }
  }

  void forget(std::uint64_t key) {
    std::lock_guard const lock(mutex_);
    auto const failed = entries_.find(key);
    order_.erase(failed->second.place);
    entries_.erase(failed);
  }

  std::uint64_t const limit_;
  mutable std::mutex mutex_;
  std::uint64_t bytes_ = 0;
  std::uint64_t decoded_ = 0;
  std::uint64_t decoded_bytes_ = 0;
  std::list<std::uint64_t> order_;  ///< of the keys, the most recently used first
  std::unordered_map<std::uint64_t, Entry> entries_;
};

}  // namespace frugal::detail
