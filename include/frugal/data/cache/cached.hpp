// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <concepts>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include <frugal/core/source/data_identity.hpp>
#include <frugal/core/source/sample_set.hpp>
#include <frugal/data/cache/cache_key.hpp>
#include <frugal/data/cache/cache_report.hpp>
#include <frugal/data/cache/kept_samples.hpp>
#include <frugal/data/cache/sample_codec.hpp>
#include <frugal/data/transform_clock.hpp>

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
                "variants with offline<K>(set, augment, settings).");
  static_assert(
      !SampleSet<Set> || IdentifiedSet<Set>,
      "frugal: cached() needs identity() of the set: a text that changes when its content "
      "may have, such as a hash, or paths with sizes and times.");
  using Sample = sample_of<Set>;
  static_assert(detail::PlainTransform<F, Sample> || !detail::RandomTransform<F, Sample>,
                "frugal: cached() would freeze the first draw of this random transform. Keep "
                "several variants with offline<K>(set, augment, settings), or apply it behind the "
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
