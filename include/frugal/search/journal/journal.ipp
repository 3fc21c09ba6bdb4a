// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/search/journal/journal.hpp>

#include <frugal/base/folder.hpp>
#include <frugal/base/io_error.hpp>
#include <frugal/checkpoint/lock_owner.hpp>
#include <frugal/checkpoint/run_file.hpp>
#include <frugal/error.hpp>
#include <frugal/inline.hpp>

#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <optional>
#include <thread>

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

}  // namespace frugal::detail
