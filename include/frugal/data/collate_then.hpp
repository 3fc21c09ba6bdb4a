// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/core/source/data_identity.hpp>
#include <frugal/core/source/sample_set.hpp>

#include <cstddef>
#include <span>
#include <utility>
#include <vector>

namespace frugal {

namespace detail {
template <class Collate, class S>
concept TakesNumbers =
    requires(Collate const& collate, std::vector<S> samples, std::span<std::size_t const> numbers) {
      collate(std::move(samples), numbers);
    };
template <class Collate, class S>
concept TakesSamples =
    requires(Collate const& collate, std::vector<S> samples) { collate(std::move(samples)); };
}  // namespace detail

/// A collate function, and then a function of the batch: `f(batch, keys)`, where `keys` are the
/// SampleKeys of its rows, or `f(batch)`. So random transforms work on whole batches, and still
/// draw by sample:
///
///     loader(set, {.batch = 64}, CollateThen{Stack{}, Augment{RandomFlip{}, MixUp{.classes =
///     10}}})
template <class Collate, class F>
struct CollateThen {
  [[no_unique_address]] Collate collate;
  [[no_unique_address]] F then;

  template <class S>
    requires detail::TakesNumbers<Collate, S> || KeyedCollate<Collate, S> ||
             detail::TakesSamples<Collate, S>
  auto operator()(std::vector<S> samples, std::span<SampleKey const> keys) const {
    auto batch = collated(std::move(samples), keys);
    if constexpr (requires { then(std::move(batch), keys); }) {
      return then(std::move(batch), keys);
    } else {
      return then(std::move(batch));
    }
  }

  void identify(DataIdentity& to) const {
    detail::identify_transform(collate, "collate", to);
    detail::identify_transform(then, "transform", to);
  }

 private:
  template <class S>
  auto collated(std::vector<S> samples, std::span<SampleKey const> keys) const {
    if constexpr (detail::TakesNumbers<Collate, S>) {
      std::vector<std::size_t> numbers;
      numbers.reserve(keys.size());
      for (SampleKey const& key : keys) numbers.push_back(key.index);
      return collate(std::move(samples), std::span<std::size_t const>(numbers));
    } else if constexpr (KeyedCollate<Collate, S>) {
      return collate(std::move(samples), keys);
    } else {
      return collate(std::move(samples));
    }
  }
};
template <class Collate, class F>
CollateThen(Collate, F) -> CollateThen<Collate, F>;

}  // namespace frugal
