// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>

#include <frugal/base/io_error.hpp>
#include <frugal/error.hpp>
#include <frugal/report/sink/log_file.hpp>

namespace frugal {
struct RunState;
}  // namespace frugal

namespace frugal::detail {

/// The path of a sink's file in the run directory, with the folders above it; the run directory is
/// locked. SettingsError if neither a path nor a folder is set; DataError if the folders cannot be
/// created.
std::filesystem::path sink_path(std::filesystem::path const& path, RunState& run_of_it,
                                std::string_view name, std::string_view policy);

/// The text file of a sink: lines are appended at once, and those that a resumed run repeats are
/// cut off before its first one, as in Log.
class SinkFile {
 public:
  void open(std::filesystem::path path, std::string_view policy, Links links);
  std::filesystem::path const& path() const { return path_; }
  bool regular() const { return file_->regular(); }
  /// Whether a run that begins at this step continues what is in the file: it comes from a
  /// checkpoint, be it one of step 0.
  bool continues(std::uint64_t step) const {
    return file_->size() != 0 && (step != 0 || (cut_to_ && cut_to_->mark.size != 0));
  }

  /// Appends lines, and before the first of the file its header. All or nothing; throws if it
  /// fails.
  template <class EventOf>
  void append(std::string_view lines, std::string_view header, EventOf&& event_of) {
    if (file_ == nullptr || file_->removed()) reopen();
    if (cut_to_) cut(std::forward<EventOf>(event_of));
    bool const first = file_->regular() ? file_->size() == 0 : !has_header_;
    std::string const with_header = first ? std::string(header) + std::string(lines) : "";
    if (!file_->append(first ? std::string_view(with_header) : lines)) fail(errno);
    has_header_ = true;
  }

  /// For a resumed run whose file is shorter than it was; empty if it is not.
  std::string lacks() const;

  template <class Archive>
  void persist(Archive& archive, bool in_run) {
    LogFile::Place place{};
    // A cut that is due has a place that is still the end.
    if (!Archive::loading && file_) {
      place = cut_to_ ? *cut_to_ : file_->place(archive.of_a_snapshot ? LogFile::Mark{} : base_);
    }
    place.persist(archive);
    base_ = archive.of_a_snapshot ? place.mark : place.base;
    if (!Archive::loading || !file_) return;
    std::uint64_t const here = file_->size();
    bool const whole = in_run || !file_->regular() || file_->fits(place.base);
    lacking_ = !whole && place.mark.size > here ? place.mark.size - here : 0;
    cut_to_ = std::move(place);
    cut_keeps_events_ = in_run;
  }

 private:
  void reopen();

  /// A return within the run repeats its records, but no events; a resume repeats all but the
  /// resumes before it.
  template <class EventOf>
  void cut(EventOf&& event_of) {
    bool const whole = file_->cut(*cut_to_, [&](std::string_view line) {
      std::string_view const event = event_of(line);
      if (!cut_keeps_events_) return event == "resume";
      return !event.empty() && std::find(repeated_events.begin(), repeated_events.end(), event) ==
                                   repeated_events.end();
    });
    if (!whole) fail(errno);  // the next record cuts first, too
    cut_to_.reset();
  }

  [[noreturn]] void fail(int code) const {
    throw std::runtime_error(path_.string() + ": " + why_of(path_, code));
  }

  std::filesystem::path path_;
  Links links_ = Links::follow;
  std::unique_ptr<LogFile> file_;
  bool has_header_ = false;
  std::optional<LogFile::Place> cut_to_;
  LogFile::Mark base_;  ///< of the last state in memory, to which a Rollback returns
  bool cut_keeps_events_ = false;
  std::uint64_t lacking_ = 0;  ///< bytes that it had when it was saved
};

}  // namespace frugal::detail

#ifndef FRUGAL_COMPILED
#include <frugal/report/sink/file.ipp>
#endif
