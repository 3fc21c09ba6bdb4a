// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include <frugal/base/io_error.hpp>
#include <frugal/base/json_writer.hpp>
#include <frugal/core/compose/about.hpp>
#include <frugal/core/compose/policy.hpp>
#include <frugal/core/run/phases.hpp>
#include <frugal/policy/kinds.hpp>
#include <frugal/policy/options.hpp>
#include <frugal/policy/run_folder.hpp>
#include <frugal/report/sink/collector.hpp>
#include <frugal/report/sink/log_file.hpp>
#include <frugal/report/sink/record.hpp>

namespace frugal {

/// Logs a run as JSON Lines, one object per line, to `metrics.jsonl` in the run directory.
///
/// Lever   none; the record that every comparison of cost starts from.
/// Cost    at its cadence one line and, with the losses on a device, one host sync; between
///         times one comparison of a counter.
/// State   the length of the file and a mark of its end. A run that resumes from a checkpoint cuts
///         off the lines after it, except for "resume" lines, and writes them again; without a
///         checkpoint it appends. After a Rollback likewise, but all events stay.
/// Errors  SettingsError without a folder to write to; DataError, naming the file and the
///         system's reason, when it cannot be opened. If a write fails, there is an
///         advice: the lines wait, and are written with the next write that succeeds.
///
/// Lines are
/// {"event":"step","step":100,"epoch":0,"samples":3200,"seconds":1.5,"loss":0.7,"lr_factor":1,
/// "learning_rate":0.001},
/// with the means of the objective's scalars (Loss::scalars) since the previous line and all gauges
/// (Phase::gauges), such as "memory_bytes"; "validation"
/// with every metric, "epoch" with the epoch's mean loss, "begin" and "end", and events of the run
/// itself: "resume", "rollback". Numbers that JSON cannot express (NaN, infinities) are null. Each
/// line is written at once, so that a killed run's log ends in a complete line.
template <class... Options>
struct Log {
 private:
  using classes = list<detail::option::cadence>;
  static_assert(detail::options_known<classes, Options...>,
                "frugal: Log<...>: unknown option. Options: a cadence such as Every<100> or "
                "Every<1, Epoch>.");
  static_assert(detail::options_unique<classes, Options...>,
                "frugal: Log<...>: two cadences. Write one Log for each of them.");
  using Cadence = detail::option_of<detail::option::cadence, Every<100>, Options...>;

 public:
  using kind = kinds::log;
  using listens =
      list<on::fit_begin, on::step, on::validated, on::epoch_end, on::fit_end, on::recorded>;

  static constexpr About about{Term::none, "one line at its cadence"};

  Cadence every{};
  /// Empty: `metrics.jsonl` in Settings::run_dir.
  std::filesystem::path path{};

  class State {
   public:
    using dispensable = void;  // a resumed run may lack its log, or have a new one

    explicit State(Log const& settings)
        : every_(settings.every), path_(settings.path), links_(detail::links_of(settings.path)) {}

    void on_fit_begin(FitBegin& phase) {
      if (path_.empty()) {
        if (phase.settings().run_dir.empty()) {
          throw SettingsError(
              {.what = "Log has nowhere to write",
               .where = "Log::path",
               .why = "neither it nor Settings::run_dir is set",
               .fix = "Set Settings::run_dir to a folder, or Log::path to a file."});
        }
        path_ = phase.settings().run_dir / "metrics.jsonl";
      }
      if (path_.has_parent_path()) {
        std::error_code failure;
        std::filesystem::create_directories(path_.parent_path(), failure);
        if (failure) fail_to_create(failure.value());
      }
      if (links_ == detail::Links::refuse) {
        lock_ = detail::lock_run_folder_if_possible(phase.run_state());
      }
      file_ = std::make_unique<detail::LogFile>(path_, links_);
      if (!file_->open()) fail_to_open();
      if (file_->regular()) phase.writes_to(path_);
      collector_.follow(phase, !Cadence::per_epoch);
      run_ = phase;
      // Held back until there is another line, or a save: a run that is refused, because another
      // trainer works in this folder, must not write into that one's log.
      first_ = line_of(collector_.begin(phase));
    }

    void on_step(Step& phase) {
      if constexpr (!Cadence::per_epoch) {
        if (!every_.due_at_step(phase.counters())) return;
        write_events();
        write(line_of(collector_.step(phase)));
      }
    }

    void on_validated(Validated& phase) {
      write_events();
      write(line_of(collector_.validation(phase)));
    }

    void on_epoch_end(EpochEnd& phase) {
      write_events();
      write(line_of(collector_.epoch(phase)));
    }

    void on_fit_end(FitEnd& phase) {
      write_events();
      // A finished run that is started again has one "end" line.
      if (ended_at_ == phase.counters().step) return;
      ended_at_ = phase.counters().step;
      write(line_of(collector_.end(phase)));
    }

    void on_recorded(Recorded const&) {
      if (in_run_) write_events();
    }

    template <class Archive>
    void persist(Archive& archive) {
      detail::LogFile::Place place{};
      // A dry run saves and loads before there is a file.
      if (!Archive::loading && file_) {
        // Events so far are part of the checkpoint.
        write_events();
        if (cut_to_ || !first_.empty() || !waiting_.empty()) write({});
        place = file_->place(archive.of_a_snapshot ? detail::LogFile::Mark{} : base_);
      }
      place.persist(archive);
      base_ = archive.of_a_snapshot ? place.mark : place.base;
      std::string waiting = waiting_.text();
      archive("waiting", waiting);
      archive("ended_at", ended_at_);
      collector_.persist(archive);
      if (!file_) return;
      if (Archive::loading) go_to(std::move(place), std::move(waiting));
      in_run_ = true;  // a refused run saves nothing and records nothing
    }

   private:
    static std::string line_of(MetricRecord const& record) {
      detail::JsonLine line;
      line.add("event", record.name)
          .add("step", record.at.step)
          .add("epoch", record.at.epoch)
          .add("samples", record.at.sample)
          .add("seconds", record.seconds);
      for (auto const& [name, value] : record.fields) line.add(name, value);
      return std::move(line).str();
    }

    /// Cuts the file with the next line: the resume may still be refused.
    void go_to(detail::LogFile::Place place, std::string waiting) {
      if (cut_to_) cut();
      std::uint64_t const size = place.mark.size;
      bool const branch = file_->fits(place.base);
      cut_to_ = std::move(place);
      if (in_run_) {
        waiting_.go_back(waiting);
      } else {
        waiting_.resume(std::move(waiting));
      }
      // A resume repeats the events of the lost stretch; a Rollback does not.
      cut_keeps_events_ = in_run_;
      if (in_run_ || !file_->regular()) return;
      // A copied run may lack its log. Then this log gets its own "begin" line.
      std::uint64_t const here = file_->mark().size;
      if (size != 0 && here != 0) first_.clear();  // it has begun before
      if (size > here && !branch) {
        run_->warn("the log " + path_.string() + " lacks " + std::to_string(size - here) +
                   " bytes that it had at the checkpoint: its lines from then are missing");
      }
    }

    void cut() {
      detail::LogFile::Place const place = *std::exchange(cut_to_, std::nullopt);
      bool const whole = file_->cut(place, [&](std::string_view line) {
        return cut_keeps_events_ ? !detail::is_repeated(line) : detail::is_event(line, "resume");
      });
      if (!whole) advise_of_failure("cut off");
    }

    void write(std::string const& lines) {
      in_run_ = true;
      bool const there = !file_->removed() || reopen();
      if (there && cut_to_) cut();
      std::string const all = waiting_.text() + std::exchange(first_, {}) + lines;
      if (there && file_->append(all)) return waiting_.clear();
      advise_of_failure("written");
      waiting_.add(std::string_view(all).substr(waiting_.text().size()), most_waiting);
    }

    /// Not its folder: who removed that does not want it back.
    bool reopen() {
      auto again = std::make_unique<detail::LogFile>(path_, links_);
      if (!again->open()) return false;
      file_ = std::move(again);
      cut_to_.reset();
      return true;
    }

    void advise_of_failure(char const* what) {
      if (std::exchange(advised_, true)) return;
      run_->warn("the log " + path_.string() + " cannot be " + what + " (" + std::strerror(errno) +
                 "): the run continues, and its lines wait until they can be written, at most " +
                 std::to_string(most_waiting >> 20U) + " MiB of them");
    }

    void write_events() {
      for (; events_ < run_->events().size(); ++events_) {
        write(line_of(detail::MetricCollector::event(run_->events()[events_])));
      }
    }

    [[noreturn]] void fail_to_create(int code) const {
      std::filesystem::path const folder = path_.parent_path();
      Fault const why = detail::folder_error(folder, detail::first_missing(folder), code).fault();
      throw DataError({.what = "the log cannot be opened",
                       .where = path_.string(),
                       .why = why.what + ": " + why.why,
                       .fix = why.fix});
    }
    [[noreturn]] void fail_to_open() const {
      int const code = errno;
      throw DataError({.what = "the log cannot be opened",
                       .where = path_.string(),
                       .why = detail::why_of(path_, code),
                       .fix = "Check the permissions and the free space there, or set another "
                              "Log::path."});
    }

    static constexpr std::size_t most_waiting = std::size_t{1} << 20;

    [[no_unique_address]] Cadence every_;
    std::shared_ptr<void> lock_;
    std::filesystem::path path_;
    detail::Links links_;
    std::unique_ptr<detail::LogFile> file_;
    std::optional<Phase> run_;
    std::string first_;
    detail::WaitingLines waiting_;
    bool advised_ = false;
    bool in_run_ = false;  ///< the run is not refused, and what is loaded now is a return
    std::optional<detail::LogFile::Place> cut_to_;
    detail::LogFile::Mark base_;  ///< of the last state in memory, to which a Rollback returns
    bool cut_keeps_events_ = false;
    std::size_t events_ = 0;  ///< that are written
    std::optional<std::uint64_t> ended_at_;
    detail::MetricCollector collector_;
  };
};

}  // namespace frugal
