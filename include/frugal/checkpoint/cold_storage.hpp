// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/base/command.hpp>
#include <frugal/base/hash.hpp>
#include <frugal/error.hpp>

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <utility>
#include <variant>

namespace frugal {

/// Cold storage in a folder, such as a slow disk or a mount. The folder must exist: a missing
/// folder is usually a disk that is not mounted.
struct ColdFolder {
  std::filesystem::path folder;
};

/// Cold storage behind a program, such as a cloud provider's command line. In every argument,
/// {file} stands for the local file, {name} for the remote name, {size} for the size in bytes and
/// {hash} for the XXH3 hash. Exit code 0 means success.
///
///     ColdCommand{.put = {"aws", "s3", "cp", "{file}", "s3://bucket/demo/{name}"},
///                 .get = {"aws", "s3", "cp", "s3://bucket/demo/{name}", "{file}"}}
///
/// A local checkpoint is deleted only after its remote copy was verified: read back with `get`, or,
/// where that costs too much, checked by `verify`, which must compare it with {file}, or with
/// {size} and {hash}.
struct ColdCommand {
  Command put;
  Command get;
  Command verify;
  /// Time limit of each command: one that hangs would hold the run's lock for ever.
  std::chrono::seconds patience = std::chrono::hours(6);
};

using ColdStorage = std::variant<ColdFolder, ColdCommand>;

namespace detail {

/// A file on its way to or from cold storage.
struct ColdObject {
  std::string name;
  std::uint64_t size = 0;  ///< in bytes
  std::uint64_t hash = 0;  ///< XXH3, 64 bits
};

inline bool mentions(Command const& command, std::string_view key) {
  return words_of(command).find(key) != std::string::npos;
}

/// SettingsError for storage that cannot be used safely.
inline void require_usable(ColdStorage const& storage) {
  auto const fail = [](std::string where, std::string why, std::string fix) {
    throw SettingsError({.what = "cold storage cannot be used",
                         .where = std::move(where),
                         .why = std::move(why),
                         .fix = std::move(fix)});
  };
  if (auto const* folder = std::get_if<ColdFolder>(&storage)) {
    if (folder->folder.empty()) fail("ColdFolder::folder", "it is empty", "Name a folder.");
    return;
  }
  auto const& command = std::get<ColdCommand>(storage);
  if (command.patience.count() <= 0) {
    fail("ColdCommand::patience", "it is not above 0", "Give the seconds that a command may take.");
  }
  if (!mentions(command.put, "{file}") || !mentions(command.put, "{name}")) {
    fail("ColdCommand::put", "it does not mention both {file} and {name}",
         "Write where the file comes from and where it goes.");
  }
  if (command.get.empty() && command.verify.empty()) {
    fail("ColdCommand::get", "neither get nor verify is there",
         "Give one: a local file is deleted only after it was verified there.");
  }
  if (!command.get.empty() &&
      (!mentions(command.get, "{file}") || !mentions(command.get, "{name}"))) {
    fail("ColdCommand::get", "it does not mention both {file} and {name}",
         "Write where the file comes from and where it goes.");
  }
  if (!command.verify.empty() && !mentions(command.verify, "{name}")) {
    fail("ColdCommand::verify", "it does not mention {name}", "Write what is to be verified.");
  }
}

inline Command for_object(Command const& command, std::filesystem::path const& file,
                          ColdObject const& object) {
  return filled(command, {{"file", file.string()},
                          {"name", object.name},
                          {"size", std::to_string(object.size)},
                          {"hash", hex_of(object.hash)}});
}

}  // namespace detail

}  // namespace frugal
