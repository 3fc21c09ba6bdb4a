// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/search/journal.hpp>

#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <cstddef>
#include <fstream>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <thread>
#include <utility>

#include <frugal/base/file.hpp>
#include <frugal/base/folder.hpp>
#include <frugal/base/hash.hpp>
#include <frugal/base/io_error.hpp>
#include <frugal/base/name_hash.hpp>
#include <frugal/checkpoint/lock_owner.hpp>
#include <frugal/checkpoint/run_file.hpp>
#include <frugal/error.hpp>
#include <frugal/inline.hpp>

namespace frugal::detail {

FRUGAL_INLINE std::filesystem::path lock_of(std::filesystem::path journal) {
  return journal += ".frugal-lock";  // Optuna's own lock is .lock
}

FRUGAL_INLINE RunLock wait_for_lock(std::filesystem::path const& path) {
  using std::chrono::milliseconds;
  milliseconds pause{1};
  for (auto const begin = std::chrono::steady_clock::now();;) {
    try {
      return RunLock(path);
    } catch (LockError const&) {
      if (std::chrono::steady_clock::now() - begin > std::chrono::minutes(10)) throw;
    }
    std::this_thread::sleep_for(pause);
    pause = std::min(pause * 2, milliseconds(50));
  }
}

FRUGAL_INLINE SearchJournal::SearchJournal(std::filesystem::path folder, std::string_view name,
                                           SearchDomain domain,
                                           std::vector<SearchObjective> objectives,
                                           SearchIdentity identity)
    : path_(folder / "journal.log"),
      domain_(std::move(domain)),
      objectives_(std::move(objectives)),
      identity_(std::move(identity)),
      records_(LockOwner::here().host + "-" + std::to_string(::getpid()), objectives_),
      reader_(path_.string(), domain_, objectives_, identity_) {
  create_folders(folder);
  Session session(*this);
  bool const begins = reader_.history().trials.empty() && !reader_.is_identified();
  if (at_ == 0) records_.create_study(name);
  if (begins && (at_ == 0 || reader_.is_created())) {
    records_.identify(identity_);
    records_.name_objectives();
    session.commit();
  } else if (!reader_.is_identified()) {
    throw SettingsError({.what = "the journal is not that of a search",
                         .where = path_.string(),
                         .why = "no line of it has the attribute 'frugal'",
                         .fix = "Search in another folder."});
  }
}

FRUGAL_INLINE SearchJournal::Session::Session(SearchJournal& journal)
    : journal_(journal), lock_(wait_for_lock(lock_of(journal.path_))) {
  journal_.open();
  journal_.read_new();
}

FRUGAL_INLINE bool SearchJournal::Session::commit() {
  lock_.require_held();
  std::string const lines = journal_.records_.take();
  journal_.append(lines);
  return !lines.empty();
}

FRUGAL_INLINE void SearchJournal::open() {
  file_ = Descriptor(open_run_file(path_, O_RDWR | O_CREAT | O_APPEND | O_NONBLOCK));
  if (!file_ && errno == ELOOP) {
    throw StoreError({.what = "the journal of the search is a symbolic link",
                      .where = path_.string(),
                      .why = "it would be written to, and cut, where it leads",
                      .fix = "Remove the link, and see who made it."});
  }
  struct stat status{};
  if (!file_) throw io_error("open", path_, errno);
  if (::fstat(file_.get(), &status) != 0) throw io_error("fstat", path_, errno);
  if (!S_ISREG(status.st_mode)) refuse_stranger("it is no regular file");
}

FRUGAL_INLINE void SearchJournal::refuse_stranger(char const* why) const {
  throw FormatError({.what = "the file is not the journal of a search",
                     .where = path_.string(),
                     .why = why,
                     .fix = "Search in another folder. This file is left as it was."});
}

FRUGAL_INLINE void SearchJournal::read_new() {
  std::string text;
  char buffer[1U << 16U];
  while (true) {
    ssize_t const got =
        ::pread(file_.get(), buffer, sizeof buffer, static_cast<off_t>(at_ + text.size()));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) throw io_error("pread", path_, errno);
    if (got == 0) break;
    text.append(buffer, static_cast<std::size_t>(got));
  }
  std::size_t const whole = text.rfind('\n') + 1;  // 0 if there is none
  std::string const torn = text.substr(whole);
  text.resize(whole);
  apply(text);
  if (!torn.empty()) {
    // Another program's file is none to be cut. A process that was killed in the first write has left a part of it.
    constexpr std::string_view begins = "{\"op_code\":";
    if (!reader_.is_identified() && !torn.starts_with(begins) && !begins.starts_with(torn)) {
      refuse_stranger("it has no line of a search, and does not end in a line feed");
    }
    // No live process writes: the lock is here.
    if (::ftruncate(file_.get(), static_cast<off_t>(at_)) != 0) {
      throw io_error("ftruncate", path_, errno);
    }
    ++torn_;
  }
}

FRUGAL_INLINE void SearchJournal::apply(std::string const& text) {
  std::size_t begin = 0;
  while (begin < text.size()) {
    std::size_t const end = text.find('\n', begin);
    reader_.apply(std::string_view(text).substr(begin, end - begin));
    at_ += end + 1 - begin;
    begin = end + 1;
  }
}

FRUGAL_INLINE void SearchJournal::append(std::string const& lines) {
  if (lines.empty()) return;
  struct stat before{};
  if (::fstat(file_.get(), &before) != 0) throw io_error("fstat", path_, errno);
  std::string_view rest = lines;
  while (!rest.empty()) {
    ssize_t const put = ::write(file_.get(), rest.data(), rest.size());
    if (put < 0 && errno == EINTR) continue;
    if (put < 0) {
      int const code = errno;
      // A part of a line would be one that others read.
      static_cast<void>(::ftruncate(file_.get(), before.st_size));
      throw io_error("write", path_, code);
    }
    rest.remove_prefix(static_cast<std::size_t>(put));
  }
  if (::fsync(file_.get()) != 0) throw io_error("fsync", path_, errno);
  read_new();  // a dashboard may have added a note in between
}

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
