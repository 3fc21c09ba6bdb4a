// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <iostream>
#include <optional>
#include <ostream>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include <frugal/core/compose/about.hpp>
#include <frugal/core/compose/composition.hpp>
#include <frugal/core/compose/list.hpp>
#include <frugal/core/compose/policy.hpp>
#include <frugal/core/compose/written_name.hpp>
#include <frugal/core/libtorch/parameters.hpp>
#include <frugal/core/run/run_limits.hpp>
#include <frugal/core/run/settings.hpp>
#include <frugal/policy/average/weights.hpp>
#include <frugal/policy/kinds.hpp>
#include <frugal/policy/recipe_name.hpp>

namespace frugal {

namespace detail {

/// Where a kind is documented: a page below docs/, or its own address.
template <class Kind>
std::string_view page_of() {
  if constexpr (requires { std::string_view(Kind::page); }) {
    return Kind::page;
  } else {
    return {};
  }
}

using PlanRows = std::vector<std::vector<std::string>>;

PlanRows plan_head();

/// A null policy is one of the defaults, any other a row of the plan.
void add_plan_row(PlanRows& rows, std::string& defaults, bool null, std::string name,
                  About const& about, std::string_view page);

template <class P>
void add_plan_row(PlanRows& rows, std::string& defaults) {
  if constexpr (is_null<P>) {
    add_plan_row(rows, defaults, true, policy_name<P>(), {}, {});
  } else {
    add_plan_row(rows, defaults, false, policy_name<P>(), about_of<P>(),
                 page_of<typename P::kind>());
  }
}

/// Prints a paragraph; continuation lines are indented.
void print_paragraph(std::ostream& out, std::string_view text);

/// Nothing for an empty text. `kind` is the policy's, or empty.
void print_caution(std::ostream& out, std::string_view kind, std::string const& text);
void print_finding(std::ostream& out, std::string_view kind, std::string const& text);

/// `on_gpu`: the run's device is one, so that what this CPU lacks does not matter.
template <class P>
void explain_cautions(std::ostream& out, bool on_gpu) {
  if constexpr (requires { P::caution(on_gpu); }) {
    print_caution(out, {}, P::caution(on_gpu));
  }
}

/// What a run of this length does not come to, such as the end of a warm-up.
template <class Trainer, class... Ps>
void explain_outlook(Trainer& trainer, RunLimits const& horizon, std::ostream& out, list<Ps...>) {
  auto const print = [&]<class P>(std::type_identity<P>) {
    // A default that nobody watches need not come to anything.
    constexpr bool counts =
        !is_null<P> || !std::same_as<concat<typename watches_of<Ps>::type...>, list<>>;
    if constexpr (counts && requires(P const& policy) { policy.outlook(horizon); }) {
      print_caution(out, P::kind::name,
                    trainer.template policy<typename P::kind>().outlook(horizon));
    }
  };
  (print(std::type_identity<Ps>{}), ...);
}

/// The findings of the last fit, such as a batch size.
template <class Trainer, class... Ps>
void explain_findings(Trainer& trainer, std::ostream& out, list<Ps...>) {
  auto const print = [&]<class P>(std::type_identity<P>) {
    if constexpr (requires(P const& policy) { policy.finding(); }) {
      print_finding(out, P::kind::name, trainer.template policy<typename P::kind>().finding());
    }
  };
  (print(std::type_identity<Ps>{}), ...);
}

void print_plan(std::ostream& out, PlanRows const& rows, std::string const& defaults,
                int host_syncs);

template <class... Ps>
void explain_policies(std::ostream& out, list<Ps...>, int host_syncs, bool on_gpu) {
  PlanRows rows = plan_head();
  std::string defaults;
  (add_plan_row<Ps>(rows, defaults), ...);
  print_plan(out, rows, defaults, host_syncs);
  (explain_cautions<Ps>(out, on_gpu), ...);
}

/// "AdamW: 83 parameters, 5 epochs, seed 0, on cpu, in runs/demo".
std::string run_line(std::string const& name, Settings const& settings, at::Device device,
                     std::int64_t parameters);

}  // namespace detail

/// Prints the plan of a trainer type as a table that fits 100 columns: its name, the policies in
/// the order in which events reach them, with the term of the cost that each lowers (the lever),
/// what it costs and where it is documented; defaults, host syncs per step, and the cautions that
/// apply on this machine. Needs no data, no module and no GPU.
template <class Trainer>
void explain(std::ostream& out = std::cout) {
  detail::print_paragraph(out, recipe_name<Trainer>());
  detail::explain_policies(out, typename Trainer::policies{}, Trainer::host_syncs_per_step,
                           /*on_gpu=*/false);
}

namespace detail {

/// What a checkpoint is made of, in bytes.
struct CheckpointBytes {
  std::int64_t parameters = 0;  ///< a number of elements
  double weights = 0;           ///< and buffers
  double trained = 0;           ///< the weights that have a gradient
  double averages = 0;
  std::optional<double> optimizer = 0;  ///< nothing: what the optimizer keeps is not known
  bool keeps_best = false;              ///< the weights once more
};

CheckpointBytes checkpoint_bytes(torch::nn::Module const& module, bool averaged);

void print_checkpoint(std::ostream& out, CheckpointBytes const& bytes, bool averaged);

template <class Trainer>
void explain_trainer(Trainer& trainer, RunLimits const& horizon, std::ostream& out) {
  // A fit trains and saves what Freeze and Lora leave or add.
  TrainerAccess::adapt(trainer);
  torch::nn::Module const& module = base_module(trainer.module());
  constexpr bool averaged = has<kinds::average, typename Trainer::policies>;
  CheckpointBytes bytes = checkpoint_bytes(module, averaged);
  print_paragraph(out,
                  run_line(trainer.name(), trainer.settings(), trainer.device(), bytes.parameters));
  explain_policies(out, typename Trainer::policies{}, Trainer::host_syncs_per_step,
                   trainer.device().is_cuda());
  explain_outlook(trainer, horizon, out, typename Trainer::policies{});
  explain_findings(trainer, out, typename Trainer::policies{});
  auto const& optimizer = trainer.template policy<kinds::optimizer>();
  if constexpr (requires { optimizer.moment_count(); }) {
    bytes.optimizer = bytes.trained * static_cast<double>(optimizer.moment_count());
  } else if constexpr (requires(Parameters const& all) { optimizer.moment_bytes(all); }) {
    bytes.optimizer = static_cast<double>(optimizer.moment_bytes(Parameters::of(module)));
  } else if constexpr (!is_null<std::remove_cvref_t<decltype(optimizer)>>) {
    bytes.optimizer.reset();
  }
  if constexpr (has<kinds::early_stop, typename Trainer::policies>) {
    auto const& stop = trainer.template policy<kinds::early_stop>();
    if constexpr (requires { stop.restore_best; }) bytes.keeps_best = stop.restore_best;
  }
  print_checkpoint(out, bytes, averaged);
}

}  // namespace detail

/// Explains a trainer. The first line has name, parameters, length, seed, device and folder of the
/// run. Cautions name what the run does not come to, such as the end of a warm-up, as far as
/// Settings determine its length. The last lines have the findings of the last fit, and the size of
/// a checkpoint: weights and buffers, optimizer state, and averaged or best weights if a policy
/// keeps them.
template <class Trainer>
void explain(Trainer& trainer, std::ostream& out = std::cout) {
  Settings const& settings = trainer.settings();
  RunLimits horizon = detail::limits_of(settings);
  horizon.total_steps = settings.steps;  // at most
  detail::explain_trainer(trainer, horizon, out);
}

}  // namespace frugal

#ifndef FRUGAL_COMPILED
#include <frugal/report/explain.ipp>
#endif
