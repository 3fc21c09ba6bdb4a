// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fcntl.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <frugal/base/descriptor.hpp>
#include <frugal/checkpoint/lock.hpp>
#include <frugal/search/journal_records.hpp>
#include <frugal/search/trials/candidate.hpp>
#include <frugal/search/trials/history.hpp>

namespace frugal::detail {

/// The lock of a search's folder.
std::filesystem::path lock_of(std::filesystem::path journal);

/// Takes a lock that another process holds for a moment; LockError if that is more than ten minutes, because the
/// process is stopped.
RunLock wait_for_lock(std::filesystem::path const& path);

/// The file in which all workers of a search record what they have decided and found. Each reads and
/// appends under its lock, so all see one order. A line that a killed worker has left unfinished is removed
/// by the next one: what it would have said is found again from the trial's own folder.
class SearchJournal {
 public:
  /// Creates the file, or reads it. SettingsError if it is that of another search, StateError if that trains another
  /// job, FormatError if it is damaged or no journal, StoreError if it is a link.
  SearchJournal(std::filesystem::path folder, std::string_view name, SearchDomain domain,
                std::vector<SearchObjective> objectives, SearchIdentity identity);
  SearchJournal(SearchJournal const&) = delete;
  SearchJournal& operator=(SearchJournal const&) = delete;

  std::filesystem::path const& path() const { return path_; }
  SearchDomain const& domain() const { return domain_; }
  std::vector<SearchObjective> const& objectives() const { return objectives_; }
  /// As of the last session.
  SearchHistory const& history() const { return reader_.history(); }
  std::vector<std::pair<std::size_t, std::size_t>> const& order() const { return reader_.order(); }
  /// Lines that killed workers had left unfinished, and that this process has removed.
  std::size_t torn_lines() const { return torn_; }

  /// While it lives no other process reads or writes the journal.
  class Session {
   public:
    explicit Session(SearchJournal& journal);
    Session(Session const&) = delete;
    Session& operator=(Session const&) = delete;
    ~Session() { journal_.file_.close(); }
    SearchHistory const& history() const { return journal_.reader_.history(); }
    /// Lines to be appended by commit().
    JournalRecords& records() { return journal_.records_; }
    /// Appends the lines, and makes them durable; the history has them then. False if there are none.
    bool commit();

   private:
    SearchJournal& journal_;
    RunLock lock_;
  };

 private:
  /// For each session again: a network file system shows another machine's lines to those who open the file.
  void open();
  [[noreturn]] void refuse_stranger(char const* why) const;
  void read_new();
  void apply(std::string const& text);
  void append(std::string const& lines);

  std::filesystem::path path_;
  SearchDomain domain_;
  std::vector<SearchObjective> objectives_;
  SearchIdentity identity_;
  JournalRecords records_;
  JournalReader reader_;
  Descriptor file_;
  std::uint64_t at_ = 0;  ///< where the lines end that the reader has applied
  std::size_t torn_ = 0;
};

/// What a trial's folder belongs to, a line each: the candidate, its seed and a hash of the search's identity. A
/// journal that was lost or restored from a copy draws other candidates for the same folders.
std::string candidate_text(SearchDomain const& domain, SearchTrial const& trial,
                           SearchIdentity const& identity);

/// Names the candidate in a trial's folder. StateError if its checkpoints are those of another one.
void claim_folder(std::filesystem::path const& folder, std::string const& candidate);

/// The micro-batch that AutoBatch has found for an architecture: the next trial of that architecture takes it, and
/// makes no trial steps.
class MicroBatchFile {
 public:
  /// `folder`: of the search. `key`: what the memory of a step depends on.
  MicroBatchFile(std::filesystem::path const& folder, std::string_view key);

  /// Leaves the number alone if nothing was found before.
  void read_into(std::int64_t& samples) const;
  /// `found`: by a search that came to its end. Otherwise only a smaller number replaces one that is there: memory
  /// has run out since.
  void write(std::int64_t samples, bool found) const;

 private:
  std::filesystem::path path_;
};

}  // namespace frugal::detail

#ifndef FRUGAL_COMPILED
#include <frugal/search/journal.ipp>
#endif
