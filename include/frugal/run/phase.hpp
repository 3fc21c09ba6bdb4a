// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/ATen.h>

#include <utility>
#include <vector>

#include <frugal/run/run.hpp>
#include <frugal/run/services.hpp>
#include <frugal/state/snapshot.hpp>

namespace frugal {

/// A run at one moment, for a policy that goes back there; see SafePoint::take.
using RunSnapshot = Snapshot<AnyRun>;

template <class Context>
class Phase;

namespace detail {
/// The run behind a phase, for those parts of frugal that are compiled once for all recipes.
template <class Context>
AnyRun& run_of(Phase<Context> const& phase) {
  return phase.run();
}
}  // namespace detail

// What a hook is given. Each phase offers what exists at that moment and nothing else, so that
// asking for the loss before there is one does not compile.

/// What every phase offers.
template <class Context>
class Phase {
 public:
  explicit Phase(Run<Context>& run) : run_(&run) {}

  auto& module() const { return run_->module; }
  Settings const& settings() const { return run_->settings; }
  Counters const& counters() const { return run_->counters; }
  Parameters const& parameters() const { return run_->parameters; }
  /// What the optimizer multiplies its learning rates with.
  double learning_rate_factor() const { return run_->rate.factor * run_->rate.scale; }
  /// Wall time of training, that before a resume included.
  double seconds() const { return run_->seconds(); }
  /// One line for the user, given once and never as an exception.
  void advise(std::string const& text) const { run_->advise(text); }
  /// What happened to the run itself; those who log write it with their next line.
  void record(Event event) const { run_->record(std::move(event)); }
  std::vector<Event> const& events() const { return run_->events; }
  /// What processes that train together make of one value each. The value itself where there is
  /// one process. Each of them has to ask, and at the same moments.
  template <class T>
  T reduce(Quantity what, T value) const {
    return run_->reduce(what, std::move(value));
  }

  /// Seconds that the last checkpoint took; 0 where none was made yet.
  double save_seconds() const {
    if constexpr (detail::provided<service::save, typename Context::policies>) {
      return run_->engine->template provider<service::save>().save_seconds();
    } else {
      return 0;
    }
  }

 protected:
  Run<Context>& run() const { return *run_; }

 private:
  friend AnyRun& detail::run_of<Context>(Phase const& phase);

  Run<Context>* run_;
};

/// A moment at which a run can be saved, for all state is at rest.
template <class Context>
struct SafePoint : Phase<Context> {
  using Phase<Context>::Phase;

  Horizon const& horizon() const { return this->run().horizon; }
  std::vector<Validation> const& validations() const { return this->run().validations; }
  /// Loads or saves where training stands and every policy's state (not the module's tensors).
  void persist(StateWriter& archive) {
    settle_losses();
    this->run().persist(archive);
  }
  void persist(StateReader& archive) { this->run().persist(archive); }
  /// Keeps parts of the run as they are now; Part::good is all that a run can be taken back to.
  void take(RunSnapshot& into, Part parts, Copies copies = Copies::on_host) {
    if (holds(parts, Part::states)) settle_losses();
    into.take(this->run(), parts, copies);
  }
  /// Puts back what was taken, in `recover`, `fit_begin` or `ready`: the loop seeks the source
  /// after these. With Part::states this State is loaded, too: what the policy knows of the time
  /// since then it keeps aside.
  void restore(RunSnapshot& from) { from.restore(this->run()); }
  /// Reads the losses that are still on a device, so that none of what is kept or saved now is bad
  /// without anybody knowing. Throws the LossError of a bad one; in each process, where several
  /// train together.
  void settle_losses() { this->run().settle_losses(); }
  /// The event that was broken off at this moment, by its hook's name; empty if none was.
  std::string const& unfinished() const { return this->run().unfinished.hook; }
  /// On top of what the schedule says, until it is set again.
  double learning_rate_scale() const { return this->run().rate.scale; }
  void set_learning_rate_scale(double scale) { this->run().rate.scale = scale; }
  /// Has the run saved now, and waits until the disk has it. False if it could not, and goes on
  /// all the same (OnFailure::GoOn), and in a recipe where nobody saves. In on_step or on_epoch_end
  /// who has not heard of the event yet hears of it in the run that resumes; who asks, and those
  /// before, do not.
  bool save() {
    if constexpr (detail::provided<service::save, typename Context::policies>) {
      auto& run = this->run();
      if (!run.at_hand.empty()) {
        run.unfinished = {std::string(run.at_hand), run.engine->names_of_first(run.telling + 1)};
      }
      bool const saved = run.engine->template provider<service::save>().save(*this);
      if (!run.at_hand.empty()) run.unfinished = {};
      return saved;
    } else {
      return false;
    }
  }
  /// A person asked for the end, with Ctrl-C: Report::interrupted, and exit_code() is 130. For
  /// on_preempt and on_fit_end.
  void interrupted_by_user() { this->run().interrupted_by_user(); }
  bool interrupted() const { return this->run().interrupted; }
  /// Files that policies write to, and that a checkpoint has to find on the disk.
  std::vector<std::filesystem::path> const& files() const { return this->run().files; }
};

}  // namespace frugal
