// SPDX-License-Identifier: Apache-2.0
// Shapes: B samples in a batch, ... whatever one sample has.
#pragma once

#include <frugal/core/source/batch.hpp>
#include <frugal/core/source/fields.hpp>
#include <frugal/core/source/sample_set.hpp>
#include <frugal/data/batch_memory.hpp>
#include <frugal/data/shards/record_file.hpp>
#include <frugal/data/tensor_dtype.hpp>
#include <frugal/error.hpp>

#include <ATen/ATen.h>

#include <array>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

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

/// Samples in record shards: a folder that ShardWriter wrote, or one safetensors file.
///
/// `RecordSet<>` gives a Batch of one sample's data and target; `RecordSet<at::Tensor>`, of a pair,
/// tuple, array, number or `std::map<std::string, at::Tensor>` likewise; `RecordSet<std::string>`
/// gives the bytes of records of any bytes. Parts are taken in their order, those of a map by name.
///
/// get(i)        views of the mapped file: no copy. Do not write into them: the memory is
///               read-only (own_memory() copies; Transformed and cached() call it). They outlive
///               the set.
/// get_batch(i)  the batch that Stack makes of the samples: one allocation per tensor, one memcpy
///               per sample, or per run of neighbours.
/// Errors        DataError if the records do not have the parts of the sample type; else those of
///               RecordFolder.
template <class S = Batch>
class RecordSet {
  static constexpr bool is_text = std::same_as<S, std::string>;
  static_assert(is_text || RecordSample<S>,
                "frugal: RecordSet cannot make this type of sample of a record. Take Batch, a "
                "tensor, a number, a pair, tuple or array of these, std::map<std::string, "
                "at::Tensor>, or std::string for records of any bytes.");

 public:
  explicit RecordSet(std::filesystem::path const& path, RecordReading reading = {})
      : records_(path, reading), name_(path.string()) {
    require_parts();
  }

  std::uint64_t size() const noexcept { return records_.size(); }

  S get(std::uint64_t index) const {
    if constexpr (is_text) {
      auto const bytes = records_.get(index);
      return {reinterpret_cast<char const*>(bytes.data()), bytes.size()};
    } else {
      auto const place = records_.place(index);
      auto const& file = records_.file(place.shard);
      return detail::record_sample<S>(
          [&]<class P>(std::size_t k, std::type_identity<P>) {
            std::byte const* const at = file->get(place.record, k).data();
            if constexpr (detail::IsTensor<P>) {
              return view(fields_[k], at, file);
            } else {
              detail::stored_number<P> number;
              std::memcpy(&number, at, sizeof number);
              return static_cast<P>(number);
            }
          },
          fields_.size(), [&](std::size_t k) { return layout().fields()[k].name; });
    }
  }

  /// A batch of the samples at the indices, each below size(), in their order.
  auto get_batch(std::span<std::uint64_t const> indices) const
    requires RecordSample<S>
  {
    std::vector<RecordFolder::Place> places;
    places.reserve(indices.size());
    for (std::uint64_t const index : indices) places.push_back(records_.place(index));
    std::vector<std::byte const*> rows(places.size());
    return detail::record_sample<detail::record_batch_of<S>>(
        [&]<class P>(std::size_t k, std::type_identity<P>) -> at::Tensor {
          for (std::size_t i = 0; i < rows.size(); ++i) {
            rows[i] = records_.file(places[i].shard)->get(places[i].record, k).data();
            // Copied below, when the first lines of the rows have come from memory.
            __builtin_prefetch(rows[i]);
            __builtin_prefetch(rows[i] + 64);
          }
          return gathered(fields_[k], rows);
        },
        fields_.size(), [&](std::size_t k) { return layout().fields()[k].name; });
  }

  /// Copies a sample that get() gave, so that it may be written into.
  static void own_memory(S& sample) { detail::own_memory(sample); }

  std::string name(std::uint64_t index) const { return records_.name(index); }
  std::string identity() const { return records_.identity(); }
  DamageLog const& damage() const noexcept { return records_.damage(); }
  std::vector<std::uint64_t> shard_sizes() const { return records_.shard_sizes(); }
  RecordLayout const& layout() const noexcept { return records_.layout(); }
  /// The bytes behind it.
  RecordFolder const& records() const noexcept { return records_; }

 private:
  struct Field {
    std::uint64_t bytes;
    at::ScalarType type;
    std::vector<std::int64_t> batch_sizes;  ///< of a batch; the first is set for each
    at::IntArrayRef sizes() const { return at::IntArrayRef(batch_sizes).slice(1); }
  };

  void require_parts() {
    bool fits = layout().fixed() != is_text;
    if constexpr (RecordSample<S>) {
      constexpr std::size_t parts = detail::record_parts<S>();
      fits = fits && (parts == 0 || layout().fields().size() == parts);
      for (RecordField const& field : layout().fields()) {
        auto const type = detail::torch_type(field.dtype);
        fits = fits && type.has_value();
        if (!fits) break;
        Field made{.bytes = field.bytes, .type = *type, .batch_sizes = {0}};
        for (std::uint64_t const extent : field.shape) {
          made.batch_sizes.push_back(static_cast<std::int64_t>(extent));
        }
        fields_.push_back(std::move(made));
      }
      if (fits) fits = numbers_fit();
    }
    if (fits) return;
    throw DataError({.what = "the records do not have the parts of the sample type",
                     .where = name_,
                     .why = "a record is " + layout().text(),
                     .fix = "Read it as another type: RecordSet<std::string> for bytes, "
                            "RecordSet<std::map<std::string, at::Tensor>> for any tensors."});
  }

  /// Whether the parts that are numbers are stored as such.
  bool numbers_fit() const {
    bool fits = true;
    auto const check = [&]<class P>(std::size_t k, std::type_identity<P>) {
      if constexpr (!detail::IsTensor<P>) {
        using Stored = detail::stored_number<P>;
        fits = fits && fields_[k].batch_sizes.size() == 1 &&
               fields_[k].type == c10::CppTypeToScalarType<Stored>::value;
      }
      return P();
    };
    static_cast<void>(detail::record_sample<S>(
        check, fields_.size(), [&](std::size_t k) { return layout().fields()[k].name; }));
    return fits;
  }

  static at::Tensor view(Field const& field, std::byte const* at,
                         std::shared_ptr<RecordFile const> const& file) {
    return at::from_blob(
        const_cast<std::byte*>(at), field.sizes(), [file](void*) {},
        at::TensorOptions().dtype(field.type));
  }

  static at::Tensor gathered(Field const& field, std::vector<std::byte const*> const& rows) {
    std::vector<std::int64_t> sizes = field.batch_sizes;
    sizes[0] = static_cast<std::int64_t>(rows.size());
    at::Tensor out = at::empty(sizes, at::TensorOptions().dtype(field.type));
    if (field.bytes == 0) return out;
    auto* to = static_cast<std::byte*>(out.mutable_data_ptr());
    for (std::size_t i = 0; i < rows.size();) {
      std::size_t run = 1;
      while (i + run < rows.size() && rows[i + run] == rows[i] + run * field.bytes) ++run;
      std::memcpy(to, rows[i], run * field.bytes);
      to += run * field.bytes;
      i += run;
    }
    return out;
  }

  RecordFolder records_;
  std::string name_;
  std::vector<Field> fields_;
};

}  // namespace frugal
