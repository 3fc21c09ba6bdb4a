// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>

#include <concepts>
#include <cstddef>
#include <ranges>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>

#include <frugal/error.hpp>

namespace frugal {

namespace detail {

template <class B>
concept IsTensor = std::derived_from<B, at::Tensor>;

template <class B>
concept TupleLike = !IsTensor<B> && requires { std::tuple_size<B>::value; };

/// std::map, std::unordered_map and their like, with keys that a literal can name.
template <class B>
concept Keyed =
    !IsTensor<B> && std::constructible_from<typename B::key_type, char const*> &&
    requires(B const& batch, typename B::key_type const& key) { batch.find(key)->second; };

/// std::vector and its like.
template <class B>
concept Listed =
    !IsTensor<B> && !TupleLike<B> && !Keyed<B> && std::ranges::random_access_range<B const> &&
    std::ranges::sized_range<B const> && !std::convertible_to<B const&, std::string_view>;

template <class B>
concept DataMember = !IsTensor<B> && !TupleLike<B> && requires(B const& batch) { batch.data; };
template <class B>
concept TargetMember = DataMember<B> && requires(B const& batch) { batch.target; };

template <std::size_t I, class B>
auto const& entry_of(B const& batch, char const* field) {
  if (batch.size() > I) return batch[I];
  throw DataError({.what = std::string("the batch has no ") + field,
                   .where = "a list of " + std::to_string(batch.size()),
                   .why = "the first of a list is the data, the second the target",
                   .fix = "Give the list " + std::to_string(I + 1) +
                          " entries, or take "
                          "an objective that reads the batch itself."});
}

/// The entry of the first key, or else that of the second; null if there is neither.
template <class B>
auto const* entry_if(B const& map, char const* first, char const* second) {
  using Key = typename B::key_type;
  auto found = map.find(Key(first));
  if (found == map.end()) found = map.find(Key(second));
  return found == map.end() ? nullptr : &found->second;
}

/// The entry of either name; throws DataError if there is neither.
template <class B>
auto const& entry_of(B const& batch, char const* first, char const* second) {
  if (auto const* const found = entry_if(batch, first, second)) return *found;
  std::string keys;
  for (auto const& entry : batch) {
    keys += (keys.empty() ? "'" : ", '") + std::string(std::string_view(entry.first)) + "'";
  }
  throw DataError(
      {.what = std::string("the batch has neither '") + first + "' nor '" + second + "'",
       .where = "a map of " + std::to_string(batch.size()),
       .why = keys.empty() ? "it is empty" : "its keys are " + keys,
       .fix = "Name an entry so, or take an objective that reads the batch itself."});
}

}  // namespace detail

/// A batch with data for the module.
template <class B>
concept HasData = detail::IsTensor<B> || detail::DataMember<B> || detail::Keyed<B> ||
                  detail::Listed<B> || (detail::TupleLike<B> && std::tuple_size<B>::value >= 1);

/// A batch with a target for the module's output.
template <class B>
concept HasTarget = detail::TargetMember<B> || detail::Keyed<B> || detail::Listed<B> ||
                    (detail::TupleLike<B> && std::tuple_size<B>::value >= 2);

/// The module's input: the member `data`; a bare tensor itself; the first element of a pair, tuple,
/// array or vector; of a map the entry "data", or else "input_ids". It may have several tensors, as
/// in a pair of a tuple and a target.
/// Throws DataError for an empty vector, and for a map with neither key; names its keys.
template <HasData B>
auto const& batch_data(B const& batch) {
  if constexpr (detail::IsTensor<B>) {
    return batch;
  } else if constexpr (detail::DataMember<B>) {
    return batch.data;
  } else if constexpr (detail::TupleLike<B>) {
    return std::get<0>(batch);
  } else if constexpr (detail::Keyed<B>) {
    return detail::entry_of(batch, "data", "input_ids");
  } else {
    return detail::entry_of<0>(batch, "data");
  }
}

/// The target of the module's output: the member `target`; the second element of a pair, tuple,
/// array or vector; of a map the entry "target", or else "labels". Does not compile for a bare
/// tensor. Throws DataError as batch_data() does.
template <HasTarget B>
auto const& batch_target(B const& batch) {
  if constexpr (detail::TargetMember<B>) {
    return batch.target;
  } else if constexpr (detail::TupleLike<B>) {
    return std::get<1>(batch);
  } else if constexpr (detail::Keyed<B>) {
    return detail::entry_of(batch, "target", "labels");
  } else {
    return detail::entry_of<1>(batch, "target");
  }
}

}  // namespace frugal
