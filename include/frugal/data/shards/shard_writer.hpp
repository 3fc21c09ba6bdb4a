// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/ATen.h>

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <frugal/core/source/sample_set.hpp>
#include <frugal/data/shards/record_set.hpp>
#include <frugal/data/shards/shard_files.hpp>

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
  RecordLayout layout();

  void require_alike() const;

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

#ifndef FRUGAL_COMPILED
#include <frugal/data/shards/shard_writer.ipp>
#endif
