// SPDX-License-Identifier: Apache-2.0
// Any recipe, stopped anywhere and resumed, ends with the bits of an uninterrupted run.
#pragma once

#include <doctest/doctest.h>

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "conform/bits.hpp"
#include "conform/module_state.hpp"
#include "conform/policies.hpp"
#include "support/files.hpp"

namespace frugal_test::conform_resume {

using namespace frugal_test::support;
using namespace frugal_test::conform;

/// The results by which runs are compared.
struct Outcome {
  frugal::Report report;
  std::map<std::string, at::Tensor> tensors;
  std::map<std::string, bool> flags;  ///< see flags_of()
  std::vector<double> losses;         ///< of every micro-batch
  std::vector<double> epoch_losses;   ///< mean of every completed epoch
  std::vector<frugal::Validation> validations;
  std::map<std::uint64_t, Frozen> after_step;
  std::map<std::uint64_t, Frozen> after_epoch;
};

/// Without the log's length and end: its lines contain times, with a varying number of digits.
inline frugal::StateDict comparable_state(Frozen const& frozen) {
  frugal::StateDict state = frozen.run;
  state.values.erase("policies/Log/size");
  state.values.erase("policies/Log/tail");
  // The name of the run at the server, and what had not arrived there yet.
  std::erase_if(state.values,
                [](auto const& each) { return each.first.starts_with("policies/Mlflow/"); });
  return state;
}

/// Fits of the same trainer after its first one: from the same weights it is the first one again, also
/// of a module in evaluation mode, and one that is stopped or fails puts the module's state back too.
template <class Trainer, class Source>
void fit_again(Trainer& trainer, torch::nn::Module& module,
               std::map<std::string, at::Tensor> const& begun, Outcome const& first, Source& train,
               Source& valid) {
  std::map<std::uint64_t, Frozen> steps, epochs;
  auto& resume = trainer.template policy<support::kinds::restore>();
  resume.after_step = &steps;
  resume.after_epoch = &epochs;
  put_back(module, begun);
  module.eval();
  auto const flags = flags_of(module);
  TemporaryFolder folder;
  trainer.settings().run_dir = folder / "second";
  CHECK(trainer.fit(train, valid).steps == first.report.steps);
  CHECK(same_bits(tensors_of(module), first.tensors));
  CHECK(differences(flags, flags_of(module)) == "");
  CHECK(comparable_state(steps.at(first.report.steps)) ==
        comparable_state(first.after_step.at(first.report.steps)));
  trainer.settings().run_dir = folder / "stopped";
  resume.stop_at = 3;
  CHECK(trainer.fit(train, valid).steps == 3);
  CHECK(differences(flags, flags_of(module)) == "");
  trainer.settings().run_dir = folder / "failed";
  trainer.template policy<support::kinds::spy>().each_step = [](auto const&) {
    throw std::runtime_error("in a step");
  };
  CHECK_THROWS_AS(trainer.fit(train, valid), std::runtime_error);
  CHECK(differences(flags, flags_of(module)) == "");
}

/// Three epochs of 11 batches (the last ragged), shuffled, with dropout and normalization.
template <class... Ps>
Outcome run(frugal::list<Ps...> policies, Frozen const* from) {
  Outcome outcome;
  Seen seen;
  TemporaryFolder folder;
  auto const module = std::make_shared<Mlp>(Mlp::Shape{.dropout = 0.3, .norm = true, .tied = true});
  frugal::Trainer<std::shared_ptr<Mlp>, frugal::CrossEntropy, Ps..., Spy, Resume> trainer{
      module,
      {},
      {.run_dir = folder.path(), .epochs = 3, .seed = 7},
      Spy{.seen = &seen},
      Resume{.from = from, .after_step = &outcome.after_step, .after_epoch = &outcome.after_epoch}};
  prepare_all(trainer, policies);
  trainer.adapt();
  auto const begun = tensors_of(*module);
  auto const kept = kept_by(*module);
  auto const flags = flags_of(*module);
  frugal::TensorDataset train(samples(43), {.batch = 4, .shuffle = true});
  frugal::TensorDataset valid(samples(15, 92), {.batch = 4});
  outcome.report = trainer.fit(train, valid);
  outcome.tensors = tensors_of(*module);
  outcome.flags = flags_of(*module);
  CHECK(differences(flags, outcome.flags) == "");
  CHECK(same_bits(kept, kept_by(*module)));
  write_bits(outcome.tensors);
  outcome.losses = seen.losses;
  outcome.epoch_losses = seen.epoch_losses;
  outcome.validations = seen.validations;
  if (from == nullptr) fit_again(trainer, *module, begun, outcome, train, valid);
  return outcome;
}

template <class T>
std::vector<T> last(std::vector<T> const& all, std::size_t count) {
  REQUIRE(count <= all.size());
  return {all.end() - static_cast<std::ptrdiff_t>(count), all.end()};
}

inline bool same(std::vector<frugal::Validation> const& a,
                 std::vector<frugal::Validation> const& b) {
  if (a.size() != b.size()) return false;
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (a[i].epoch != b[i].epoch || a[i].step != b[i].step || a[i].metrics != b[i].metrics) {
      return false;
    }
  }
  return true;
}

inline void compare(Outcome const& whole, Outcome const& resumed) {
  CHECK(same_bits(resumed.tensors, whole.tensors));
  CHECK(differences(whole.flags, resumed.flags) == "");
  CHECK(resumed.report.steps == whole.report.steps);
  CHECK(resumed.report.epochs == whole.report.epochs);
  CHECK(resumed.report.samples == whole.report.samples);
  CHECK(resumed.report.stopped_by == whole.report.stopped_by);
  CHECK(resumed.report.train_loss == whole.report.train_loss);
  CHECK(resumed.losses == last(whole.losses, resumed.losses.size()));
  CHECK(resumed.epoch_losses == last(whole.epoch_losses, resumed.epoch_losses.size()));
  CHECK(same(resumed.validations, last(whole.validations, resumed.validations.size())));
}

template <class... Ps>
void resumes(frugal::list<Ps...> policies) {
  CAPTURE(std::string(frugal::detail::type_name<frugal::list<Ps...>>()));
  Outcome const whole = run(policies, nullptr);
  REQUIRE(whole.report.epochs == 3);
  std::uint64_t const steps = whole.report.steps;
  std::uint64_t const per_epoch = steps / 3;
  REQUIRE(whole.after_step.size() == steps);
  for (std::uint64_t const step :
       {std::uint64_t{1}, per_epoch - 1, per_epoch, per_epoch + 1, 2 * per_epoch, steps - 1}) {
    CAPTURE(step);
    Outcome const resumed = run(policies, &whole.after_step.at(step));
    CHECK(resumed.after_step.size() == steps - step);
    compare(whole, resumed);
    CHECK(comparable_state(resumed.after_step.at(steps)) ==
          comparable_state(whole.after_step.at(steps)));
  }
  for (std::uint64_t const epoch : {1U, 2U}) {
    CAPTURE(epoch);
    Outcome const resumed = run(policies, &whole.after_epoch.at(epoch));
    CHECK(resumed.after_step.size() == steps - epoch * per_epoch);
    compare(whole, resumed);
    CHECK(comparable_state(resumed.after_epoch.at(3)) == comparable_state(whole.after_epoch.at(3)));
  }
}

}  // namespace frugal_test::conform_resume
