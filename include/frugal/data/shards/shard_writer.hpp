// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/ATen.h>

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <frugal/data/sample_set.hpp>
#include <frugal/data/shape_text.hpp>
#include <frugal/data/shards/sample_fields.hpp>
#include <frugal/data/shards/shard_files.hpp>
#include <frugal/data/tensor_dtype.hpp>
#include <frugal/error.hpp>
#include <frugal/inline.hpp>

namespace frugal {

/// Writes samples into record shards, which RecordSet reads. The first sample decides what a
/// record is: tensors and numbers of these shapes and dtypes, or bytes (std::string).
///
///     ShardWriter writer("train", {.records_per_shard = 10'000});
///     for (...) writer.add(Batch{image, label});  // of one sample
///     writer.close();
///
/// Numbers are stored as int64, float or double. Tensors on a device are copied to the host.
/// Errors  ShapeError or DtypeError for a sample that differs from the first, naming both; those of
///         ShardFiles.
class ShardWriter {
 public:
  explicit ShardWriter(std::filesystem::path folder, Sharding sharding = {})
      : files_(std::move(folder), sharding) {}

  template <class S>
  void add(S const& sample) {
    static_assert(
        RecordSample<S> || std::same_as<S, std::string>,
        "frugal: ShardWriter cannot store this type of sample. Give it Batch, a tensor, a "
        "number, a pair, tuple or array of these, std::map<std::string, at::Tensor>, or "
        "std::string for records of any bytes.");
    parts_.clear();
    names_.clear();
    if constexpr (RecordSample<S>) {
      detail::each_record_part(sample, [this](std::string name, auto const& part) {
        parts_.push_back(detail::record_tensor(part, name));
        names_.push_back(std::move(name));
      });
      if (files_.records() == 0) files_.set_layout(layout());
      require_alike();
      bytes_.clear();
      for (at::Tensor const& part : parts_) {
        bytes_.emplace_back(static_cast<std::byte const*>(part.const_data_ptr()), part.nbytes());
      }
      files_.add(bytes_);
    } else {
      if (files_.layout().fixed()) require_alike();
      bytes_.assign(1, std::as_bytes(std::span(sample)));
      files_.add(bytes_);
    }
  }

  /// Samples so far.
  std::uint64_t size() const noexcept { return files_.records(); }

  ShardList close() { return files_.close(); }

 private:
  FRUGAL_INLINE RecordLayout layout() {
    std::vector<RecordField> fields;
    for (std::size_t k = 0; k < parts_.size(); ++k) {
      auto const type = detail::stored_type(parts_[k].scalar_type());
      if (!type) {
        throw DtypeError(
            {.what = "the dtype cannot be stored",
             .where = "sample 0, '" + names_[k] + "'",
             .why = std::string("records have no type ") + at::toString(parts_[k].scalar_type()),
             .fix = "Convert the tensor first."});
      }
      fields.push_back({.name = names_[k], .dtype = *type, .shape = {}});
      for (std::int64_t const extent : parts_[k].sizes()) {
        fields.back().shape.push_back(static_cast<std::uint64_t>(extent));
      }
    }
    std::string why;
    auto layout = RecordLayout::of(std::move(fields), why);
    if (!layout) {
      throw ShapeError({.what = "the sample cannot be a record",
                        .where = "sample 0",
                        .why = why,
                        .fix = "Give every sample tensors with elements, or store bytes."});
    }
    return *std::move(layout);
  }

  FRUGAL_INLINE void require_alike() const {
    auto const& fields = files_.layout().fields();
    bool shapes = fields.size() == parts_.size();
    bool types = true;
    std::string text;
    for (std::size_t k = 0; k < parts_.size(); ++k) {
      text += (k == 0 ? "" : ", ") + names_[k] + " " + detail::shape_text(parts_[k]);
      if (k >= fields.size()) continue;
      shapes = shapes && fields[k].name == names_[k] &&
               std::ranges::equal(fields[k].shape, parts_[k].sizes());
      types = types && detail::torch_type(fields[k].dtype) == parts_[k].scalar_type();
    }
    if (shapes && types) return;
    Fault fault{.what = "the sample differs from the first one",
                .where = "sample " + std::to_string(files_.records()),
                .why = "it is " + (text.empty() ? "bytes" : text) + ", and a record is " +
                       files_.layout().text(),
                .fix =
                    "Give every sample the same parts, shapes and dtypes: pad or convert them "
                    "first, or write samples of unlike sizes as bytes (std::string)."};
    if (shapes) throw DtypeError(std::move(fault));
    throw ShapeError(std::move(fault));
  }

  ShardFiles files_;
  std::vector<at::Tensor> parts_;  ///< of the sample at hand
  std::vector<std::string> names_;
  std::vector<std::span<std::byte const>> bytes_;
};

/// Writes all samples of a set, in their order.
template <SampleSet S>
  requires detail::ReadsByIndex<S>
ShardList write_shards(std::filesystem::path folder, S const& set, Sharding sharding = {}) {
  ShardWriter writer(std::move(folder), sharding);
  for (std::uint64_t i = 0; i < set.size(); ++i) writer.add(set.get(i));
  return writer.close();
}

}  // namespace frugal
