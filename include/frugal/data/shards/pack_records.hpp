// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/core/source/sample_set.hpp>
#include <frugal/data/sampling/permutation.hpp>
#include <frugal/data/shards/field_text.hpp>
#include <frugal/data/shards/npy.hpp>
#include <frugal/data/shards/pack.hpp>
#include <frugal/data/shards/packed_sample.hpp>
#include <frugal/data/shards/record_layout.hpp>
#include <frugal/data/shards/shard_files.hpp>
#include <frugal/error.hpp>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

// Needs libarchive, as pack.hpp does: FRUGAL_ARCHIVE=ON, and the target frugal::archive.
namespace frugal {

namespace detail {

inline bool is_integer_field(std::string const& extension) {
  std::string const last = extension.substr(extension.rfind('.') + 1);
  return last == "cls" || last == "id" || last == "index";
}

/// A sample as a record of a shard, and the layout that such records have.
struct PackedRecord {
  RecordLayout layout;
  std::vector<std::string> fields;  ///< the bytes of each
};

/// Arrays of NumPy (.npy) and whole numbers (.cls, .id, .index) become tensors of the record, in
/// the order of the fields; one field of another kind becomes a record of any bytes.
inline PackedRecord packed_record(PackedSample const& sample, std::string const& where) {
  auto const refuse = [&](std::string why) {
    refuse_field(where, "a sample does not fit into a record", std::move(why));
  };
  std::vector<RecordField> fields;
  std::vector<std::string> parts;
  for (PackedSample::Field const& field : sample.fields) {
    std::string const of = where + ", field " + field.extension;
    if (field.extension == "npy" || field.extension.ends_with(".npy")) {
      NpyArray const array = read_npy(std::as_bytes(std::span(field.bytes)), of);
      fields.push_back({.name = field.extension, .dtype = array.dtype, .shape = array.shape});
      parts.emplace_back(reinterpret_cast<char const*>(array.bytes.data()), array.bytes.size());
    } else if (is_integer_field(field.extension)) {
      std::int64_t const number = integer_of(field.bytes, of);
      fields.push_back({.name = field.extension, .dtype = Dtype::i64});
      parts.emplace_back(reinterpret_cast<char const*>(&number), sizeof number);
    } else if (sample.fields.size() == 1) {
      return {.layout = {}, .fields = {field.bytes}};
    } else {
      refuse("the field " + field.extension +
             " is neither an array of NumPy nor a whole number, and is not the only one");
    }
  }
  std::string why;
  auto layout = RecordLayout::of(std::move(fields), why);
  if (!layout) refuse(std::move(why));
  return {.layout = *std::move(layout), .fields = std::move(parts)};
}

}  // namespace detail

/// Packs a set into record shards in a new folder, all of it or nothing, as `pack` does into
/// tar shards: for sets of arrays and numbers, or of one text or file each. `settings.limits` are
/// those of a shard; keys are not kept.
///
/// Errors  those of ShardFiles and of Packer; DataError for a sample that fits no record, or whose
///         tensors are not those of the first, unless OnDamage::Skip leaves it out.
template <SampleSet S>
PackReport pack_records(S const& set, std::filesystem::path const& folder,
                        PackSettings const& settings = {}) {
  PackReport report;
  detail::NewFolder target(folder);
  ShardFiles files(target.partial(), {.records_per_shard = settings.limits.samples,
                                      .bytes_per_shard = settings.limits.bytes});
  std::uint64_t const size = set.size();
  Permutation const order(settings.shuffle.value_or(0), 0, settings.shuffle ? size : 0);
  for (std::uint64_t i = 0; i < size; ++i) {
    std::uint64_t const index = settings.shuffle ? order(i) : i;
    std::string const name = sample_name(set, index);
    detail::WriteFailure disk;
    open_or_skip(settings.on_damage, report.skipped, name, [&] {
      auto record = detail::packed_record(packed(read_sample(set, {.index = index})), name);
      if (files.records() == 0) files.set_layout(record.layout);
      if (record.layout != files.layout()) {
        detail::refuse_field(
            name, "a sample has other tensors than the first",
            "it is " + record.layout.text() + ", and the first was " + files.layout().text());
      }
      std::vector<std::span<std::byte const>> fields;
      for (std::string const& field : record.fields) {
        fields.push_back(std::as_bytes(std::span(field)));
        report.bytes += field.size();
      }
      disk.guard([&] { files.add(fields); });
    });
    disk.rethrow();
    if (settings.progress) settings.progress(i + 1, size);
  }
  ShardList const list = files.close();
  report.samples = files.records();
  for (ShardList::Shard const& shard : list.shards) {
    report.shard_bytes += shard.bytes;
    report.shards.push_back(target.path() / shard.name);
  }
  target.publish();
  return report;
}

}  // namespace frugal
