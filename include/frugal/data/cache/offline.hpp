// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <type_traits>
#include <utility>

#include <frugal/core/source/data_identity.hpp>
#include <frugal/core/source/sample_set.hpp>
#include <frugal/data/cache/cache_settings.hpp>
#include <frugal/data/cache/cached.hpp>
#include <frugal/data/cache/sample_codec.hpp>
#include <frugal/data/transform_clock.hpp>

namespace frugal {

/// How variants are drawn and measured.
struct OfflineSettings {
  CacheSettings cache;
  std::uint64_t variants = 4;  ///< of each sample, 1 or more
  std::uint64_t seed = 0;  ///< of the variants. Runs with other seeds pick among the same variants
  /// Time now, in any steady clock; for tests.
  std::function<std::chrono::nanoseconds()> clock = [] {
    return std::chrono::duration_cast<std::chrono::nanoseconds>(
        std::chrono::steady_clock::now().time_since_epoch());
  };
};

namespace detail {

/// SettingsError for settings without a variant.
OfflineSettings with_variants(OfflineSettings settings);

/// Which of `variants` a sample has in an epoch: of each `variants` epochs in a row, counted from
/// epoch 0, each variant once, in an order of its own for every sample.
std::uint64_t variant_of(SampleKey const& key, std::uint64_t variants);

/// Times calls, and says once that they are too quick to be worth keeping.
class QuickAdvice {
 public:
  static constexpr std::uint64_t calls_wanted = 32;
  static constexpr std::chrono::milliseconds worth{20};

  /// A sentence after the call that completes the measurement, if the mean is below 20 ms.
  std::string add(std::chrono::nanoseconds spent, std::uint64_t variants);

 private:
  std::mutex mutex_;
  std::uint64_t calls_ = 0;
  std::chrono::nanoseconds spent_{0};
};

}  // namespace detail

/// Some variants of every sample (`OfflineSettings::variants`, here K), each made once by a random
/// transform and kept on disk as Cached keeps its samples; each epoch picks one of them.
///
/// Lever   idle device: for an augmentation that takes longer than a worker has for a sample.
/// Cost    K times the disk space, and variety: a model sees K variants of a sample, where the
///         transform would draw a new one each epoch. Below 20 ms a sample one line advises
///         against it, with the time that was measured.
/// Order   the variant is a function of seed, epoch and index: in every K epochs in a row, counted
///         from epoch 0, each variant of a sample comes once. It depends neither on workers nor on
///         the batch, and a resumed run repeats an uninterrupted one.
/// Errors  those of Cached; SettingsError for 0 variants.
template <class Set, class F>
class Offline {
  static_assert(SampleSet<Set> && detail::ReadsByIndex<Set>,
                "frugal: offline() needs a set of samples that are the same in every epoch: size() "
                "and get(index), both const.");
  static_assert(
      !SampleSet<Set> || IdentifiedSet<Set>,
      "frugal: offline() needs identity() of the set: a text that changes when its content "
      "may have, such as a hash, or paths with sizes and times.");
  using Sample = sample_of<Set>;
  static_assert(detail::RandomTransform<F, Sample> || !detail::PlainTransform<F, Sample>,
                "frugal: offline() keeps variants of a random transform, and this one takes no "
                "SampleKey. Keep its one result with cached(set, transform, settings).");
  static_assert(detail::RandomTransform<F, Sample> || detail::PlainTransform<F, Sample>,
                "frugal: offline() needs a transform of a sample and a SampleKey, whose operator() "
                "is const: several threads call it.");
  static_assert(DescribedTransform<F>,
                "frugal: offline() needs the version and the settings of the transform: `static "
                "constexpr int version = 1;` and `std::string settings() const`.");

 public:
  using sample_type = std::remove_cvref_t<std::invoke_result_t<F const&, Sample, SampleKey const&>>;

 private:
  static_assert(CacheableSample<sample_type>,
                "frugal: offline() cannot keep what this transform gives. Give tensors, numbers, "
                "std::string, pairs, tuples, vectors, optionals or maps of these, Batch, or a type "
                "with `static constexpr std::tuple parts{&Mine::ids, &Mine::label};`.");

 public:
  explicit Offline(Set set, F augment, OfflineSettings settings)
      : set_(std::move(set)),
        augment_(std::move(augment)),
        settings_(detail::with_variants(std::move(settings))),
        key_(detail::cache_key(set_, augment_, detail::sample_signature<sample_type>()) +
             detail::key_part("variants", std::to_string(settings_.variants)) +
             detail::key_part("seed", std::to_string(settings_.seed))),
        shared_(std::make_shared<Shared>(settings_.cache, key_, set_.size() * settings_.variants)) {
  }

  std::uint64_t size() const { return set_.size(); }
  std::uint64_t variants() const { return settings_.variants; }  ///< of each sample

  sample_type get(SampleKey const& key) const {
    std::uint64_t const variant = detail::variant_of(key, settings_.variants);
    return shared_->kept.get(
        key.index * settings_.variants + variant,
        [&] {
          auto sample = set_.get(key.index);
          detail::own_sample<F>(set_, sample);
          std::uint64_t bytes = detail::source_bytes(set_, key.index, sample);
          // The input is there once, however many variants are made of it.
          if (variant != 0 && bytes != detail::unknown_bytes) bytes = 0;
          SampleKey const drawn{.index = key.index, .seed = settings_.seed, .epoch = variant};
          detail::TransformSpan const span;  // else a loader would call it reading
          auto const began = settings_.clock();
          sample_type out = augment_(std::move(sample), drawn);
          auto const advice = shared_->quick.add(settings_.clock() - began, settings_.variants);
          if (!advice.empty()) shared_->kept.say(advice);
          return std::pair{std::move(out), bytes};
        },
        [&] { return name(key.index) + ", variant " + std::to_string(variant); });
  }

  std::string name(std::uint64_t index) const { return sample_name(set_, index); }
  std::string identity() const { return key_; }
  void identify(DataIdentity& to) const {
    detail::identify(set_, to);
    detail::identify_transform(augment_, "transform", to);
    to.add("variants",
           std::to_string(settings_.variants) + " of seed " + std::to_string(settings_.seed));
  }

  /// Counts variants, not samples.
  CacheReport report() const { return shared_->kept.report(); }
  std::filesystem::path const& folder() const noexcept { return shared_->kept.folder(); }

 private:
  struct Shared {
    Shared(CacheSettings const& settings, std::string const& key, std::uint64_t entries)
        : kept(settings, key, entries) {}
    detail::KeptSamples<sample_type> kept;
    detail::QuickAdvice quick;
  };

  Set set_;
  F augment_;
  OfflineSettings settings_;
  std::string key_;
  std::shared_ptr<Shared> shared_;
};

/// Variants of each sample of `set` by `augment(sample, SampleKey)`, kept in a cache.
template <class Set, class F>
auto offline(Set set, F augment, OfflineSettings settings) {
  return Offline<Set, F>(std::move(set), std::move(augment), std::move(settings));
}

}  // namespace frugal

#ifndef FRUGAL_COMPILED
#include <frugal/data/cache/offline.ipp>
#endif
