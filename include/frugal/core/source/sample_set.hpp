// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

namespace frugal {

/// Which sample, and in which pass over the data: what a random transform takes its random numbers
/// from, so that they depend neither on the batch nor on the worker.
struct SampleKey {
  std::uint64_t index = 0;  ///< in the set, below size()
  std::uint64_t seed = 0;   ///< that of Cursor
  std::uint64_t epoch = 0;  ///< that of Cursor

  friend bool operator==(SampleKey const&, SampleKey const&) = default;
};

namespace detail {
/// DataError unless a set of `size` samples has that one; `set` is what the error calls it.
void require_sample(std::uint64_t index, std::uint64_t size, std::string_view set);

template <class S>
concept ReadsByIndex = requires(S const& set, std::uint64_t index) { set.get(index); };
template <class S>
concept ReadsByKey = requires(S const& set, SampleKey const& key) { set.get(key); };
}  // namespace detail

/// A set of samples that is read by index, by several threads at the same time.
///
/// `size()`      samples;
/// `get(index)`  one of them, any type; or `get(SampleKey)`, for a set whose samples differ between
///               epochs. Const, and safe to call from several threads.
///
/// Optional:
/// `name(index)`  the sample's name in errors: a file, a member of an archive, a row;
/// `identity()`   a text that changes with the content of the set: a hash, or paths with sizes and
///                times. A cache of the set needs it;
/// `get_batch(indices)`  of a std::span<std::uint64_t const>: the batch that `Stack` makes of the
///                samples at these indices, in their order, but faster than one by one
///                (BatchedSet). Const and safe as get() is. It throws what get() would for the
///                first sample that is damaged.
/// `own_memory(sample)`  of a Sample&: copies what of it is a view of memory that the set shares,
///                or that is read-only. Called before a function that may write into the sample.
/// For a damaged sample a set throws DataError; its reader fails or skips the sample.
template <class S>
concept SampleSet = requires(S const& set) {
  { set.size() } -> std::convertible_to<std::uint64_t>;
} && (detail::ReadsByIndex<S> || detail::ReadsByKey<S>);

/// Sample `key.index` of the set.
template <SampleSet S>
auto read_sample(S const& set, SampleKey const& key) {
  if constexpr (detail::ReadsByKey<S>) {
    return set.get(key);
  } else {
    return set.get(key.index);
  }
}

/// A function of samples or batches that does not write into them: `static constexpr bool
/// keeps_input = true;`. It gets them as they are, where others get a copy of what the set shares.
template <class F>
concept KeepsInput = static_cast<bool>(F::keeps_input);

namespace detail {
/// Before `F` is called with a sample of the set.
template <class F, SampleSet S, class Sample>
void own_sample(S const& set, Sample& sample) {
  if constexpr (!KeepsInput<F> && requires { set.own_memory(sample); }) set.own_memory(sample);
}
}  // namespace detail

/// The type of a set's samples.
template <SampleSet S>
using sample_of = decltype(read_sample(std::declval<S const&>(), SampleKey{}));

/// A sample's name in errors, or its number.
template <SampleSet S>
std::string sample_name(S const& set, std::uint64_t index) {
  if constexpr (requires {
                  { set.name(index) } -> std::convertible_to<std::string>;
                }) {
    return set.name(index);
  } else {
    return "sample " + std::to_string(index);
  }
}

/// A set that makes a batch of samples itself, without making the samples. A loader that stacks
/// prefers it; one that skips damaged samples goes back to get() after an error.
template <class S>
concept BatchedSet =
    SampleSet<S> && detail::ReadsByIndex<S> &&
    requires(S const& set, std::span<std::uint64_t const> indices) { set.get_batch(indices); };

/// A collate function that takes the keys of its samples, for random transforms of whole batches:
/// `batch(std::vector<Sample>, std::span<SampleKey const>)`, row b of the batch being sample
/// `keys[b]`. A loader prefers the form with the samples' numbers where a function has both.
template <class C, class S>
concept KeyedCollate =
    !requires(C const& collate, std::vector<S> samples, std::span<std::size_t const> indices) {
      collate(std::move(samples), indices);
    } && requires(C const& collate, std::vector<S> samples, std::span<SampleKey const> keys) {
      collate(std::move(samples), keys);
    };

/// A set that can say whether it still holds what it held.
template <class S>
concept IdentifiedSet = SampleSet<S> && requires(S const& set) {
  { set.identity() } -> std::convertible_to<std::string>;
};

}  // namespace frugal

#ifndef FRUGAL_COMPILED
#include <frugal/core/source/sample_set.ipp>
#endif
