// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <mutex>
#include <ostream>
#include <span>
#include <string>
#include <utility>

#include <frugal/core/source/sample_set.hpp>
#include <frugal/data/cache/cache_report.hpp>
#include <frugal/data/cache/cache_store.hpp>
#include <frugal/data/cache/sample_codec.hpp>
#include <frugal/error.hpp>

namespace frugal::detail {

/// Samples of one type in a CacheStore, with the counts and the lines of a report. Cached and
/// Offline are made of it.
template <CacheableSample S>
class KeptSamples {
 public:
  KeptSamples(CacheSettings const& settings, std::string const& key, std::uint64_t samples)
      : store_(checked(settings), key, samples, settings.bytes_limit),
        samples_(samples),
        out_(settings.out) {
    complete_ = store_.totals().cached == samples;
  }

  /// The sample from the cache, or what `compute()` gives. `compute` returns a pair of the sample
  /// and the bytes of its input. `name()` is what errors call it.
  template <class Compute, class Name>
  S get(std::uint64_t index, Compute&& compute, Name&& name) {
    require_sample(index, samples_, "a cache");
    auto bytes = store_.find(index);
    if (!bytes && !complete_.load(std::memory_order_relaxed)) {
      store_.refresh();
      bytes = store_.find(index);
    }
    if (bytes) {
      hits_.fetch_add(1, std::memory_order_relaxed);
      return decoded(*bytes, name);
    }
    auto const [sample, source_bytes] = std::forward<Compute>(compute)();
    computed_.fetch_add(1, std::memory_order_relaxed);
    SampleEncoder encoder;
    encoder.add(sample);
    if (store_.put(index, encoder.bytes(), source_bytes)) {
      say_if_complete();
    } else if (!said_stopped_.exchange(true)) {
      say("the cache keeps no more samples, and computes the rest: " + store_.why() + ". " +
          report().text());
    }
    // Decoded, so that a sample is the same in each epoch: contiguous, on the host, its own memory.
    return decoded(encoder.bytes(), name);
  }

  CacheReport report() const {
    CacheTotals const totals = store_.totals();
    return {.samples = samples_,
            .cached = totals.cached,
            .bytes_before = totals.source_bytes,
            .bytes_after = totals.bytes,
            .bytes_on_disk = totals.disk_bytes,
            .hits = hits_.load(std::memory_order_relaxed),
            .computed = computed_.load(std::memory_order_relaxed),
            .damaged = totals.damaged,
            .stopped = store_.keeps() ? "" : store_.why()};
  }

  std::filesystem::path const& folder() const noexcept { return store_.folder(); }

  /// Workers call it: one at a time, since a stream of the user's may not be shared.
  void say(std::string const& line) const {
    if (out_ == nullptr) return;
    std::lock_guard const lock(said_);
    *out_ << "frugal: " + line + "\n" << std::flush;
  }

 private:
  static std::filesystem::path const& checked(CacheSettings const& settings) {
    if (!settings.folder.empty()) return settings.folder;
    throw SettingsError({.what = "the cache has no folder",
                         .where = "CacheSettings::folder",
                         .why = "",
                         .fix = "Set one on a disk that is faster than the transform."});
  }

  /// The name is asked for only where it is needed: it may take longer than the sample.
  template <class Name>
  static S decoded(std::span<std::byte const> bytes, Name&& name) {
    try {
      return SampleDecoder(bytes, "").template all<S>();
    } catch (DataError const& error) {
      Fault fault = error.fault();
      fault.where = std::forward<Name>(name)();
      throw DataError(std::move(fault));
    }
  }

  void say_if_complete() {
    if (complete_.load(std::memory_order_relaxed)) return;
    // After the sample was written: of several processes the last one sees those of all.
    store_.refresh();
    if (store_.totals().cached != samples_) return;
    if (!complete_.exchange(true)) say("the cache is complete, " + report().text());
  }

  CacheStore store_;
  std::uint64_t samples_;
  std::ostream* out_;
  mutable std::mutex said_;
  std::atomic<bool> complete_{false};  ///< has been: damaged entries are computed again
  std::atomic<bool> said_stopped_{false};
  std::atomic<std::uint64_t> hits_{0};
  std::atomic<std::uint64_t> computed_{0};
};

/// Bytes of a sample before a transform, if that is known: `sample_bytes(index)` of the set, a
/// member `bytes()` of the sample, or the content of a sample of known parts.
template <class Set, class Sample>
std::uint64_t source_bytes(Set const& set, std::uint64_t index, Sample const& sample) {
  if constexpr (requires {
                  { set.sample_bytes(index) } -> std::convertible_to<std::uint64_t>;
                }) {
    return set.sample_bytes(index);
  } else if constexpr (CacheableSample<Sample>) {
    return content_bytes(sample);
  } else if constexpr (requires {
                         { sample.bytes() } -> std::convertible_to<std::uint64_t>;
                       }) {
    return sample.bytes();
  } else {
    return unknown_bytes;
  }
}

}  // namespace frugal::detail
