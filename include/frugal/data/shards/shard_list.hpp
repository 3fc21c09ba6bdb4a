// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace frugal {

/// The shards of a folder, in their order: its file shards.json, which ShardWriter writes last.
struct ShardList {
  static constexpr char const* file_name = "shards.json";
  static constexpr std::uint64_t newest_version = 1;

  struct Shard {
    std::string name;  ///< of the file in the folder
    std::uint64_t records = 0;
    std::uint64_t bytes = 0;  ///< of the file
    std::uint64_t hash = 0;   ///< RecordFile::hash()

    friend bool operator==(Shard const&, Shard const&) = default;
  };

  std::vector<Shard> shards;

  /// "shard-000017.safetensors"
  static std::string shard_name(std::size_t number);

  std::string text() const;

  /// DataError that names file and byte, if the text is not what text() gives.
  static ShardList parse(std::string_view text, std::string const& file);

  /// The list of a folder. DataError if it has none: then writing it was not finished. IoError if
  /// it cannot be read now.
  static ShardList read(std::filesystem::path const& folder);

  /// Writes it to a folder that has none.
  void write(std::filesystem::path const& folder) const;
};

}  // namespace frugal

#ifndef FRUGAL_COMPILED
#include <frugal/data/shards/shard_list.ipp>
#endif
