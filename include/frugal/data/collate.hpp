// SPDX-License-Identifier: Apache-2.0
// Shapes: B samples in a batch, T positions of the longest, ... whatever one sample has.
#pragma once

#include <ATen/ATen.h>
#include <ATen/core/Tensor.h>

#include <algorithm>
#include <array>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include <frugal/core/source/batch.hpp>
#include <frugal/core/source/fields.hpp>
#include <frugal/data/batch_memory.hpp>
#include <frugal/data/fields_batch.hpp>
#include <frugal/error.hpp>

namespace frugal::detail {

/// What errors call the samples of a batch: by their number in the set, where it is known.
class SampleNames {
 public:
  SampleNames() = default;
  explicit SampleNames(std::span<std::size_t const> indices) : indices_(indices) {}

  std::string operator()(std::size_t i) const {
    if (i < indices_.size()) return "sample " + std::to_string(indices_[i]);
    return "sample " + std::to_string(i) + " of the batch";
  }

 private:
  std::span<std::size_t const> indices_{};
};

/// Requires one type and one shape of tensors that are combined into one; if they are padded, one
/// shape from the second dimension on. `part` names the part of a sample.
void require_alike(std::vector<at::Tensor> const& all, SampleNames const& name,
                   std::string const& part, bool padded);

}  // namespace frugal::detail

// A collate function makes a batch of samples: `batch(std::vector<Sample>)`, or
// `batch(std::vector<Sample>, std::span<std::size_t const> indices)` with their numbers in the set.
namespace frugal {

namespace detail {

template <class S>
concept Number = std::is_arithmetic_v<S>;

template <class S>
struct is_stackable;
template <class S>
concept StackableTuple = TupleLike<S> && []<std::size_t... I>(std::index_sequence<I...>) {
  return sizeof...(I) > 0 && (... && is_stackable<std::tuple_element_t<I, S>>::value);
}(std::make_index_sequence<std::tuple_size<S>::value>{});
template <class S>
concept StackableMap = Keyed<S> && is_stackable<typename S::mapped_type>::value;
template <class S>
concept StackableMembers = DataMember<S> && requires(S const& sample) {
  requires is_stackable<std::remove_cvref_t<decltype(sample.data)>>::value;
};
/// A tensor, a number, or a pair, tuple, array, map or example of these.
template <class S>
concept Stackable =
    IsTensor<S> || Number<S> || StackableTuple<S> || StackableMap<S> || StackableMembers<S>;
template <class S>
struct is_stackable : std::bool_constant<Stackable<S>> {};

/// The samples' parts that `take` picks.
template <class S, class Take>
auto parts_of(std::vector<S> const& samples, Take&& take) {
  std::vector<std::remove_cvref_t<std::invoke_result_t<Take&, S const&>>> parts;
  parts.reserve(samples.size());
  for (S const& sample : samples) parts.push_back(take(sample));
  return parts;
}

template <class S>
auto stacked(std::vector<S> const& samples, SampleNames const& name, std::string const& part);

template <class S, std::size_t... I>
auto stacked_tuple(std::vector<S> const& samples, SampleNames const& name,
                   std::index_sequence<I...>) {
  auto const entry = [&]<std::size_t K>(std::integral_constant<std::size_t, K>) {
    return stacked(parts_of(samples, [](S const& sample) { return std::get<K>(sample); }), name,
                   "entry " + std::to_string(K));
  };
  if constexpr (requires(S const& sample) { sample.first; }) {
    return std::pair{entry(std::integral_constant<std::size_t, I>{})...};
  } else if constexpr (requires { typename S::value_type; }) {
    return std::array{entry(std::integral_constant<std::size_t, I>{})...};
  } else {
    return std::tuple{entry(std::integral_constant<std::size_t, I>{})...};
  }
}

template <class S>
auto stacked_map(std::vector<S> const& samples, SampleNames const& name) {
  std::size_t which = 0;
  auto const entry = [&](auto const& key) {
    which = 0;
    return stacked(parts_of(samples,
                            [&](S const& sample) {
                              auto const found = sample.find(key);
                              if (found != sample.end() && sample.size() == samples[0].size()) {
                                ++which;
                                return found->second;
                              }
                              throw DataError({.what = "samples of one batch differ in their keys",
                                               .where = name(which),
                                               .why = "it has " + std::to_string(sample.size()) +
                                                      " entries, and " + name(0) + " has " +
                                                      std::to_string(samples[0].size()) +
                                                      ", among them '" + std::string(key) + "'",
                                               .fix = "Give every sample the same keys."});
                            }),
                   name, "entry '" + std::string(key) + "'");
  };
  using Value = decltype(entry(samples[0].begin()->first));
  std::map<std::string, Value> batch;
  for (auto const& [key, value] : samples[0]) batch.emplace(key, entry(key));
  return batch;
}

template <class S>
auto stacked(std::vector<S> const& samples, SampleNames const& name, std::string const& part) {
  if constexpr (IsTensor<S>) {
    require_alike(samples, name, part, /*padded=*/false);
    return stack_samples(samples);
  } else if constexpr (Number<S>) {
    using Element = std::conditional_t<std::integral<S>, std::int64_t, S>;
    return at::tensor(std::vector<Element>(samples.begin(), samples.end()));
  } else if constexpr (StackableTuple<S>) {
    return stacked_tuple(samples, name, std::make_index_sequence<std::tuple_size<S>::value>{});
  } else if constexpr (StackableMap<S>) {
    return stacked_map(samples, name);
  } else if constexpr (std::same_as<S, FieldsBatch>) {
    FieldsBatch batch;
    batch.data = stacked(parts_of(samples, [](S const& s) { return s.data; }), name, "data");
    // Where no sample has one, the batch has none.
    if (std::any_of(samples.begin(), samples.end(), [](S const& s) { return s.target.defined(); }))
      batch.target =
          stacked(parts_of(samples, [](S const& s) { return s.target; }), name, "target");
    batch.fields = stacked(parts_of(samples, [](S const& s) { return s.fields; }), name, "fields");
    return batch;
  } else {
    auto data = stacked(parts_of(samples, [](S const& s) { return s.data; }), name, "data");
    if constexpr (TargetMember<S>) {
      auto target = stacked(parts_of(samples, [](S const& s) { return s.target; }), name, "target");
      if constexpr (IsTensor<decltype(data)> && IsTensor<decltype(target)>) {
        return Batch{std::move(data), std::move(target)};
      } else {
        return std::pair{std::move(data), std::move(target)};
      }
    } else {
      return data;
    }
  }
}

}  // namespace detail

/// Stacks samples along a new first dimension, part by part: tensors become a tensor, numbers an
/// int64 tensor (or one of their floating type), examples a Batch, samples with fields a
/// FieldsBatch, pairs, tuples, arrays and maps such of what their entries become. The default.
///
/// Errors  ShapeError or DataError for samples of unlike shape, type or keys, naming both and the
///         sample; DataError for an undefined one.
struct Stack {
  template <detail::Stackable S>
  auto operator()(std::vector<S> const& samples, std::span<std::size_t const> indices = {}) const {
    return detail::stacked(samples, detail::SampleNames(indices), "data");
  }
};

}  // namespace frugal

#ifndef FRUGAL_COMPILED
#include <frugal/data/collate.ipp>
#endif
