// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>

#include <frugal/compose/about.hpp>
#include <frugal/compose/policy.hpp>
#include <frugal/policy/kinds.hpp>
#include <frugal/loop/phases.hpp>
#include <frugal/watch/json_line.hpp>

namespace frugal {

/// Writes what happens as JSON Lines, one object a line, to `metrics.jsonl` of the run's folder.
///
/// Lever   none; the record that every comparison of cost starts from.
/// Cost    at its cadence one line and, with the losses on a device, one host sync; between
///         times one comparison of a counter.
/// State   how long the file is. A run that resumes from a checkpoint cuts off what the lost
///         stretch wrote beyond it, and writes those lines again; without one it appends.
/// Errors  SettingsError without a folder to write to; DataError, naming the file and the
///         system's reason, when it cannot be opened or written.
///
/// Lines are
/// {"event":"step","step":100,"epoch":0,"samples":3200,"seconds":1.5,"loss":0.7,"lr_factor":1},
/// "validation" with every metric, "epoch" with the epoch's mean loss, "begin" and "end", and what
/// happened to the run itself: "resume", "rollback". Numbers that JSON has no word for (NaN,
/// infinities) are null. Each line is written at once, so that a killed run's log ends in a whole
/// line.
template <class Cadence = Every<100>>
struct Log {
  using kind = kinds::log;
  using listens = list<on::fit_begin, on::step, on::validated, on::epoch_end, on::fit_end>;
  using after = list<kinds::optimizer>;
  // The line of a step has the rate that the step was made with.
  using before = list<kinds::schedule>;

  static constexpr About about{Term::none, "one line at its cadence"};

  /// Empty: `metrics.jsonl` in Settings::run.
  std::filesystem::path path{};

  template <class Context>
  class State {
   public:
    using dispensable = void;  // a run may go on without its log, or with a new one

    explicit State(Log const& settings) : path_(settings.path) {}

    void on_fit_begin(FitBegin<Context>& phase) {
      if (path_.empty()) {
        if (phase.settings().run.empty()) {
          throw SettingsError({.what = "Log has nowhere to write",
                               .where = "Log::path",
                               .why = "neither it nor Settings::run is set",
                               .mend = "Set Settings::run to a folder, or Log::path to a file."});
        }
        path_ = phase.settings().run / "metrics.jsonl";
      }
      std::error_code ignored;  // fopen has the better reason when this fails
      if (path_.has_parent_path()) {
        std::filesystem::create_directories(path_.parent_path(), ignored);
      }
      file_.reset(std::fopen(path_.c_str(), "ae"));
      if (!file_) fail("opened");
      phase.writes_to(path_);
      watch::JsonLine line = begin_line("begin", phase);
      line.add("parameters", parameter_count(phase.parameters()));
      line.add("seed", phase.settings().seed);
      // Held back until there is another line: who is refused here, because another trainer works
      // in this folder, must not have written into that one's log.
      first_ = std::move(line).str();
    }

    void on_step(Step<Context>& phase) {
      if constexpr (!Cadence::per_epoch) {
        if (!Cadence::due_at_step(phase.counters())) return;
        write_events(phase);
        watch::JsonLine line = begin_line("step", phase);
        line.add("loss", phase.last_loss());
        line.add("lr_factor", phase.learning_rate_factor());
        if (phase.gradient_norm().known()) line.add("gradient_norm", phase.gradient_norm().value());
        if (phase.counters().skipped != 0) line.add("skipped", phase.counters().skipped);
        add_speed(line, phase);
        write(std::move(line));
      }
    }

    void on_validated(Validated<Context>& phase) {
      write_events(phase);
      watch::JsonLine line = begin_line("validation", phase);
      for (auto const& [name, value] : phase.metrics) line.add(name, value);
      write(std::move(line));
    }

    void on_epoch_end(EpochEnd<Context>& phase) {
      write_events(phase);
      watch::JsonLine line = begin_line("epoch", phase);
      line.add("loss", phase.mean_loss());
      add_speed(line, phase);
      write(std::move(line));
    }

    void on_fit_end(FitEnd<Context>& phase) {
      write_events(phase);
      // A run that had ended and is started again ends once.
      if (ended_at_ == phase.counters().step) return;
      ended_at_ = phase.counters().step;
      watch::JsonLine line = begin_line("end", phase);
      line.add("stopped_by", phase.stopped_by());
      write(std::move(line));
    }

    template <class Archive>
    void persist(Archive& archive) {
      // A checkpoint may come before the line that cuts: what is to go does not count.
      std::uint64_t size = Archive::loading ? 0 : std::min(length(), cut_to_);
      archive("size", size);
      archive("ended_at", ended_at_);
      // Cut only once there is something to write: who resumes may yet be refused. A rehearsal
      // loads what it has saved before there is a file.
      if (!Archive::loading || !file_) return;
      cut_to_ = size;
      if (size != 0) first_.clear();  // it has begun before
    }

   private:
    struct Close {
      void operator()(std::FILE* file) const { std::fclose(file); }
    };

    static watch::JsonLine begin_line(std::string_view event, Phase<Context> const& phase) {
      return begin_line(event, phase.counters(), phase.seconds());
    }
    static watch::JsonLine begin_line(std::string_view event, Counters const& at, double seconds) {
      watch::JsonLine line;
      line.add("event", event)
          .add("step", at.step)
          .add("epoch", at.epoch)
          .add("samples", at.sample)
          .add("seconds", seconds);
      return line;
    }

    /// A speed that was measured since the last line with one.
    void add_speed(watch::JsonLine& line, Step<Context> const& phase) {
      if (!phase.speed() || phase.speed()->step == speed_of_) return;
      Speed const& speed = *phase.speed();
      speed_of_ = speed.step;
      line.add("step_seconds", speed.step_seconds)
          .add("samples_per_second", speed.samples_per_second)
          .add("tokens_per_second", speed.tokens_per_second);
      if (speed.flops_per_step) line.add("flops_per_step", *speed.flops_per_step);
      if (speed.flops_per_second) line.add("flops_per_second", *speed.flops_per_second);
      if (speed.utilisation) line.add("utilisation", *speed.utilisation);
    }

    static std::int64_t parameter_count(Parameters const& parameters) {
      std::int64_t count = 0;
      for (at::Tensor const& tensor : parameters.tensors) count += tensor.numel();
      return count;
    }

    void write(watch::JsonLine line) {
      std::string const text = std::exchange(first_, {}) + std::move(line).str();

      if (std::uint64_t const size = std::exchange(cut_to_, uncut); size < length()) {
        if (::ftruncate(::fileno(file_.get()), static_cast<off_t>(size)) != 0) fail("cut off");
      }
      bool const whole = std::fwrite(text.data(), 1, text.size(), file_.get()) == text.size();
      if (!whole || std::fflush(file_.get()) != 0) fail("written");
    }

    void write_events(Phase<Context> const& phase) {
      for (; events_ < phase.events().size(); ++events_) {
        Event const& event = phase.events()[events_];
        watch::JsonLine line = begin_line(event.name, event.at, event.seconds);
        for (auto const& [name, value] : event.fields) {
          std::visit([&, &key = name](auto const& each) { line.add(key, each); }, value);
        }
        write(std::move(line));
      }
    }

    std::uint64_t length() const {
      struct stat status{};
      if (!file_) return 0;  // nothing was begun: a rehearsal
      if (::fstat(::fileno(file_.get()), &status) != 0) fail("looked at");
      return static_cast<std::uint64_t>(status.st_size);
    }

    [[noreturn]] void fail(char const* what) const {
      throw DataError({.what = "the log cannot be " + std::string(what),
                       .where = path_.string(),
                       .why = std::strerror(errno),
                       .mend = "Look at the folder's permissions and free space, or set another "
                               "Log::path."});
    }

    std::filesystem::path path_;
    std::unique_ptr<std::FILE, Close> file_;
    static constexpr std::uint64_t uncut = std::numeric_limits<std::uint64_t>::max();

    std::string first_;
    std::uint64_t cut_to_ = uncut;
    std::size_t events_ = 0;  ///< that are written
    std::optional<std::uint64_t> ended_at_;
    std::optional<std::uint64_t> speed_of_;  ///< step of the last one that was written
  };
};

}  // namespace frugal
