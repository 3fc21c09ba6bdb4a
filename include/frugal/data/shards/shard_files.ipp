// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/data/shards/shard_files.hpp>

#include <frugal/base/file.hpp>
#include <frugal/base/hash.hpp>
#include <frugal/base/json_writer.hpp>
#include <frugal/checkpoint/dtype.hpp>
#include <frugal/inline.hpp>

#include <algorithm>

namespace frugal {

FRUGAL_INLINE void ShardFiles::add(RecordBytes fields) {
  require_fields(fields);
  std::uint64_t bytes = 0;
  for (auto const& field : fields) bytes += field.size();
  if (shard_.records != 0 && is_full(bytes)) end_shard();
  if (shard_.records == 0) begin_shard();
  for (std::size_t k = 0; k < fields.size(); ++k) {
    columns_[k].add(fields[k], layout_.fixed() ? 1 : bytes);
  }
  shard_.bytes += bytes;
  if (!layout_.fixed()) add_offset();
  ++shard_.records;
  ++records_;
}

FRUGAL_INLINE ShardList ShardFiles::close() {
  if (shard_.records != 0) end_shard();
  if (list_.shards.empty()) {
    throw EmptySourceError({.what = "there is no record to write",
                            .where = folder_.string(),
                            .why = "",
                            .fix = "Add at least one."});
  }
  list_.write(folder_);
  return list_;
}

FRUGAL_INLINE void ShardFiles::Column::add(std::span<std::byte const> bytes, std::uint64_t more) {
  rows += more;
  if (pending.size() + bytes.size() > most_pending) flush();
  if (bytes.size() > most_pending) return file.write(bytes);
  detail::append_bytes(pending, bytes);
}

FRUGAL_INLINE bool ShardFiles::is_full(std::uint64_t more) const {
  return (sharding_.records_per_shard != 0 && shard_.records >= sharding_.records_per_shard) ||
         (sharding_.bytes_per_shard != 0 && shard_.bytes + more > sharding_.bytes_per_shard);
}

FRUGAL_INLINE void ShardFiles::begin_shard() {
  shard_ = {.name = ShardList::shard_name(list_.shards.size())};
  columns_.clear();
  auto const path = folder_ / shard_.name;
  for (RecordField const& field : layout_.fields()) columns_.emplace_back(field, path);
  if (layout_.fixed()) return;
  columns_.emplace_back(RecordField{.name = std::string(detail::record_bytes_name)}, path);
  columns_.emplace_back(
      RecordField{.name = std::string(detail::record_offsets_name), .dtype = Dtype::i64}, path);
  add_offset();
}

FRUGAL_INLINE void ShardFiles::add_offset() {
  auto const offset = static_cast<std::int64_t>(shard_.bytes);
  columns_.back().add(std::as_bytes(std::span(&offset, 1)), 1);
}

FRUGAL_INLINE void ShardFiles::end_shard() {
  std::vector<MappedFile> files;
  std::deque<std::vector<std::uint64_t>> shapes;
  std::vector<TensorView> tensors;
  std::vector<std::uint64_t> hashes;
  detail::JsonWriter about;
  about.object().add("format", "frugal records").add("version", detail::record_version);
  about.add("block_bytes", sharding_.block_bytes).key("fields").array();
  for (Column& column : columns_) {
    column.flush();
    auto const bytes = files.emplace_back(column.file.partial()).bytes();
    auto& shape = shapes.emplace_back(1, column.rows);
    shape.insert(shape.end(), column.field.shape.begin(), column.field.shape.end());
    tensors.push_back(
        {.name = column.field.name, .dtype = column.field.dtype, .shape = shape, .bytes = bytes});
    for (std::size_t at = 0; at < bytes.size(); at += sharding_.block_bytes) {
      hashes.push_back(
          Hash::of(bytes.subspan(at, std::min(sharding_.block_bytes, bytes.size() - at))));
    }
    about.value(column.field.name);
  }
  hashes.push_back(0);  // that of the header, which has their number
  tensors.push_back({.name = detail::record_hashes_name,
                     .dtype = Dtype::u64,
                     .shape = shapes.emplace_back(1, hashes.size()),
                     .bytes = std::as_bytes(std::span(hashes))});
  SafetensorsWriter const writer(tensors, {{std::string(detail::record_metadata_key), about.str()}},
                                 shard_.name);
  hashes.back() = detail::record_file_hash(std::as_bytes(std::span(writer.header())),
                                           std::as_bytes(std::span(hashes)));
  detail::NewFile file(folder_ / shard_.name);
  writer.write(file);
  file.publish();
  columns_.clear();
  shard_.bytes = writer.size();
  shard_.hash = hashes.back();
  list_.shards.push_back(std::exchange(shard_, {}));
}

FRUGAL_INLINE void ShardFiles::require_fields(RecordBytes fields) const {
  auto const size = [](std::span<std::byte const> field) { return field.size(); };
  if (layout_.fixed() ? std::ranges::equal(fields, layout_.fields(), {}, size, &RecordField::bytes)
                      : fields.size() == 1) {
    return;
  }
  std::string sizes;
  for (auto const& field : fields)
    sizes += (sizes.empty() ? "" : ", ") + std::to_string(size(field));
  throw DataError({.what = "the record does not have the fields of the others",
                   .where = folder_.string() + ", record " + std::to_string(records_),
                   .why = "it has fields of " + sizes + " bytes, and a record is " + layout_.text(),
                   .fix = "Give every record the same tensors, or write records of any bytes: "
                          "without a layout."});
}

}  // namespace frugal
