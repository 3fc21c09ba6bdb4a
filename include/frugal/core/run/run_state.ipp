// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/core/run/run_state.hpp>

#include <algorithm>
#include <exception>
#include <map>
#include <sstream>
#include <string>
#include <utility>

#include <frugal/base/number_text.hpp>
#include <frugal/core/libtorch/fixed_tensors.hpp>
#include <frugal/core/run/failure.hpp>
#include <frugal/core/run/surprises.hpp>
#include <frugal/core/state/cut_tensors.hpp>
#include <frugal/error.hpp>
#include <frugal/inline.hpp>

namespace frugal {

FRUGAL_INLINE std::string const& FixedIdentity::identify(torch::nn::Module const& module) {
  std::uint64_t const versions = fixed_versions(module);
  if (!known_) {
    identity_ = fixed_identity(module);
    versions_ = versions;
    known_ = true;
  } else if (versions != versions_) {
    throw StateError(
        {.what = "a fixed tensor of the module was written to during the run",
         .where = "checkpoint",
         .why = "checkpoints do not include fixed tensors (Freeze, Lora): the change would be lost",
         .fix = "Do not write to fixed tensors during a fit, or do not fix them."});
  }
  return identity_;
}

FRUGAL_INLINE void FixedIdentity::require(torch::nn::Module const& module,
                                          std::string const& saved) {
  std::string const& here = identify(module);
  if (saved == here) return;
  std::string why = "their hash is " + saved + " there, and " + here + " here";
  if (saved.empty()) why = "its run had none, and this module has some";
  if (here.empty()) why = "its run had some, and this module has none";
  throw StateError({.what = "the module's fixed tensors are not those of the checkpoint's run",
                    .where = "fixed tensors",
                    .why = std::move(why),
                    .fix = "Before fit, load the weights that the run began with, and adapt the "
                           "module as that run did (Freeze, Lora)."});
}

FRUGAL_INLINE std::string RunState::options_text() const {
  std::map<std::string, std::string> all = settings.options;
  for (GroupRate const& group : rate.groups()) {
    bool const alone = rate.groups().size() == 1;
    all[alone ? "learning rate" : "learning rate of " + group.name] = detail::exact_text(group.own);
  }
  for (auto const& [name, value] : set_up.kept()) all[std::string(of_policy) + name] = value;
  std::string text;
  for (auto const& [name, value] : all) text += name + " = " + value + '\n';
  return text;
}

FRUGAL_INLINE void RunState::warn_of_options(std::string const& saved, std::string const& here) {
  auto const parsed = [](std::string const& text) {
    std::map<std::string, std::string> all;
    std::istringstream lines(text);
    for (std::string line; std::getline(lines, line);) {
      std::size_t const sign = std::min(line.find(" = "), line.size());
      all[line.substr(0, sign)] = sign == line.size() ? "" : line.substr(sign + 3);
    }
    return all;
  };
  auto const before = parsed(saved);
  auto now = parsed(here);
  std::string changes;
  auto const add = [&](std::string const& name, std::string const& from, std::string const& to) {
    changes += (changes.empty() ? "" : "; ") + name + " was " + from + " and is " + to;
  };
  for (auto const& [name, value] : before) {
    auto const found = now.find(name);
    if (name.starts_with(of_policy)) {
      // One that only the other recipe has is no change of a number.
      if (found != now.end() && found->second != value) {
        add(name.substr(of_policy.size()), value, found->second);
      }
    } else if (found == now.end()) {
      add(name, value, "not set from outside");
    } else if (found->second != value) {
      add(name, value, found->second);
    }
    if (found != now.end()) now.erase(found);
  }
  for (auto const& [name, value] : now) {
    if (!name.starts_with(of_policy)) add(name, "not set from outside", value);
  }
  if (changes.empty()) return;
  std::string const text = "the checkpoint was saved with other settings: " + changes;
  warn(text);
  detail::say_warning(text);
}

FRUGAL_INLINE double RunState::mean_loss() {
  if (!links.facts().agrees || links.facts().divides) {
    double const mean = losses.mean();
    if (links.facts().divides && losses.bad()) refuse_bad_loss();
    return mean;
  }
  LossAccumulator::Sum const here = losses.sum();
  double const sum = reduce(Quantity::loss, losses.bad() ? nan : here.losses);
  double const weight = reduce(Quantity::loss, here.weights);
  if (std::isnan(sum)) refuse_bad_loss();
  return weight == 0 ? nan : sum / weight;
}

FRUGAL_INLINE void RunState::read_losses() {
  losses.read_pending();
  if (links.facts().divides) {
    if (losses.bad()) refuse_bad_loss();
  } else if (links.facts().agrees) {
    if (std::isnan(reduce(Quantity::loss, losses.bad() ? nan : 0.0))) refuse_bad_loss();
  }
}

FRUGAL_INLINE bool RunState::agree_on_stop(bool asked, std::string const& who, bool own_verdicts) {
  if (!links.facts().divides) return reduce(Quantity::stop, asked ? 1.0 : 0.0) != 0;
  if (!own_verdicts) return asked;
  // Where all have the same losses, a message only for policies that ask for reasons of their own. It names
  // the one that asked: the run may go on only if that one withdraws it.
  std::string name = who.empty() ? control.stopped_by() : who;
  if (name.empty()) name = detail::another_process;
  std::string const first = links.others()->first_of(asked ? name : std::string());
  if (!first.empty()) control.agree_on_stop(first);
  return !first.empty();
}

FRUGAL_INLINE std::string RunState::agreed_stop_of_checkpoint() {
  if (links.facts().divides) control.agree_on_stop(from_first(control.stopped_by()));
  return control.stopped_by();
}

FRUGAL_INLINE void RunState::require_whole_weights() const {
  if (links.facts().divides) return;
  detail::require_whole(
      root, "fit",
      "Add the policy that trains with these processes: docs/cluster/tensor_parallel.md "
      "shows it.");
}

FRUGAL_INLINE void RunState::refuse_bad_loss() const {
  if (losses.bad()) std::rethrow_exception(losses.bad());
  detail::refuse_bad_loss_elsewhere(counters());
}

FRUGAL_INLINE void RunState::record(Event event) {
  event.at = counters();
  event.seconds = seconds();
  observed.add_event(std::move(event), [this](Event const& told) {
    if (links.loop() != nullptr) links.loop()->recorded(told);
  });
}

FRUGAL_INLINE void RunState::discard_window() {
  parameters.reset_gradients();
  window.discard();
  losses.reset();
  control.discard_event();
}

FRUGAL_INLINE void RunState::begin_on(c10::Device first) {
  if (device != settings.device && device != first) {
    throw SettingsError(
        {.what = "two policies begin the run on " + device.str() + " and on " + first.str(),
         .where = "on_module",
         .why = "a run begins on one device",
         .fix = "Remove one of the two policies."});
  }
  device = first;
}

FRUGAL_INLINE void RunState::persist(StateWriter& archive) {
  losses.require_good();
  persist_all(archive);
}

}  // namespace frugal
