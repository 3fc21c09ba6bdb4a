// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/core/run/phases.hpp>

#include <frugal/base/number_text.hpp>
#include <frugal/core/run/interfaces.hpp>
#include <frugal/core/run/run_state.hpp>
#include <frugal/inline.hpp>

#include <utility>

namespace frugal {

FRUGAL_INLINE torch::nn::Module& ModuleSetup::module() const { return run_->root; }

FRUGAL_INLINE Settings const& ModuleSetup::settings() const { return run_->settings; }

FRUGAL_INLINE void ModuleSetup::warn(std::string const& text) const { run_->warn(text); }

FRUGAL_INLINE void ModuleSetup::hold(std::vector<at::Tensor> const& tensors) const {
  run_->hold.hold(tensors);
}

FRUGAL_INLINE detail::ModuleHold& ModuleSetup::take_turns(
    std::vector<std::vector<at::Tensor>> parts) const {
  run_->hold.take_turns(std::move(parts));
  return run_->hold;
}

FRUGAL_INLINE void ModuleSetup::begin_on(c10::Device device) { run_->begin_on(device); }

FRUGAL_INLINE RunState& FitRun::run_state() { return run(); }

FRUGAL_INLINE void FitRun::update_parts(ParameterParts const* parts) {
  run().links.update_parts(parts);
}

FRUGAL_INLINE bool FitRun::preempted() const { return run().control.preempted(); }

FRUGAL_INLINE std::optional<std::uint64_t> FitRun::restored_step() const {
  return run().progress.restored_step();
}

FRUGAL_INLINE bool FitBegin::validates() const { return run().links.loop()->validates(); }

FRUGAL_INLINE void FitBegin::compare_in_processes(std::string name, double value, bool on_resume) {
  // All bits of it, in the same text whatever the locale of a process is.
  std::string text = detail::exact_text(value);
  if (on_resume) run().set_up.keep(name, text);
  if (run().links.facts().divides) run().set_up.compare(std::move(name), std::move(text));
}

FRUGAL_INLINE void FitBegin::set_learning_rate_factor(double factor) {
  run().rate.set_factor(factor, run().counters());
}

FRUGAL_INLINE void FitBegin::report_learning_rate(double own) {
  run().rate.set_groups({{.own = own}});
}

FRUGAL_INLINE void FitBegin::report_learning_rates(std::vector<GroupRate> groups) {
  run().rate.set_groups(std::move(groups));
}

FRUGAL_INLINE void FitBegin::begin_easily(std::uint64_t epochs) {
  run().set_up.begin_easily(epochs);
}
FRUGAL_INLINE std::uint64_t Ready::easy_epochs() const { return run().set_up.easy_epochs(); }

FRUGAL_INLINE std::vector<Check> FitBegin::dry_run(std::size_t batches) {
  return run().links.loop()->dry_run(batches);
}

FRUGAL_INLINE void FitBegin::try_validation(std::size_t batches) {
  run().set_up.try_validation(batches);
}

FRUGAL_INLINE void FitBegin::finish_set_up() { run().links.loop()->finish_set_up(); }

FRUGAL_INLINE void FitBegin::when_restored(std::function<void()> then) {
  run().set_up.when_restored(std::move(then));
}

FRUGAL_INLINE void FitBegin::leave_bad_losses() { run().losses.leave_bad_losses(); }

FRUGAL_INLINE void FitBegin::scale_losses_by(std::function<double()> scale) {
  run().window.scale_losses_by(std::move(scale));
}

FRUGAL_INLINE void FitBegin::writes_to(std::filesystem::path file) {
  run().set_up.writes_to(std::move(file));
}

FRUGAL_INLINE void FitBegin::follow(ScalarSpan& span) { run().losses.follow(span); }

FRUGAL_INLINE void FitBegin::resumed(Resumed what, double seconds) {
  run().progress.resume_from(std::move(what), seconds);
}

FRUGAL_INLINE void Ready::move_to(c10::Device device) { run().links.loop()->move_to(device); }

FRUGAL_INLINE bool Ready::stopped_by(std::string_view kind) const {
  return run().control.stopped_by() == kind;
}

FRUGAL_INLINE void Ready::withdraw_stop() { run().control.agree_on_stop({}); }

FRUGAL_INLINE void Ready::set_learning_rate_factor(double factor) {
  run().rate.set_factor(factor, run().counters());
}

FRUGAL_INLINE void Step::set_learning_rate_factor(double factor) {
  run().rate.set_factor(factor, run().counters());
}

FRUGAL_INLINE double Step::last_loss() { return run().losses.last(); }

FRUGAL_INLINE double Step::mean_loss() { return run().mean_loss(); }

FRUGAL_INLINE std::vector<ScalarSpan::Mean> Step::scalars(ScalarSpan& span) {
  run().losses.read_pending();
  return span.take();
}

FRUGAL_INLINE GradientNorm const& Step::gradient_norm() const { return run().window.norm(); }

FRUGAL_INLINE std::optional<Speed> const& Step::speed() const { return run().observed.speed(); }

FRUGAL_INLINE void Step::report_speed(Speed const& speed) { run().observed.set_speed(speed); }

FRUGAL_INLINE std::optional<double> Step::waited_for_data() const {
  return run().links.loop()->waited_for_data();
}

FRUGAL_INLINE Validation const& Step::train_metrics() const {
  return run().observed.train_metrics();
}

FRUGAL_INLINE void Step::report_train_metrics(Metrics metrics) {
  Counters const& now = run().counters();
  run().observed.set_train_metrics({now.epoch, now.step, std::move(metrics)});
}

FRUGAL_INLINE flow Step::validate() { return run().links.loop()->validate(); }

FRUGAL_INLINE bool Step::is_preempting() const { return run().control.is_preempting(); }

FRUGAL_INLINE std::optional<std::uint64_t> ValidationRun::batches() const {
  return run().links.loop()->validation_batches();
}

FRUGAL_INLINE void Validated::set_learning_rate_factor(double factor) {
  run().rate.set_factor(factor, run().counters());
}

FRUGAL_INLINE double EpochEnd::mean_loss() const { return run().observed.epoch_loss(); }

FRUGAL_INLINE std::string const& FitEnd::stopped_by() const { return run().control.ended_by(); }

FRUGAL_INLINE bool FitEnd::preempted() const { return run().control.preempted(); }

FRUGAL_INLINE std::string const& Preemption::requested_by() const {
  return run().control.preempted_by();
}

}  // namespace frugal
