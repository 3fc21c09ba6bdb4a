// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/data/shards/record_file.hpp>

#include <frugal/base/hash.hpp>
#include <frugal/base/json.hpp>
#include <frugal/checkpoint/safetensors.hpp>
#include <frugal/error.hpp>
#include <frugal/inline.hpp>

#include <algorithm>
#include <string_view>
#include <utility>

namespace frugal {

FRUGAL_INLINE std::uint64_t RecordFile::hash() const {
  return hashes_.empty() ? Hash::of(bytes_) : hash_at(hashes_.size() / 8 - 1);
}

FRUGAL_INLINE std::span<std::byte const> RecordFile::get(std::uint64_t record,
                                                         std::size_t field) const {
  Column const& column = columns_[field];
  std::uint64_t const begin = layout_.fixed() ? record * column.row : offset(record);
  std::uint64_t const end = layout_.fixed() ? begin + column.row : offset(record + 1);
  if (checked_) require_sound(column, begin, end, record);
  return column.bytes.subspan(begin, end - begin);
}

FRUGAL_INLINE void RecordFile::read(Verify verify) {
  try {
    Safetensors const tensors = Safetensors::parse(bytes_, name_);
    bool const hashed = tensors.metadata(detail::record_metadata_key).has_value();
    for (std::string& name : hashed ? hashed_fields(tensors) : all_fields(tensors)) {
      TensorView const tensor = tensors.at(name);
      columns_.push_back({.name = std::move(name), .bytes = tensor.bytes});
      if (!tensor.aligned()) fail(columns_.back(), 0, "it is not aligned for its type");
    }
    bool const any = tensors.find(detail::record_offsets_name).has_value();
    any ? read_bytes(tensors) : read_fields(tensors);
    if (hashed) read_hashes(tensors.at(detail::record_hashes_name));
    if (any) check_offsets();
  } catch (FormatError const& error) {
    throw DataError(error.fault());
  }
  if (verify == Verify::Never) checked_.reset();
  if (verify == Verify::AtOpen) verify_all();
}

FRUGAL_INLINE std::vector<std::string> RecordFile::all_fields(Safetensors const& tensors) {
  std::vector<std::string> names;
  for (std::size_t i = 0; i < tensors.size(); ++i) names.emplace_back(tensors[i].name);
  std::sort(names.begin(), names.end());
  return names;
}

FRUGAL_INLINE std::vector<std::string> RecordFile::hashed_fields(Safetensors const& tensors) {
  detail::JsonFields const fields({.what = "the metadata of the records is damaged",
                                   .where = name_ + ", metadata \"frugal.records\"",
                                   .why = "",
                                   .fix = detail::safetensors_mend});
  detail::Json const all =
      fields.parse(*tensors.metadata(detail::record_metadata_key), "frugal records");
  if (std::uint64_t const written = fields.version(all); written > detail::record_version) {
    throw DataError({.what = "a newer frugal wrote the file",
                     .where = name_,
                     .why = "its version is " + std::to_string(written) +
                            ", and this frugal reads up to " +
                            std::to_string(detail::record_version),
                     .fix = "Update frugal, or write the file with this one."});
  }
  fields.only(all, {"format", "version", "block_bytes", "fields"});
  block_bytes_ = fields.number(all, "block_bytes");
  if (block_bytes_ == 0) fields.fail("a block has no bytes");
  std::vector<std::string> names;
  for (detail::Json const& name : fields.array(all, "fields")) names.push_back(name.text());
  return names;
}

FRUGAL_INLINE void RecordFile::read_fields(Safetensors const& tensors) {
  std::vector<RecordField> fields;
  for (Column const& column : columns_) {
    TensorView const tensor = tensors.at(column.name);
    if (tensor.shape.empty()) fail(column, 0, "it is a number: it has no row for each record");
    if (fields.empty()) records_ = tensor.shape[0];
    if (tensor.shape[0] != records_) {
      fail(column, 0,
           "it has " + std::to_string(tensor.shape[0]) + " rows, and tensor \"" +
               fields.front().name + "\" has " + std::to_string(records_));
    }
    fields.push_back({.name = column.name,
                      .dtype = tensor.dtype,
                      .shape = {tensor.shape.begin() + 1, tensor.shape.end()}});
  }
  std::string why;
  auto layout = RecordLayout::of(std::move(fields), why);
  if (!layout) fail({}, 0, why);
  layout_ = *std::move(layout);
  for (std::size_t k = 0; k < columns_.size(); ++k) columns_[k].row = layout_.fields()[k].bytes;
}

FRUGAL_INLINE void RecordFile::read_bytes(Safetensors const& tensors) {
  auto const is = [&](std::size_t k, std::string_view name, Dtype dtype) {
    TensorView const tensor = tensors.at(columns_[k].name);
    return tensor.name == name && tensor.dtype == dtype && tensor.shape.size() == 1;
  };
  if (columns_.size() != 2 || !is(0, detail::record_bytes_name, Dtype::u8) ||
      !is(1, detail::record_offsets_name, Dtype::i64) || columns_[1].bytes.empty()) {
    fail({}, 0,
         "records of any bytes are \"bytes\", U8 [bytes], and \"bytes.offsets\", I64 "
         "[records + 1], and nothing else");
  }
  records_ = columns_[1].bytes.size() / 8 - 1;
}

FRUGAL_INLINE void RecordFile::read_hashes(TensorView const& table) {
  std::uint64_t blocks = 0;
  for (Column& column : columns_) {
    column.first_block = blocks;
    blocks += column.bytes.size() / block_bytes_ + (column.bytes.size() % block_bytes_ != 0);
  }
  hashes_ = table.bytes;
  Column const column{.name = std::string(table.name), .bytes = hashes_};
  if (table.dtype != Dtype::u64 || hashes_.size() != 8 * (blocks + 1)) {
    fail(column, 0, "it is not U64 [" + std::to_string(blocks + 1) + "]");
  }
  std::uint64_t const found = detail::record_file_hash(
      bytes_.first(detail::safetensors_length_bytes + detail::load_le<std::uint64_t>(bytes_, 0)),
      hashes_);
  if (found != hash_at(blocks)) {
    fail(column, 8 * blocks,
         "the hash of the header and of the hashes is " + hex_of(found) + ", and should be " +
             hex_of(hash_at(blocks)));
  }
  checked_ = std::make_unique<std::atomic<unsigned char>[]>(blocks);
}

FRUGAL_INLINE void RecordFile::verify_all() const {
  if (!checked_) {
    throw DataError({.what = "the file has no hashes to verify",
                     .where = name_,
                     .why = "another program than frugal wrote it",
                     .fix = "Read it with Verify::FirstTouch or Never, which check nothing of "
                            "such a file, or write it with ShardWriter."});
  }
  for (Column const& column : columns_) require_sound(column, 0, column.bytes.size(), 0);
}

FRUGAL_INLINE void RecordFile::check_offsets() const {
  Column const& column = columns_[1];
  if (checked_) require_sound(column, 0, column.bytes.size(), 0);
  std::uint64_t const size = columns_[0].bytes.size();
  std::uint64_t last = 0;
  for (std::uint64_t record = 0; record <= records_; ++record) {
    std::uint64_t const next = offset(record);
    bool const right = (record != 0 || next == 0) && (record != records_ || next == size);
    if (!right || next < last || next > size) {
      fail(column, 8 * record,
           "offset " + std::to_string(record) + " of " + std::to_string(records_) + " is " +
               std::to_string(next) + ", the one before " + std::to_string(last) +
               ", and the records have " + std::to_string(size) + " bytes");
    }
    last = next;
  }
}

FRUGAL_INLINE void RecordFile::require_sound(Column const& column, std::uint64_t begin,
                                             std::uint64_t end, std::uint64_t record) const {
  if (begin == end) return;
  for (std::uint64_t block = begin / block_bytes_; block <= (end - 1) / block_bytes_; ++block) {
    // Relaxed: the mapped bytes do not change, so a thread needs nothing but the verdict. Two
    // threads that touch a block first at the same time both hash it.
    auto& state = checked_[column.first_block + block];
    if (state.load(std::memory_order_relaxed) == sound) continue;
    check(column, block, record);
    state.store(sound, std::memory_order_relaxed);
  }
}

FRUGAL_INLINE void RecordFile::check(Column const& column, std::uint64_t block,
                                     std::uint64_t record) const {
  auto& state = checked_[column.first_block + block];
  std::uint64_t const expected = hash_at(column.first_block + block);
  auto bytes = column.bytes.subspan(block * block_bytes_);
  bytes = bytes.first(std::min<std::uint64_t>(block_bytes_, bytes.size()));
  if (state.load(std::memory_order_relaxed) != damaged && Hash::of(bytes) == expected) return;
  state.store(damaged, std::memory_order_relaxed);
  throw DataError(
      {.what = "a block of records is damaged",
       .where = place(column, block * block_bytes_) + ", block " + std::to_string(block) +
                ", record " + std::to_string(record),
       .why = "the hash of its bytes is not the one that was written, " + hex_of(expected),
       .fix = detail::safetensors_mend});
}

FRUGAL_INLINE std::string RecordFile::place(Column const& column, std::uint64_t byte) const {
  if (column.name.empty()) return name_;
  return name_ + ", " + detail::safetensors_tensor(column.name) + ", byte " +
         std::to_string(static_cast<std::uint64_t>(column.bytes.data() - bytes_.data()) + byte);
}

FRUGAL_INLINE void RecordFile::fail(Column const& column, std::uint64_t byte,
                                    std::string why) const {
  throw DataError({.what = "the tensors of the file are no records, or damaged",
                   .where = place(column, byte),
                   .why = std::move(why),
                   .fix = detail::safetensors_mend});
}

FRUGAL_INLINE std::span<std::byte const> RecordFolder::get(std::uint64_t index,
                                                           std::size_t field) const {
  Place const at = place(index);
  return files_[at.shard]->get(at.record, field);
}

FRUGAL_INLINE std::string RecordFolder::name(std::uint64_t index) const {
  Place const at = place(index);
  return files_[at.shard]->name() + ", record " + std::to_string(at.record);
}

FRUGAL_INLINE std::string RecordFolder::identity() const {
  std::vector<std::byte> hashes;
  for (auto const& file : files_) detail::append_le(hashes, file->hash());
  return "frugal records " + hex_of(Hash::of(hashes));
}

FRUGAL_INLINE std::vector<std::uint64_t> RecordFolder::shard_sizes() const {
  std::vector<std::uint64_t> sizes;
  for (auto const& file : files_) sizes.push_back(file->size());
  return sizes;
}

FRUGAL_INLINE RecordFolder::Place RecordFolder::place(std::uint64_t index) const {
  if (index >= size()) detail::require_sample(index, size(), folder_.string());
  if (uniform_ != 0) return {static_cast<std::size_t>(index / uniform_), index % uniform_};
  auto const after = std::upper_bound(starts_.begin(), starts_.end(), index);
  auto const shard = static_cast<std::size_t>(after - starts_.begin()) - 1;
  return {shard, index - starts_[shard]};
}

FRUGAL_INLINE void RecordFolder::open(std::filesystem::path const& path,
                                      std::optional<std::uint64_t> hash) {
  open_or_skip(reading_.on_damage, damage_, path.string(), [&] {
    auto file = std::make_shared<RecordFile const>(path, reading_.verify);
    if (hash && file->hash() != *hash) {
      throw DataError(
          {.what = "the shard is not the one that was written",
           .where = path.string(),
           .why = "its hash is " + hex_of(file->hash()) + ", and shards.json has " + hex_of(*hash),
           .fix = "Fetch the folder again, or write it again."});
    }
    if (!files_.empty() && !(file->layout() == layout())) {
      throw DataError({.what = "the shard has other records than the first one",
                       .where = path.string(),
                       .why = "they are " + file->layout().text() + ", and those of " +
                              files_.front()->name() + " are " + layout().text(),
                       .fix = "Keep records of different layouts in folders of their own."});
    }
    starts_.push_back(starts_.back() + file->size());
    files_.push_back(std::move(file));
  });
}

}  // namespace frugal
