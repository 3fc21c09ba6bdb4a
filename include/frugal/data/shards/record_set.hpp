// SPDX-License-Identifier: Apache-2.0
// Shapes: B samples in a batch, ... whatever one sample has.
#pragma once

#include <ATen/ATen.h>

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include <frugal/core/source/batch.hpp>
#include <frugal/core/source/sample_set.hpp>
#include <frugal/data/own_memory.hpp>
#include <frugal/data/shards/record_folder.hpp>
#include <frugal/data/shards/sample_fields.hpp>
#include <frugal/data/tensor_dtype.hpp>
#include <frugal/error.hpp>

namespace frugal {

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
