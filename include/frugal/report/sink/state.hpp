// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <exception>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include <frugal/core/compose/list.hpp>
#include <frugal/core/compose/outcome.hpp>
#include <frugal/core/run/phases.hpp>
#include <frugal/policy/kinds.hpp>
#include <frugal/report/sink/collector.hpp>
#include <frugal/report/sink/record.hpp>

namespace frugal::detail {

/// The hooks of every metric sink.
using sink_listens = list<on::fit_begin, on::ready, on::step, on::validated, on::epoch_end,
                          on::fit_end, on::recorded>;

/// When the state of a sink is saved or loaded.
struct SinkMoment {
  std::uint64_t step = 0;
  bool in_run = false;  ///< what is loaded is a return within the run, and no resume
};

/// The State of a metric sink. `Sink` writes records and has these members:
///
///   explicit Sink(Policy const&)
///   void open(FitBegin&)        SettingsError or DataError if it can never work
///   void write(MetricRecord const&)      any exception: this record is lost, and counted
///   void persist(Archive&, SinkMoment)   may be missing
///   std::string lacks() const            may be missing; what a resumed run is told, or empty
///   void close()                         may be missing; when the fit is over, however it ended
///   static constexpr bool forgets        may be missing; true: it has no records of an earlier
///                                        process, so each begin needs its end
///
/// A sink never ends or slows a run: after `open` every failure is counted, and the first is given
/// as advice. The next record is tried again. Between times of the cadence nothing is done.
template <class Cadence, class Sink>
class SinkState {
 public:
  using dispensable = void;  // a resumed run may lack a sink, or have a new one

  template <class Policy>
  explicit SinkState(Policy const& policy)
      : every_(policy.every), sink_(policy), outcome_(&policy.outcome), name_(Policy::kind::name) {}
  SinkState(SinkState const&) = delete;
  SinkState& operator=(SinkState const&) = delete;
  ~SinkState() {
    // Also after an exception: a failed run's losses count too. The run itself is gone by now.
    run_.reset();
    try {
      if constexpr (requires { sink_.close(); }) {
        if (opened_) guarded([&] { sink_.close(); });
      }
      if (opened_) outcome_->set(so_far_);
    } catch (...) {  // no memory
    }
  }

  void on_fit_begin(FitBegin& phase) {
    outcome_->clear();
    run_ = phase;
    sink_.open(phase);
    lock_ = phase.folder_lock();  // held longer than the run: closing may write
    opened_ = true;
    collector_.follow(phase, !Cadence::per_epoch);
    begin_ = collector_.begin(phase);
  }

  // A run that is refused, because another trainer works in this folder, must not write into that
  // one's files: it does not come this far.
  void on_ready(Ready&) { enter(); }

  void on_step(Step& phase) {
    if constexpr (!Cadence::per_epoch) {
      if (!every_.due_at_step(phase.counters())) return;
      write(collector_.step(phase));
    }
  }
  void on_validated(Validated& phase) { write(collector_.validation(phase)); }
  void on_epoch_end(EpochEnd& phase) { write(collector_.epoch(phase)); }
  void on_fit_end(FitEnd& phase) {
    write_events();
    // A finished run that is started again has one end.
    constexpr bool forgets = requires { requires Sink::forgets; };
    if (!forgets && ended_at_ == phase.counters().step) return;
    ended_at_ = phase.counters().step;
    write(collector_.end(phase));
  }
  void on_recorded(Recorded const&) {
    if (in_run_) write_events();
  }

  template <class Archive>
  void persist(Archive& archive) {
    // The checkpoint of the beginning includes the begin record.
    if (!Archive::loading && opened_) enter();
    archive("ended_at", ended_at_);
    collector_.persist(archive);
    if constexpr (requires { sink_.persist(archive, SinkMoment{}); }) {
      SinkMoment const now{.step = !run_ ? 0 : run_->counters().step, .in_run = in_run_};
      archive.scope("sink", [&](auto& inner) { sink_.persist(inner, now); });
    }
    if constexpr (Archive::loading && requires { sink_.lacks(); }) {
      if (std::string const lost = sink_.lacks(); !lost.empty()) run_->warn(lost);
    }
  }

 protected:
  Sink& sink() { return sink_; }
  /// For a sink that writes more than records: `f()` counts as one.
  template <class F>
  void attempt(F&& f) {
    if (guarded(std::forward<F>(f))) ++so_far_.written;
  }
  /// Guards a part of a record.
  template <class F>
  bool guarded(F&& f) {
    try {
      std::forward<F>(f)();
      return true;
    } catch (std::exception const& error) {
      failed(error.what());
    } catch (...) {
      failed("an exception that is not a std::exception");
    }
    return false;
  }

 private:
  void enter() {
    if (std::exchange(in_run_, true)) return;
    // Known only now: a resume, or a fork, has been loaded.
    begin_->at = run_->counters();
    begin_->seconds = run_->seconds();
    attempt([&] { sink_.write(*begin_); });
    begin_.reset();
    write_events();
  }

  void write(MetricRecord const& record) {
    write_events();
    attempt([&] { sink_.write(record); });
  }

  void write_events() {
    for (; events_ < run_->events().size(); ++events_) {
      attempt([&] { sink_.write(MetricCollector::event(run_->events()[events_])); });
    }
  }

  void failed(std::string const& why) {
    if (so_far_.lost++ != 0) return;
    so_far_.first_failure = why;
    if (!run_) return;
    run_->warn(std::string(name_) + " could not write at step " +
               std::to_string(run_->counters().step) + " (" + why +
               "): the run continues, each later record is tried again, and lost ones are "
               "counted in its outcome");
  }

  [[no_unique_address]] Cadence every_;
  std::shared_ptr<void> lock_;
  Sink sink_;
  Outcome<SinkOutcome> const* outcome_;
  std::string_view name_;
  std::optional<Phase> run_;
  MetricCollector collector_;
  std::optional<MetricRecord> begin_;
  SinkOutcome so_far_;
  bool opened_ = false;
  bool in_run_ = false;     ///< the run is not refused, and what is loaded now is a return
  std::size_t events_ = 0;  ///< that are written
  std::optional<std::uint64_t> ended_at_;
};

}  // namespace frugal::detail
