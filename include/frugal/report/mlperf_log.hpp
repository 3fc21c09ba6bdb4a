// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cmath>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <frugal/core/compose/about.hpp>
#include <frugal/core/compose/policy.hpp>
#include <frugal/policy/kinds.hpp>
#include <frugal/policy/options.hpp>
#include <frugal/report/sink/file.hpp>
#include <frugal/report/sink/record.hpp>
#include <frugal/report/sink/state.hpp>

namespace frugal::kinds {

struct mlperf_log : optional_kind {
  static constexpr std::string_view name = "MlperfLog";
  static constexpr std::string_view page = "report/mlperf_log.md";
  static constexpr bool once_per_run = true;
  static constexpr Stage stage = Stage::publish;
};

}  // namespace frugal::kinds

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

  void write(MetricRecord const& record);
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
  void put(std::string const& lines);
  void interval_start(std::string_view key, Fields const& metadata) {
    put(mllog_line(now(), "INTERVAL_START", key, "null", mllog_object(metadata)));
  }
  void interval_end(std::string_view key, Fields const& metadata) {
    put(mllog_line(now(), "INTERVAL_END", key, "null", mllog_object(metadata)));
  }

  void begin(MetricRecord const& record);

  void step(MetricRecord const& record);

  void validation(MetricRecord const& record);

  void end(MetricRecord const& record);

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
  using properties = list<property::adds_no_metrics>;

  Cadence every{};
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

#ifndef FRUGAL_COMPILED
#include <frugal/report/mlperf_log.ipp>
#endif
