// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/policy/checkpoint/shared_save.hpp>

#include <frugal/base/file.hpp>
#include <frugal/base/hash.hpp>
#include <frugal/base/io_error.hpp>
#include <frugal/base/json.hpp>
#include <frugal/base/utf8.hpp>
#include <frugal/checkpoint/commit.hpp>
#include <frugal/checkpoint/lock_owner.hpp>
#include <frugal/checkpoint/run_file.hpp>
#include <frugal/error.hpp>
#include <frugal/inline.hpp>
#include <frugal/policy/checkpoint/state_file.hpp>
#include <frugal/policy/checkpoint/weights.hpp>

#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <system_error>
#include <thread>

namespace frugal::detail {

FRUGAL_INLINE std::string PartReport::text() const {
  JsonWriter out;
  out.object().add("format", format).add("bad", bad).add("error", error);
  StateFile state;
  state.values = values;
  out.add("state", state.text()).key("common").object();
  for (auto const& [path, hash] : common) out.add(path, hex_of(hash));
  out.end().key("parts").array();
  for (Part const& each : parts) {
    out.object().add("of", each.of).add("name", each.file.name).add("size", each.file.size);
    out.add("xxh3", hex_of(each.file.hash)).add("bytes", each.bytes).key("tensors").array();
    for (std::string const& name : each.tensors) out.value(name);
    out.end().end();
  }
  return out.str();
}

FRUGAL_INLINE PartReport PartReport::parse(std::string_view text, unsigned rank) {
  JsonFields const fields({.what = "what a process says of its part of a checkpoint is damaged",
                           .where = "rank " + std::to_string(rank),
                           .why = "",
                           .fix = "Use one version of frugal in all processes."});
  Json const all = fields.parse(text, format);
  PartReport report{.bad = fields.text(all, "bad"), .error = fields.text(all, "error")};
  report.values =
      StateFile::parse(fields.text(all, "state"), "rank " + std::to_string(rank)).values;
  Json const& common = fields.member(all, "common");
  for (Json const& each : fields.object(all, "common")) {
    report.common.emplace(each.name(), fields.hash(common, each.name().c_str()));
  }
  for (Json const& each : fields.array(all, "parts")) {
    Part part{.of = fields.text(each, "of"),
              .file = {.name = fields.text(each, "name"),
                       .size = fields.number(each, "size"),
                       .hash = fields.hash(each, "xxh3")},
              .bytes = fields.number(each, "bytes")};
    for (Json const& name : fields.array(each, "tensors")) part.tensors.push_back(name.text());
    report.parts.push_back(std::move(part));
  }
  return report;
}

FRUGAL_INLINE std::string part_name(unsigned rank, std::string const& of) {
  return "rank-" + std::to_string(rank) + "-" + of;
}

FRUGAL_INLINE bool SharedSave::all_see(std::filesystem::path checkpoints) {
  checkpoints_ = std::move(checkpoints);
  if (rank() != 0) {
    std::string const text = board_->await(0, "file");
    std::size_t const end = std::min(text.find('\n'), text.size());
    std::string const name = text.substr(0, end);
    require_name(name, "seen");
    bool const sees = sees_file(checkpoints_ / name, text.substr(std::min(end + 1, text.size())));
    board_->post("sees/" + std::to_string(rank()), sees ? "yes" : "no");
    bool const all = board_->await(0, "all see") == "yes";
    if (!all) board_->post("knows/" + std::to_string(rank()), "");
    return all;
  }
  std::string const name = temporary_name("seen"), owner = LockOwner::here().text();
  std::error_code failure;
  try {
    write_whole_file(checkpoints_ / name, owner, Durable::yes);
  } catch (StoreError const&) {
    failure = std::make_error_code(std::errc::io_error);  // the first save will say why
  }
  board_->post("file", name + '\n' + owner);
  bool all = !failure;
  for (unsigned other = 1; other < board_->count(); ++other) {
    all = board_->await(other, "sees/" + std::to_string(other)) == "yes" && all;
  }
  std::filesystem::remove(checkpoints_ / name, failure);
  board_->post("all see", all ? "yes" : "no");
  // The first process may end at once, and the board with it.
  for (unsigned other = 1; other < board_->count() && !all; ++other) {
    board_->await(other, "knows/" + std::to_string(other));
  }
  return all;
}

FRUGAL_INLINE void SharedSave::Beginning::announce(std::filesystem::path const& folder) {
  announced_ = true;
  save_.board_->post(save_.key("folder"), folder.filename().string());
}

FRUGAL_INLINE std::filesystem::path SharedSave::folder(std::uint64_t step) {
  std::string const name = board_->await(0, key("folder"));
  if (name.empty()) return {};
  require_name(name, step_name(step));
  std::filesystem::path folder = checkpoints_ / name;
  struct stat status{};
  if (::lstat(folder.c_str(), &status) != 0) throw io_error("lstat", folder, errno);
  if (!S_ISDIR(status.st_mode)) refuse_name(name, "it is not a folder");
  return folder;
}

FRUGAL_INLINE std::vector<PartReport> SharedSave::reports() {
  std::vector<PartReport> all;
  for (unsigned other = 1; other < board_->count(); ++other) {
    all.push_back(PartReport::parse(board_->await(other, key(other)), other));
    for (PartReport::Part const& each : all.back().parts) require_part(all.back(), each, other);
    board_->forget(key(other));
  }
  board_->forget(key("folder"));
  return all;
}

FRUGAL_INLINE void SharedSave::require_written(std::vector<PartReport> const& reports) const {
  for (std::size_t rank = 0; rank < reports.size(); ++rank) {
    if (reports[rank].error.empty()) continue;
    throw StoreError({.what = "a process could not write its part of the checkpoint",
                      .where = "rank " + std::to_string(rank),
                      .why = reports[rank].error.substr(0, reports[rank].error.rfind('.')),
                      .fix = "Do what its error says."});
  }
}

FRUGAL_INLINE bool SharedSave::sees_file(std::filesystem::path const& path,
                                         std::string const& text) {
  constexpr int tries = 20;
  for (int i = 0; i < tries; ++i) {
    if (i != 0) std::this_thread::sleep_for(std::chrono::milliseconds(100));
    try {
      if (!text.empty() && read_run_file(path, text.size() + 1) == text) return true;
    } catch (StoreError const&) {
      continue;
    }
  }
  return false;
}

FRUGAL_INLINE void SharedSave::refuse_name(std::string const& name, std::string why) {
  throw ClusterError(
      {.what = "another process names a file that is not of this save",
       .where = as_utf8(name.substr(0, 100)),
       .why = std::move(why),
       .fix = "Nothing was read or written there. Close the store's port to others, and "
              "start all again (docs/cluster/trust.md)."});
}

FRUGAL_INLINE void SharedSave::require_name(std::string const& name, std::string const& of) {
  std::string_view rest = name;
  std::string const begin = std::string(temporary_prefix) + of;
  bool is_it = rest.starts_with(begin);
  if (is_it) rest.remove_prefix(begin.size());
  for (int number = 0; number < 2 && is_it; ++number) {
    is_it = rest.size() >= 2 && rest.front() == '-';
    if (is_it) rest.remove_prefix(1);
    std::size_t const digits = std::min(rest.find_first_not_of("0123456789"), rest.size());
    is_it = is_it && digits != 0 && digits <= 10;
    rest.remove_prefix(digits);
  }
  if (!is_it || !rest.empty()) refuse_name(name, "it is not called " + begin + "-N-N");
}

FRUGAL_INLINE void SharedSave::require_part(PartReport const& report, PartReport::Part const& part,
                                            unsigned rank) {
  bool const known = part.of == "model.safetensors" || part.of == "optimizer.safetensors" ||
                     part.of == averages_file;
  if (!known || part.file.name != part_name(rank, part.of)) {
    refuse_name(part.file.name, "rank " + std::to_string(rank) + " writes no such file");
  }
  auto const times = std::ranges::count(report.parts, part.of, &PartReport::Part::of);
  if (times != 1) refuse_name(part.file.name, "it is named twice");
}

}  // namespace frugal::detail
