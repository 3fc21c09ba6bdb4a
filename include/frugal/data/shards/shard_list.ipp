// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/data/shards/shard_list.hpp>

#include <frugal/base/file.hpp>
#include <frugal/base/hash.hpp>
#include <frugal/base/io_error.hpp>
#include <frugal/base/json.hpp>
#include <frugal/base/json_writer.hpp>
#include <frugal/data/shards/new_file.hpp>
#include <frugal/data/shards/record_layout.hpp>
#include <frugal/error.hpp>
#include <frugal/inline.hpp>

#include <algorithm>
#include <cstdio>
#include <set>
#include <span>
#include <system_error>
#include <utility>

namespace frugal {

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
