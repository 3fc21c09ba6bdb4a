// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/data/shards/record_layout.hpp>

#include <frugal/base/file.hpp>
#include <frugal/base/hash.hpp>
#include <frugal/base/io_error.hpp>
#include <frugal/base/json.hpp>
#include <frugal/base/json_writer.hpp>
#include <frugal/data/shards/new_file.hpp>
#include <frugal/error.hpp>
#include <frugal/inline.hpp>

#include <algorithm>
#include <cstdio>
#include <set>
#include <span>
#include <system_error>
#include <utility>

namespace frugal::detail {

FRUGAL_INLINE std::uint64_t record_file_hash(std::span<std::byte const> header,
                                             std::span<std::byte const> hashes) {
  Hash all;
  all.update(header);
  all.update(hashes.first(hashes.size() - sizeof(std::uint64_t)));
  return all.digest();
}

}  // namespace frugal::detail

namespace frugal {

FRUGAL_INLINE std::optional<RecordLayout> RecordLayout::of(std::vector<RecordField> fields,
                                                           std::string& why) {
  RecordLayout layout;
  layout.fields_ = std::move(fields);
  why = layout.measure();
  if (!why.empty()) return std::nullopt;
  return layout;
}

FRUGAL_INLINE std::string RecordLayout::text() const {
  std::string text;
  for (RecordField const& field : fields_) {
    text +=
        (text.empty() ? "" : ", ") + field.name + " " + std::string(dtype_name(field.dtype)) + " [";
    for (std::size_t i = 0; i < field.shape.size(); ++i) {
      text += (i == 0 ? "" : ", ") + std::to_string(field.shape[i]);
    }
    text += "]";
  }
  return text.empty() ? "bytes" : text;
}

FRUGAL_INLINE std::string RecordLayout::measure() {
  if (fields_.empty() || fields_.size() > most_fields) {
    return "a record has 1 to " + std::to_string(most_fields) + " fields, and this one " +
           std::to_string(fields_.size());
  }
  bool empty = true;
  for (auto field = fields_.begin(); field != fields_.end(); ++field) {
    auto const same = [&](RecordField const& other) { return other.name == field->name; };
    if (std::any_of(fields_.begin(), field, same)) {
      return "two fields have the name \"" + field->name + "\"";
    }
    if (field->name == detail::record_offsets_name || field->name == detail::record_hashes_name ||
        field->name == "__metadata__") {
      return "a shard has a tensor or metadata named \"" + field->name + "\" itself";
    }
    // The header is JSON: a file with such a name could not be read back.
    if (!detail::is_utf8(field->name)) return "the name of a field is not UTF-8";
    auto const bits = tensor_bits(field->dtype, field->shape);
    if (!bits) return "the field \"" + field->name + "\" is larger than 64 bits can say";
    if (*bits % 8 != 0) return "the field \"" + field->name + "\" ends within a byte";
    field->bytes = *bits / 8;
    empty = empty && field->bytes == 0;
  }
  return empty ? "a record has no bytes" : "";
}

FRUGAL_INLINE std::string ShardList::shard_name(std::size_t number) {
  char name[40];
  std::snprintf(name, sizeof name, "shard-%06zu", number);
  return std::string(name) + detail::shard_suffix;
}

FRUGAL_INLINE std::string ShardList::text() const {
  detail::JsonWriter out;
  out.object().add("format", "frugal shards").add("version", 1).key("shards").array();
  for (Shard const& shard : shards) {
    out.on_line(1).object().add("name", shard.name).add("records", shard.records);
    out.add("bytes", shard.bytes).add("hash", hex_of(shard.hash)).end();
  }
  return out.str("\n");
}

FRUGAL_INLINE ShardList ShardList::parse(std::string_view text, std::string const& file) {
  detail::JsonFields const fields({.what = "the list of shards is damaged",
                                   .where = file,
                                   .why = "",
                                   .fix = "Fetch the folder again, or write it again."});
  try {
    detail::Json const all = fields.parse(text, "frugal shards");
    if (std::uint64_t const written = fields.version(all); written > newest_version) {
      throw DataError({.what = "a newer frugal wrote the shards",
                       .where = file,
                       .why = "their version is " + std::to_string(written) +
                              ", and this frugal reads up to " + std::to_string(newest_version),
                       .fix = "Update frugal, or write the shards with this one."});
    }
    fields.only(all, {"format", "version", "shards"});
    ShardList list;
    std::set<std::string> names;
    for (detail::Json const& item : fields.array(all, "shards")) {
      fields.only(item, {"name", "records", "bytes", "hash"});
      Shard shard{.name = fields.text(item, "name"),
                  .records = fields.number(item, "records"),
                  .bytes = fields.number(item, "bytes"),
                  .hash = fields.hash(item, "hash")};
      bool const plain = !shard.name.empty() && shard.name != "." && shard.name != ".." &&
                         shard.name.find_first_of(std::string_view("/\0", 2)) == std::string::npos;
      if (!plain) fields.fail(item, "\"name\" is no name of a file");
      // A shard that is listed twice would be read twice an epoch.
      if (!names.insert(shard.name).second) fields.fail(item, "the shard is listed twice");
      list.shards.push_back(std::move(shard));
    }
    return list;
  } catch (FormatError const& error) {
    throw DataError(error.fault());
  }
}

FRUGAL_INLINE ShardList ShardList::read(std::filesystem::path const& folder) {
  auto const path = folder / file_name;
  try {
    File file = File::open(path);
    std::string text(file.size(), '\0');
    text.resize(file.read(std::as_writable_bytes(std::span(text))));
    return parse(text, path.string());
  } catch (IoError const& error) {
    if (!detail::no_such_file(error.code)) throw;
    std::error_code ignored;
    throw DataError({.what = "the folder has no shards.json",
                     .where = folder.string(),
                     .why = std::filesystem::is_directory(folder, ignored)
                                ? "ShardWriter writes it last: writing was not finished"
                                : "there is no such folder",
                     .fix = "Write the shards again, or give the path of a finished folder. "
                            "OnDamage::Skip takes the complete shards of an unfinished one."});
  }
}

FRUGAL_INLINE void ShardList::write(std::filesystem::path const& folder) const {
  detail::NewFile file(folder / file_name);
  std::string const all = text();
  file.write(std::as_bytes(std::span(all)));
  file.publish();
}

}  // namespace frugal
