// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/report/sink/file.hpp>

#include <frugal/core/run/run_state.hpp>
#include <frugal/inline.hpp>
#include <frugal/policy/run_folder.hpp>

#include <system_error>

namespace frugal::detail {

FRUGAL_INLINE std::filesystem::path sink_path(std::filesystem::path const& path,
                                              RunState& run_of_it, std::string_view name,
                                              std::string_view policy) {
  std::filesystem::path const& run = run_of_it.settings.run_dir;
  if (path.empty() && run.empty()) {
    throw SettingsError(
        {.what = std::string(policy) + " has nowhere to write",
         .where = std::string(policy) + "::path",
         .why = "neither it nor Settings::run_dir is set",
         .fix = "Set Settings::run_dir to a folder, or " + std::string(policy) + "::path."});
  }
  std::filesystem::path const file = path.empty() ? run / name : path;
  if (!file.has_parent_path()) return file;
  std::error_code failure;
  std::filesystem::create_directories(file.parent_path(), failure);
  if (!failure) {
    if (path.empty()) lock_run_folder_if_possible(run_of_it);
    return file;
  }
  std::filesystem::path const folder = file.parent_path();
  Fault const why = folder_error(folder, first_missing(folder), failure.value()).fault();
  throw DataError({.what = std::string(policy) + " cannot open its file",
                   .where = file.string(),
                   .why = why.what + ": " + why.why,
                   .fix = why.fix});
}

FRUGAL_INLINE void SinkFile::open(std::filesystem::path path, std::string_view policy,
                                  Links links) {
  path_ = std::move(path);
  links_ = links;
  file_ = std::make_unique<LogFile>(path_, links_);
  if (file_->open()) return;
  throw DataError({.what = std::string(policy) + " cannot open its file",
                   .where = path_.string(),
                   .why = why_of(path_, errno),
                   .fix = "Check the permissions and the free space there, or set another path."});
}

FRUGAL_INLINE std::string SinkFile::lacks() const {
  if (lacking_ == 0) return {};
  return path_.string() + " lacks " + std::to_string(lacking_) +
         " bytes that it had at the checkpoint: its lines from then are missing";
}

FRUGAL_INLINE void SinkFile::reopen() {
  // Not its folder: who removed that does not want it back.
  auto again = std::make_unique<LogFile>(path_, links_);
  if (!again->open()) fail(errno);
  file_ = std::move(again);
  cut_to_.reset();
}

}  // namespace frugal::detail
