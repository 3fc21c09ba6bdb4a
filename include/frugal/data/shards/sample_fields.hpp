// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/ATen.h>

#include <array>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>

#include <frugal/core/source/batch.hpp>
#include <frugal/core/source/fields.hpp>
#include <frugal/error.hpp>

// How a sample is one record: its parts in their order, each a tensor or a number.
namespace frugal {
namespace detail {

template <class P>
concept RecordPart = IsTensor<P> || std::is_arithmetic_v<P>;

template <class S>
concept RecordTuple = TupleLike<S> && []<std::size_t... I>(std::index_sequence<I...>) {
  return sizeof...(I) > 0 && (... && RecordPart<std::tuple_element_t<I, S>>);
}(std::make_index_sequence<std::tuple_size<S>::value>{});

template <class S>
concept RecordMembers = TargetMember<S> && requires(S const& sample) {
  requires RecordPart<std::remove_cvref_t<decltype(sample.data)>>;
  requires RecordPart<std::remove_cvref_t<decltype(sample.target)>>;
  requires std::constructible_from<S, decltype(sample.data), decltype(sample.target)> ||
               std::is_aggregate_v<S>;
  requires sizeof(S) == sizeof(std::pair<std::remove_cvref_t<decltype(sample.data)>,
                                         std::remove_cvref_t<decltype(sample.target)>>);
};

template <class S>
concept RecordMap = std::same_as<S, std::map<std::string, at::Tensor>>;

/// A number as records have it: what Stack makes of it in a batch.
template <class Number>
using stored_number = std::conditional_t<std::is_integral_v<Number>, std::int64_t,
                                         std::conditional_t<sizeof(Number) == 4, float, double>>;

}  // namespace detail

/// A sample that records of fixed size hold: a tensor, a number, a pair, tuple or array of these,
/// a Batch or its like, a map from names to tensors.
template <class S>
concept RecordSample = detail::RecordPart<S> || detail::RecordTuple<S> ||
                       detail::RecordMembers<S> || detail::RecordMap<S>;

namespace detail {

/// Tensors and numbers of a sample whose type says how many there are; 0: a map.
template <RecordSample S>
constexpr std::size_t record_parts() {
  if constexpr (RecordPart<S>) {
    return 1;
  } else if constexpr (RecordTuple<S>) {
    return std::tuple_size<S>::value;
  } else {
    return RecordMembers<S> ? 2 : 0;
  }
}

/// Calls `visit(name, part)` for the parts of a sample.
template <RecordSample S, class Visit>
void each_record_part(S const& sample, Visit&& visit) {
  if constexpr (RecordPart<S>) {
    visit(std::string("data"), sample);
  } else if constexpr (RecordTuple<S>) {
    [&]<std::size_t... I>(std::index_sequence<I...>) {
      (visit(std::to_string(I), std::get<I>(sample)), ...);
    }(std::make_index_sequence<std::tuple_size<S>::value>{});
  } else if constexpr (RecordMembers<S>) {
    visit(std::string("data"), sample.data);
    visit(std::string("target"), sample.target);
  } else {
    for (auto const& [name, tensor] : sample) visit(name, tensor);
  }
}

/// A part as a tensor in host memory, without gaps. DataError for an undefined one.
template <RecordPart P>
at::Tensor record_tensor(P const& part, std::string const& name) {
  if constexpr (IsTensor<P>) {
    if (!part.defined()) {
      throw DataError({.what = "a tensor of the sample is undefined",
                       .where = "'" + name + "'",
                       .why = "",
                       .fix = "Store samples of a type without it, such as at::Tensor for data "
                              "without a target."});
    }
    return part.detach().cpu().contiguous();
  } else {
    return at::scalar_tensor(static_cast<stored_number<P>>(part),
                             c10::CppTypeToScalarType<stored_number<P>>::value);
  }
}

/// A sample of parts: `part(k, std::type_identity<P>())` gives the k-th, and `name(k)` its name.
template <RecordSample S, class Part, class Name>
S record_sample(Part&& part, std::size_t parts, Name&& name) {
  if constexpr (RecordPart<S>) {
    return part(0, std::type_identity<S>());
  } else if constexpr (RecordTuple<S>) {
    return [&]<std::size_t... I>(std::index_sequence<I...>) {
      return S{part(I, std::type_identity<std::tuple_element_t<I, S>>())...};
    }(std::make_index_sequence<std::tuple_size<S>::value>{});
  } else if constexpr (RecordMembers<S>) {
    return S{part(0, std::type_identity<std::remove_cvref_t<decltype(S::data)>>()),
             part(1, std::type_identity<std::remove_cvref_t<decltype(S::target)>>())};
  } else {
    S sample;
    for (std::size_t k = 0; k < parts; ++k) {
      sample.emplace(name(k), part(k, std::type_identity<at::Tensor>()));
    }
    return sample;
  }
}

template <class S>
struct record_batch;
template <RecordPart S>
struct record_batch<S> : std::type_identity<at::Tensor> {};
template <RecordMembers S>
struct record_batch<S> : std::type_identity<Batch> {};
template <RecordMap S>
struct record_batch<S> : std::type_identity<S> {};
template <class A, class B>
struct record_batch<std::pair<A, B>> : std::type_identity<std::pair<at::Tensor, at::Tensor>> {};
template <class... A>
struct record_batch<std::tuple<A...>>
    : std::type_identity<std::tuple<std::conditional_t<true, at::Tensor, A>...>> {};
template <class A, std::size_t N>
struct record_batch<std::array<A, N>> : std::type_identity<std::array<at::Tensor, N>> {};

/// What Stack makes of such samples.
template <RecordSample S>
using record_batch_of = typename record_batch<S>::type;

}  // namespace detail
}  // namespace frugal
