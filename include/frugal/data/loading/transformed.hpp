// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/core/source/data_identity.hpp>
#include <frugal/core/source/described_transform.hpp>
#include <frugal/core/source/sample_set.hpp>
#include <frugal/data/transform_clock.hpp>

#include <concepts>
#include <cstdint>
#include <string>
#include <type_traits>
#include <utility>

namespace frugal {

namespace detail {

template <class F, class Set>
concept TransformsByKey = std::invocable<F const&, sample_of<Set>, SampleKey const&>;
template <class F, class Set>
concept Transforms = TransformsByKey<F, Set> || std::invocable<F const&, sample_of<Set>>;

/// False, and known only once F is.
template <class F>
inline constexpr bool transforms = false;

}  // namespace detail

/// A set whose samples go through a function: decoding, tokenising, augmentation.
///
/// `function(sample)`, or `function(sample, SampleKey)` for one that draws random numbers: it takes
/// them from the key, so that they depend neither on the batch nor on the worker. It is const, and
/// called by several threads at the same time. It may write into its sample: tensors that are views
/// of the set's memory, such as those of RecordSet, are copied first (unless KeepsInput).
///
/// Names are those of the set. `identity()` exists where the set has one and the function says what
/// it is (DescribedTransform): the name of its type, its version and its settings are in it.
/// Errors  those of the set and of the function.
template <SampleSet Set, class F>
class Transformed {
  static_assert(detail::Transforms<F, Set>,
                "frugal: Transformed needs a function that takes a sample of the set, or a sample "
                "and a SampleKey, and can be called while it is const: several threads call it.");
  static constexpr bool by_key = detail::TransformsByKey<F, Set>;

 public:
  explicit Transformed(Set set, F transform)
      : set_(std::move(set)), function_(std::move(transform)) {}

  std::uint64_t size() const { return static_cast<std::uint64_t>(set_.size()); }

  auto get(SampleKey const& key) const
    requires(by_key || detail::ReadsByKey<Set>)
  {
    auto sample = read_sample(set_, key);
    detail::own_sample<F>(set_, sample);
    detail::TransformSpan const span;
    if constexpr (by_key) {
      return function_(std::move(sample), key);
    } else {
      return function_(std::move(sample));
    }
  }
  auto get(std::uint64_t index) const
    requires(!by_key && !detail::ReadsByKey<Set>)
  {
    auto sample = set_.get(index);
    detail::own_sample<F>(set_, sample);
    detail::TransformSpan const span;
    return function_(std::move(sample));
  }

  std::string name(std::uint64_t index) const { return sample_name(set_, index); }

  /// Chosen samples stay chosen: what curate/ asks before it removes any.
  std::string curated() const
    requires requires(Set const& set) {
      { set.curated() } -> std::convertible_to<std::string>;
    }
  {
    return set_.curated();
  }
  std::string identity() const
    requires IdentifiedSet<Set> && DescribedTransform<F>
  {
    return detail::key_part("set", set_.identity()) + detail::transform_text(function_);
  }
  void identify(DataIdentity& to) const {
    detail::identify(set_, to);
    detail::identify_transform(function_, "transform", to);
  }

  Set const& set() const { return set_; }
  F const& function() const { return function_; }

 private:
  Set set_;
  [[no_unique_address]] F function_;
};

}  // namespace frugal
