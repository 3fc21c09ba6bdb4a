// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cmath>
#include <cstdint>
#include <filesystem>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <frugal/core/compose/about.hpp>
#include <frugal/core/compose/policy.hpp>
#include <frugal/inline.hpp>
#include <frugal/policy/kinds.hpp>
#include <frugal/policy/options.hpp>
#include <frugal/report/sink/file.hpp>
#include <frugal/report/sink/mllog_line.hpp>
#include <frugal/report/sink/state.hpp>

namespace frugal {

namespace detail {

/// Writes the lines of a run; times are those at which things happen, not those of the writing.
class MlperfSink {
  using Fields = std::vector<MetricRecord::Field>;

 public:
  template <class Policy>
  explicit MlperfSink(Policy const& policy)
      : path_(policy.path),
        values_(policy.values),
        metric_(policy.metric),
        target_(policy.target),
        below_(policy.target_is_below),
        init_(now()) {}

  void open(FitBegin& phase) {
    if (target_ && !std::isfinite(*target_)) {
      throw SettingsError({.what = "the target is " + std::to_string(*target_),
                           .where = "MlperfLog::target",
                           .why = "no validation reaches or misses it",
                           .fix = "Set a finite number, or leave it out."});
    }
    file_.open(sink_path(path_, phase.run_state(), "mlperf.log", "MlperfLog"), "MlperfLog",
               links_of(path_));
    if (file_.regular()) phase.writes_to(file_.path());
    seed_ = phase.settings().seed;
  }

  FRUGAL_INLINE void write(MetricRecord const& record) {
    switch (record.kind) {
      case RecordKind::begin:
        return begin(record);
      case RecordKind::step:
        return step(record);
      case RecordKind::validation:
        return validation(record);
      case RecordKind::epoch:
        return interval_end("epoch_stop", at_epoch(record.at.epoch));
      case RecordKind::end:
        return end(record);
      case RecordKind::event:
        return;  // the format has no place for them
    }
  }
  void begin_epoch(Counters const& at) { interval_start("epoch_start", at_epoch(at.epoch + 1)); }
  void begin_validation() { validation_began_ = now(); }

  template <class Archive>
  void persist(Archive& archive, SinkMoment const& now) {
    file_.persist(archive, now.in_run);
    archive("reached", reached_);
  }
  std::string lacks() const { return file_.lacks(); }

 private:
  /// Milliseconds since 1970. The machine's clock may be set back during a run, and intervals must
  /// not be negative: it is read once, and the steady clock has the time since then.
  static std::uint64_t now() {
    using Milliseconds = std::chrono::milliseconds;
    static auto const first = std::chrono::system_clock::now().time_since_epoch();
    static auto const from = std::chrono::steady_clock::now();
    auto const since = first + (std::chrono::steady_clock::now() - from);
    return static_cast<std::uint64_t>(std::chrono::duration_cast<Milliseconds>(since).count());
  }
  /// Epochs of MLPerf count from 1.
  static Fields at_epoch(std::uint64_t number) { return {{"epoch_num", number}}; }

  static std::string point(std::string_view key, std::string_view value, Fields const& metadata) {
    return mllog_line(now(), "POINT_IN_TIME", key, value, mllog_object(metadata));
  }
  FRUGAL_INLINE void put(std::string const& lines) {
    // None of them is kept when a run goes back: the format has no events of the run itself.
    file_.append(lines, "", [](std::string_view) { return std::string_view(); });
  }
  void interval_start(std::string_view key, Fields const& metadata) {
    put(mllog_line(now(), "INTERVAL_START", key, "null", mllog_object(metadata)));
  }
  void interval_end(std::string_view key, Fields const& metadata) {
    put(mllog_line(now(), "INTERVAL_END", key, "null", mllog_object(metadata)));
  }

  FRUGAL_INLINE void begin(MetricRecord const& record) {
    // A resumed run has begun before.
    if (file_.continues(record.at.step)) return;
    // In the order of their times: initialisation began before any of these lines is made.
    std::string lines = mllog_line(init_, "INTERVAL_START", "init_start", "null", "{}");
    for (auto const& [key, value] : values_) lines += point(key, mllog_value(value), {});
    lines += point("seed", std::to_string(seed_), {});
    lines += mllog_line(now(), "INTERVAL_END", "init_stop", "null", "{}");
    lines += mllog_line(now(), "INTERVAL_START", "run_start", "null", "{}");
    put(lines);
  }

  FRUGAL_INLINE void step(MetricRecord const& record) {
    put(point("tracked_stats", mllog_object(record.fields),
              {{"step", record.at.step}, {"samples_count", record.at.sample}}));
  }

  FRUGAL_INLINE void validation(MetricRecord const& record) {
    // The epoch that it is in: the one that has begun, or at its end the one that is complete.
    std::uint64_t const epoch = record.at.epoch + (record.at.position != 0 ? 1 : 0);
    Fields const where{{"epoch_num", epoch}, {"samples_count", record.at.sample}};
    std::string lines = mllog_line(validation_began_.value_or(now()), "INTERVAL_START",
                                   "eval_start", "null", mllog_object(where));
    if (auto const measured = record.number(metric_)) {
      lines += point("eval_accuracy", mllog_value(*measured), where);
      if (target_ && (below_ ? *measured <= *target_ : *measured >= *target_)) reached_ = true;
    }
    lines += mllog_line(now(), "INTERVAL_END", "eval_stop", "null", mllog_object(where));
    put(lines);
  }

  FRUGAL_INLINE void end(MetricRecord const& record) {
    // Also of a preempted run: if that is resumed, this line is cut off.
    bool const success = target_ ? reached_ : record.text("stopped_by").empty();
    interval_end("run_stop", {{"status", std::string(success ? "success" : "aborted")},
                              {"samples_count", record.at.sample}});
  }

  std::filesystem::path path_;
  Fields values_;
  std::string metric_;
  std::optional<double> target_;
  bool below_;
  std::uint64_t init_;
  std::uint64_t seed_ = 0;
  SinkFile file_;
  std::optional<std::uint64_t> validation_began_;
  bool reached_ = false;
};

template <class Cadence>
class MlperfState : public SinkState<Cadence, MlperfSink> {
  using Base = SinkState<Cadence, MlperfSink>;

 public:
  template <class Policy>
  explicit MlperfState(Policy const& policy) : Base(policy) {}

  void on_epoch_begin(EpochBegin& phase) {
    this->attempt([&] { this->sink().begin_epoch(phase.counters()); });
  }
  template <class Next>
  Metrics around_validate(ValidationRun const&, Next&& next) {
    this->sink().begin_validation();
    return next();
  }
};

}  // namespace detail

/// Logs a run in the line format of MLPerf Training (":::MLLOG {...}") to `mlperf.log` in the run's
/// folder, for its compliance checker and for tools that read such logs.
///
/// Lever   none; times to a target in the form in which they are compared in public.
/// Cost    at its cadence one write and, with the losses on a device, one host sync; between times
///         one comparison of a counter.
/// State   the length of the file and a mark of its end, and whether the target was reached: a
///         resumed run cuts off the lines that it writes again. A file that is shorter than it was
///         is a warning.
/// Errors  SettingsError without a folder to write to, or for a target that is not finite;
///         DataError if the file cannot be opened. A failed write is a warning, once, and counted
///         (`outcome`).
/// Source  mlperf_logging of MLCommons (mllog.py, compliance_checker), 4.1.
///
/// Keys are init_start, seed, init_stop, run_start, epoch_start, tracked_stats, epoch_stop,
/// eval_start, eval_accuracy, eval_stop and run_stop. What a submission must state besides is in
/// `values`.
template <class... Options>
struct MlperfLog {
 private:
  using classes = list<detail::option::cadence>;
  static_assert(detail::options_known<classes, Options...>,
                "frugal: MlperfLog<...>: unknown option. Options: a cadence such as Every<100> or "
                "Every<1, Epoch>.");
  static_assert(detail::options_unique<classes, Options...>,
                "frugal: MlperfLog<...>: two cadences. Keep one.");
  using Cadence = detail::option_of<detail::option::cadence, Every<100>, Options...>;

 public:
  using kind = kinds::mlperf_log;
  using listens = concat<detail::sink_listens, list<on::epoch_begin, around::validate>>;

  static constexpr About about{Term::none, "one line at its cadence"};
  static constexpr bool adds_metrics = false;

  /// Empty: `mlperf.log` in Settings::run_dir.
  std::filesystem::path path{};
  /// Written first: submission_benchmark, submission_org, global_batch_size, train_samples, ...
  std::vector<std::pair<std::string, Event::Value>> values{};
  std::string metric = "accuracy";  ///< of a validation; written as eval_accuracy
  std::optional<double> target{};   ///< of it; run_stop has the status "success" if it is reached
  bool target_is_below = false;     ///< a loss, which is to fall to the target
  Outcome<SinkOutcome> outcome{};   ///< set by fit: records written, and lost

  using State = detail::MlperfState<Cadence>;
};

}  // namespace frugal
