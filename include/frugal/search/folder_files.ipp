// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/search/folder_files.hpp>

#include <frugal/base/file.hpp>
#include <frugal/base/folder.hpp>
#include <frugal/base/hash.hpp>
#include <frugal/base/name_hash.hpp>
#include <frugal/checkpoint/lock_owner.hpp>
#include <frugal/checkpoint/run_file.hpp>
#include <frugal/error.hpp>
#include <frugal/inline.hpp>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstddef>
#include <fstream>
#include <limits>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>

namespace frugal::detail {

FRUGAL_INLINE std::string candidate_text(SearchDomain const& domain, SearchTrial const& trial,
                                         SearchIdentity const& identity) {
  std::string text = "frugal candidate 1\n";
  auto const add = [&](std::string const& name, std::string const& value) {
    text += name + ' ' + value + '\n';
  };
  add("recipe", domain.recipes.at(trial.candidate.recipe));
  for (std::size_t i = 0; i < domain.settings.size(); ++i) {
    auto const& value = trial.candidate.values.at(i);
    if (!value) continue;
    std::array<char, 64> digits{};
    add(domain.settings[i].name,
        {digits.data(), std::to_chars(digits.data(), digits.data() + digits.size(), *value).ptr});
  }
  add("seed", std::to_string(trial.seed));
  std::string all;
  for (auto const& [name, value] : identity) {
    if (!name.ends_with(module_part)) all += name + '\n' + value + '\n';
  }
  add("search", hex_of(name_hash(all)));
  return text;
}

FRUGAL_INLINE void claim_folder(std::filesystem::path const& folder, std::string const& candidate) {
  std::filesystem::path const file = folder / "candidate";
  std::string const there = read_run_file(file, std::size_t{1} << 20U);
  if (there == candidate) return;
  std::error_code ignored;
  std::filesystem::path const checkpoints = folder / "checkpoints";
  if (std::filesystem::exists(checkpoints, ignored) &&
      !std::filesystem::is_empty(checkpoints, ignored)) {
    auto const line = [](std::string_view text, std::size_t from) {
      return std::string(text.substr(from, text.find('\n', from) - from));
    };
    auto const differs = std::ranges::mismatch(there, candidate).in2 - candidate.begin();
    std::size_t const begin =
        candidate.rfind('\n', static_cast<std::size_t>(std::max<std::ptrdiff_t>(differs, 1)) - 1) +
        1;
    throw StateError(
        {.what = "the folder of a trial has the checkpoints of another candidate",
         .where = folder.string(),
         .why = there.empty() ? "it has no file that names its candidate"
                              : "there it is '" + line(there, std::min(begin, there.size())) +
                                    "', and in the journal '" + line(candidate, begin) + "'",
         .fix = "The journal was lost, or restored from a copy: restore the newest one, or search "
                "in another folder."});
  }
  write_whole_file(file, candidate, Durable::yes);
}

FRUGAL_INLINE MicroBatchFile::MicroBatchFile(std::filesystem::path const& folder,
                                             std::string_view key)
    : path_(folder / "micro_batches" / hex_of(name_hash(key))) {}

FRUGAL_INLINE void MicroBatchFile::read_into(std::int64_t& samples) const {
  std::ifstream in(path_);
  std::int64_t found = 0;
  if (!(in >> found) || found < 0) return;
  // 0 is a batch that was not split, and would be searched for again.
  samples = found == 0 ? std::numeric_limits<std::int64_t>::max() / 2 : found;
}

FRUGAL_INLINE void MicroBatchFile::write(std::int64_t samples, bool found) const {
  std::int64_t known = std::numeric_limits<std::int64_t>::max();
  read_into(known);
  if (!found &&
      (known == std::numeric_limits<std::int64_t>::max() || samples == 0 || samples >= known))
    return;
  create_folders(path_.parent_path());
  // Two workers may find it at once: each writes a file of its own, so none replaces half of the other's.
  std::filesystem::path mine = path_;
  mine += "." + LockOwner::here().host + "." + std::to_string(::getpid());
  write_whole_file(mine, std::to_string(samples), Durable::no);
  rename_path(mine, path_);
}

}  // namespace frugal::detail
