// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/core/run/phase.hpp>

#include <c10/util/Type.h>

#include <frugal/core/run/gauges.hpp>
#include <frugal/core/run/interfaces.hpp>
#include <frugal/core/run/run_snapshot.hpp>
#include <frugal/core/run/run_state.hpp>
#include <frugal/error.hpp>
#include <frugal/inline.hpp>

#include <typeinfo>
#include <utility>

namespace frugal::detail {

FRUGAL_INLINE void refuse_class_of(torch::nn::Module const& module,
                                   std::type_info const& expected) {
  throw ModuleError({.what = "the module is of another class than a policy expects",
                     .where = c10::demangle(expected.name()),
                     .why = "it is " + c10::demangle(typeid(module).name()),
                     .fix = "Name the class of the module itself in module_as, not its holder."});
}

}  // namespace frugal::detail

namespace frugal {

FRUGAL_INLINE torch::nn::Module& Phase::module() const { return run_->root; }

FRUGAL_INLINE Settings const& Phase::settings() const { return run_->settings; }

FRUGAL_INLINE RecipeFacts const& Phase::facts() const { return run_->links.facts(); }

FRUGAL_INLINE Counters const& Phase::counters() const { return run_->counters(); }

FRUGAL_INLINE Parameters const& Phase::parameters() const { return run_->parameters; }

FRUGAL_INLINE ParameterParts const* Phase::parts() const { return run_->links.parts(); }

FRUGAL_INLINE TensorPlaces const& Phase::places() const { return run_->together.places; }

FRUGAL_INLINE bool Phase::has_held_parts() const {
  return static_cast<bool>(run_->together.held_parts);
}

FRUGAL_INLINE c10::Device Phase::device() const { return run_->device; }

FRUGAL_INLINE std::optional<Resumed> const& Phase::resumed_from() const {
  return run_->progress.resumed();
}

FRUGAL_INLINE double Phase::learning_rate_factor() const { return run_->rate.factor(); }

FRUGAL_INLINE std::optional<double> Phase::learning_rate() const { return run_->rate.first(); }

FRUGAL_INLINE std::vector<std::pair<std::string, double>> Phase::group_learning_rates() const {
  return run_->rate.each();
}

FRUGAL_INLINE double Phase::seconds_before() const { return run_->progress.seconds_before(); }

FRUGAL_INLINE double Phase::seconds() const { return run_->seconds(); }

FRUGAL_INLINE void Phase::warn(std::string const& text) const { run_->warn(text); }

FRUGAL_INLINE void Phase::warn_of_plan(std::string const& text) const {
  run_->observed.warn_of_plan(text);
}

FRUGAL_INLINE void Phase::record(Event event) const { run_->record(std::move(event)); }

FRUGAL_INLINE std::vector<Event> const& Phase::events() const { return run_->observed.events(); }

FRUGAL_INLINE void Phase::set_gauge(std::string_view name, double value) const {
  run_->observed.set_gauge(name, value);
}

FRUGAL_INLINE Gauges const& Phase::gauges() const { return run_->observed.gauges(); }

FRUGAL_INLINE double Phase::reduce(Quantity what, double value) const {
  return run_->reduce(what, value);
}

FRUGAL_INLINE at::Tensor Phase::reduce(Quantity what, at::Tensor value) const {
  return run_->reduce(what, std::move(value));
}

FRUGAL_INLINE bool Phase::is_first() const { return run_->is_first(); }

FRUGAL_INLINE Processes Phase::processes() const { return run_->processes(); }

FRUGAL_INLINE std::string Phase::from_first(std::string const& text) const {
  return run_->from_first(text);
}

FRUGAL_INLINE std::vector<std::string> Phase::texts_of_all(std::string const& text) const {
  return run_->texts_of_all(text);
}

FRUGAL_INLINE std::shared_ptr<void> Phase::folder_lock() const {
  return run_->set_up.folder_lock();
}

FRUGAL_INLINE double Phase::save_seconds() const {
  return run_->links.saver() == nullptr ? 0 : run_->links.saver()->save_seconds();
}

FRUGAL_INLINE RunState& CheckpointPhase::run_state() { return this->run(); }

FRUGAL_INLINE RunLimits const& CheckpointPhase::horizon() const {
  return this->run().progress.horizon();
}

FRUGAL_INLINE std::vector<Validation> const& CheckpointPhase::validations() const {
  return this->run().observed.validations();
}

FRUGAL_INLINE void CheckpointPhase::persist(StateWriter& archive) {
  read_losses();
  this->run().persist(archive);
}

FRUGAL_INLINE void CheckpointPhase::persist(StateReader& archive) { this->run().persist(archive); }

FRUGAL_INLINE void CheckpointPhase::take(RunSnapshot& into, Part parts, CopyTarget copies) {
  if (holds(parts, Part::states)) read_losses();
  into.take(this->run(), parts, copies);
}

FRUGAL_INLINE void CheckpointPhase::restore(RunSnapshot& from) { from.restore(this->run()); }

FRUGAL_INLINE void CheckpointPhase::read_losses() { this->run().read_losses(); }

FRUGAL_INLINE std::string const& CheckpointPhase::unfinished() const {
  return this->run().control.unfinished().hook;
}

FRUGAL_INLINE double CheckpointPhase::learning_rate_scale() const {
  return this->run().rate.scale();
}

FRUGAL_INLINE void CheckpointPhase::set_learning_rate_scale(double scale) {
  this->run().rate.set_scale(scale, counters());
}

FRUGAL_INLINE bool CheckpointPhase::save() {
  RunState& run = this->run();
  if (run.links.saver() == nullptr) return false;
  Control& control = run.control;
  if (control.in_event()) {
    control.set_unfinished({std::string(control.current_hook()),
                            run.links.policies().names_of_first(control.subscriber() + 1)});
  }
  bool const saved = run.links.saver()->save(*this);
  if (control.in_event()) control.set_unfinished({});
  control.saved(saved);
  return saved;
}

FRUGAL_INLINE void CheckpointPhase::interrupted_by_user() {
  this->run().control.ask(End::interrupt, "Ctrl-C");
}

FRUGAL_INLINE bool CheckpointPhase::interrupted() const {
  return this->run().control.interrupted();
}

FRUGAL_INLINE std::vector<std::filesystem::path> const& CheckpointPhase::files() const {
  return this->run().set_up.files();
}

}  // namespace frugal
