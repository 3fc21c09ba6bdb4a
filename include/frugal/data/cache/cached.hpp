// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/core/source/data_identity.hpp>
#include <frugal/core/source/sample_set.hpp>
#include <frugal/data/cache/cache_settings.hpp>
#include <frugal/data/cache/cache_store.hpp>
#include <frugal/data/cache/sample_codec.hpp>
#include <frugal/data/transform_clock.hpp>
#include <frugal/error.hpp>

#include <atomic>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <mutex>
#include <ostream>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

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

namespace frugal {

/// The samples of a set after a transform, which runs once for each: the first pass fills a
/// memory-mapped cache on disk, later passes and later runs read it.
///
/// Lever   idle device: preprocessing is paid once.
/// Key     the transform's type, version and settings, the set's identity() and size, the structure
///         of the samples. Another key is another cache: no stale sample is ever served.
/// Cost    8 bytes of memory a sample, and about 80 for each that is cached. A hit is a copy out
///         of the mapped file; the first hit of each entry checks its hash.
/// Crash   loses the sample that is being written. A damaged entry is computed again.
/// Shared  by the threads of a loader, and by several processes: each writes files of its own and
///         reads those of all, so a sample is computed at most once by each.
/// Errors  those of the set and of the transform, which leave nothing in the cache; SettingsError
///         without a folder; StoreError if the folder cannot be made. A failed write (a full disk)
///         is no error: the rest is computed, and one line says so.
template <class Set, class F>
class Cached {
  static_assert(SampleSet<Set>,
                "frugal: cached() needs a set of samples: size() and get(index), both const.");
  static_assert(!SampleSet<Set> || detail::ReadsByIndex<Set>,
                "frugal: cached() needs samples that are the same in every epoch, and this set "
                "draws them by seed and epoch. Cache before the random part, or keep several "
                "variants with offline(set, augment, settings).");
  static_assert(
      !SampleSet<Set> || IdentifiedSet<Set>,
      "frugal: cached() needs identity() of the set: a text that changes when its content "
      "may have, such as a hash, or paths with sizes and times.");
  using Sample = sample_of<Set>;
  static_assert(detail::PlainTransform<F, Sample> || !detail::RandomTransform<F, Sample>,
                "frugal: cached() would freeze the first draw of this random transform. Keep "
                "several variants with offline(set, augment, settings), or apply it behind the "
                "cache.");
  static_assert(detail::PlainTransform<F, Sample> || detail::RandomTransform<F, Sample>,
                "frugal: cached() needs a transform of one sample, whose operator() is const: "
                "several threads call it.");
  static_assert(
      DescribedTransform<F> || detail::HasVersion<F>,
      "frugal: cached() needs the version of the transform: `static constexpr int version "
      "= 1;`, raised when its code gives something else.");
  static_assert(DescribedTransform<F> || !detail::HasVersion<F>,
                "frugal: cached() needs the settings of the transform: `std::string settings() "
                "const`, a text with all that its results depend on. Empty if there are none.");

 public:
  using sample_type = std::remove_cvref_t<std::invoke_result_t<F const&, Sample>>;

 private:
  static_assert(CacheableSample<sample_type>,
                "frugal: cached() cannot keep what this transform gives. Give tensors, numbers, "
                "std::string, pairs, tuples, vectors, optionals or maps of these, Batch, or a type "
                "with `static constexpr std::tuple parts{&Mine::ids, &Mine::label};`.");

 public:
  explicit Cached(Set set, F transform, CacheSettings const& settings)
      : set_(std::move(set)),
        transform_(std::move(transform)),
        key_(detail::cache_key(set_, transform_, detail::sample_signature<sample_type>())),
        kept_(std::make_shared<detail::KeptSamples<sample_type>>(settings, key_, set_.size())) {}

  std::uint64_t size() const { return set_.size(); }

  sample_type get(std::uint64_t index) const {
    return kept_->get(
        index,
        [&] {
          auto sample = set_.get(index);
          detail::own_sample<F>(set_, sample);
          std::uint64_t const bytes = detail::source_bytes(set_, index, sample);
          detail::TransformSpan const span;  // else a loader would call it reading
          return std::pair{sample_type(transform_(std::move(sample))), bytes};
        },
        [&] { return name(index); });
  }

  std::string name(std::uint64_t index) const { return sample_name(set_, index); }
  /// That of the set, with what the transform makes of it.
  std::string identity() const { return key_; }
  void identify(DataIdentity& to) const {
    detail::identify(set_, to);
    detail::identify_transform(transform_, "transform", to);
  }
  std::vector<std::uint64_t> shard_sizes() const
    requires requires(Set const& set) { set.shard_sizes(); }
  {
    return set_.shard_sizes();
  }

  CacheReport report() const { return kept_->report(); }
  /// The folder of this key. remove_unused_keys() removes unused ones.
  std::filesystem::path const& folder() const noexcept { return kept_->folder(); }

 private:
  Set set_;
  F transform_;
  std::string key_;
  std::shared_ptr<detail::KeptSamples<sample_type>> kept_;  ///< shared by copies
};

/// The samples of `set` after `transform`, each computed once and kept in `settings.folder`.
template <class Set, class F>
auto cached(Set set, F transform, CacheSettings const& settings) {
  return Cached<Set, F>(std::move(set), std::move(transform), settings);
}

}  // namespace frugal
