// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/report/progress.hpp>

#include <frugal/base/memory.hpp>
#include <frugal/base/number_texts.hpp>
#include <frugal/base/terminal.hpp>
#include <frugal/base/text_width.hpp>
#include <frugal/core/libtorch/cuda_memory.hpp>
#include <frugal/core/run/run_state.hpp>
#include <frugal/inline.hpp>

#include <cerrno>

namespace frugal::detail {

FRUGAL_INLINE ProgressPrinter::ProgressPrinter(std::FILE* out, bool plain, double line_seconds)
    : out_(out),
      terminal_(!plain && watch::redraws(out)),
      interval_(terminal_ ? 0.25 : seconds_of(line_seconds)) {
  // Its destructor, also after an exception, leaves the cursor below the bars.
  if (terminal_) display_.emplace(out_, watch::wants_colors());
}

FRUGAL_INLINE void ProgressPrinter::begin(std::string_view metric, RunLimits const& horizon) {
  line_.metric = std::string(metric);
  line_.total_steps = horizon.total_steps;
  if (horizon.epochs != RunLimits::unlimited) line_.epochs = horizon.epochs;
  pace_.begin(clock::now());
}

FRUGAL_INLINE void ProgressPrinter::next_batch() {
  ++line_.validation->done;
  if (clock::time_point const now = clock::now(); now >= due_) draw(now);
}

FRUGAL_INLINE std::optional<double> ProgressPrinter::validated(std::uint64_t step,
                                                               Metrics const& metrics) {
  std::optional<double> watched;
  for (auto const& [name, value] : metrics) {
    if (name == line_.metric && !std::isnan(value)) watched = value;
  }
  if (watched) line_.last = watched;
  if (terminal_ || !out_) return watched;
  std::string line = "validation at step " + std::to_string(step);
  for (auto const& [name, value] : metrics) {
    line += "  " + watch::printable(name) + " " + watch::short_number(value);
  }
  write(line);
  return watched;
}

FRUGAL_INLINE void ProgressPrinter::show(RunState const& run, clock::time_point now,
                                         Shown const& shown) {
  Counters const& at = run.counters();
  bool const epoch_end = shown.at == ShownAt::epoch_end;
  // Known only now: a resumed run's counters are loaded after this policy's own beginning.
  if (!pace_.knows_first()) {
    pace_.first(at.step - (epoch_end ? 0 : 1), at.sample - (epoch_end ? 0 : at.window_samples));
  }
  pace_.update(now, at.step, at.sample, run.links.loop()->waited_for_data());
  // At the end of an epoch the counter is one further; the bar still shows the ended epoch and
  // its mean.
  line_.epoch = at.epoch - (epoch_end ? 1 : 0);
  line_.step = at.step;
  line_.in_epoch = in_epoch(run.progress.horizon(), at.position, epoch_end);
  line_.samples_per_second = pace_.samples_per_second();
  line_.utilisation = run.observed.speed() ? run.observed.speed()->utilisation : std::nullopt;
  line_.data_wait = pace_.data_wait();
  if (!line_.data_wait && run.observed.speed()) line_.data_wait = run.observed.speed()->data_wait;
  line_.seconds_left = pace_.seconds_left(at.step, line_.total_steps);
  line_.loss = shown.loss;
  line_.mean = epoch_end;
  line_.best = shown.best;
  line_.more = shown.scalars;
  for (auto const& each : run.observed.train_metrics().metrics) line_.more.push_back(each);
  line_.gauges = run.observed.gauges().items();
  line_.memory_bytes = tensor_bytes(run.settings.device);
  if (!line_.memory_bytes) line_.memory_bytes = watch::resident_bytes();
  draw(now);
}

FRUGAL_INLINE void ProgressPrinter::end(std::uint64_t step, std::string const& stopped_by) {
  if (!out_) return;
  if (display_) display_->end();
  std::string line = std::to_string(pace_.steps_since_first(step)) + " steps in " +
                     watch::duration_text(pace_.seconds_since_begin(clock::now()));
  if (!stopped_by.empty()) line += ", stopped by " + stopped_by;
  write(line);
}

FRUGAL_INLINE void ProgressPrinter::draw(clock::time_point now) {
  due_ =
      now + std::chrono::duration_cast<clock::duration>(std::chrono::duration<double>(interval_));
  if (display_) {
    display_->draw(watch::bar_lines(line_, watch::terminal_size(out_).columns));
  } else {
    write(watch::line_text(line_));
  }
}

FRUGAL_INLINE void ProgressPrinter::write(std::string const& line) {
  if (!watch::write_text(out_, line + "\n") && errno == EPIPE) out_ = nullptr;
}

FRUGAL_INLINE std::optional<watch::Share> ProgressPrinter::in_epoch(RunLimits const& horizon,
                                                                    std::uint64_t position,
                                                                    bool at_end) {
  if (!horizon.steps_per_epoch || horizon.samples_per_epoch.value_or(0) == 0) return {};
  double const share =
      static_cast<double>(position) / static_cast<double>(*horizon.samples_per_epoch);
  auto const steps = static_cast<double>(*horizon.steps_per_epoch);
  if (at_end || share >= 1) return watch::Share{*horizon.steps_per_epoch, horizon.steps_per_epoch};
  return watch::Share{static_cast<std::uint64_t>(std::llround(share * steps)),
                      horizon.steps_per_epoch};
}

}  // namespace frugal::detail
