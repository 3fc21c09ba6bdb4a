// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <iostream>
#include <ostream>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include <frugal/base/bytes.hpp>
#include <frugal/base/columns.hpp>
#include <frugal/core/compose/about.hpp>
#include <frugal/core/compose/composition.hpp>
#include <frugal/core/compose/list.hpp>
#include <frugal/core/compose/policy.hpp>
#include <frugal/core/compose/written_name.hpp>
#include <frugal/core/libtorch/parameters.hpp>
#include <frugal/core/run/run_limits.hpp>
#include <frugal/core/run/settings.hpp>
#include <frugal/inline.hpp>
#include <frugal/policy/kinds.hpp>
#include <frugal/policy/recipe_name.hpp>

namespace frugal {

namespace detail {

/// Where a kind is documented: a page below docs/, or its own address.
template <class Kind>
std::string page_of() {
  if constexpr (requires { std::string_view(Kind::page); }) {
    return std::string(std::string_view(Kind::page));
  } else {
    return "";
  }
}

using PlanRows = std::vector<std::vector<std::string>>;

template <class P>
void add_plan_row(PlanRows& rows, std::string& defaults) {
  if constexpr (is_null<P>) {
    defaults += (defaults.empty() ? "" : ", ") + policy_name<P>();
  } else {
    constexpr About about = about_of<P>();
    rows.push_back({std::to_string(rows.size()), policy_name<P>(),
                    about.term == Term::none ? "" : std::string(name_of(about.term)),
                    std::string(about.cost), page_of<typename P::kind>()});
  }
}

/// Prints a paragraph; continuation lines are indented.
FRUGAL_INLINE void print_paragraph(std::ostream& out, std::string_view text) {
  char const* before = "";
  for (std::string const& line : watch::wrapped(text, 96)) {
    out << before << line << '\n';
    before = "    ";
  }
}

template <class P>
void explain_cautions(std::ostream& out) {
  if constexpr (requires { P::caution(); }) {
    std::string const caution = P::caution();
    if (!caution.empty()) print_paragraph(out, "caution: " + caution);
  }
}

/// What a run of this length does not come to, such as the end of a warm-up.
template <class Trainer, class... Ps>
void explain_outlook(Trainer& trainer, RunLimits const& horizon, std::ostream& out, list<Ps...>) {
  auto const print = [&]<class P>(std::type_identity<P>) {
    if constexpr (requires(P const& policy) { policy.outlook(horizon); }) {
      std::string const text = trainer.template policy<typename P::kind>().outlook(horizon);
      if (text.empty()) return;
      print_paragraph(out, "caution: " + std::string(P::kind::name) + ": " + text);
    }
  };
  (print(std::type_identity<Ps>{}), ...);
}

/// The findings of the last fit, such as a batch size.
template <class Trainer, class... Ps>
void explain_findings(Trainer& trainer, std::ostream& out, list<Ps...>) {
  auto const print = [&]<class P>(std::type_identity<P>) {
    if constexpr (requires(P const& policy) { policy.finding(); }) {
      std::string const finding = trainer.template policy<typename P::kind>().finding();
      if (!finding.empty()) out << "found: " << P::kind::name << ": " << finding << '\n';
    }
  };
  (print(std::type_identity<Ps>{}), ...);
}

template <class... Ps>
void explain_policies(std::ostream& out, list<Ps...>, int host_syncs) {
  PlanRows rows{{"#", "policy", "lever", "cost", "docs/"}};
  std::string defaults;
  (add_plan_row<Ps>(rows, defaults), ...);
  if (rows.size() > 1) out << watch::columns(rows, {2, 26, 19, 19, 26});
  if (!defaults.empty()) print_paragraph(out, "defaults: " + defaults);
  out << "host syncs per step: " << host_syncs << '\n';
  (explain_cautions<Ps>(out), ...);
}

/// "AdamW: 83 parameters, 5 epochs, seed 0, on cpu, in runs/demo".
template <class Trainer>
std::string run_line(Trainer const& trainer, std::int64_t parameters) {
  Settings const& settings = trainer.settings();
  std::string text = trainer.name() + ": " + std::to_string(parameters) + " parameters";
  if (settings.epochs || !settings.steps) {
    std::uint64_t const epochs = settings.epochs.value_or(1);
    text += ", " + std::to_string(epochs) + (epochs == 1 ? " epoch" : " epochs");
  }
  if (settings.steps) {
    text += settings.epochs ? ", at most " : ", ";
    text += std::to_string(*settings.steps) + (*settings.steps == 1 ? " step" : " steps");
  }
  text += ", seed " + std::to_string(settings.seed) + ", on " + trainer.device().str();
  return settings.run_dir.empty() ? text : text + ", in " + settings.run_dir.string();
}

}  // namespace detail

/// Prints the plan of a trainer type as a table that fits 100 columns: its name, the policies in
/// the order in which events reach them, with the term of the cost that each lowers (the lever),
/// what it costs and where it is documented; defaults, host syncs per step, and the cautions that
/// apply on this machine. Needs no data, no module and no GPU.
template <class Trainer>
void explain(std::ostream& out = std::cout) {
  detail::print_paragraph(out, recipe_name<Trainer>());
  detail::explain_policies(out, typename Trainer::policies{}, Trainer::host_syncs_per_step);
}

namespace detail {

template <class Trainer>
void explain_trainer(Trainer& trainer, RunLimits const& horizon, std::ostream& out) {
  torch::nn::Module const& module = base_module(trainer.module());
  std::int64_t count = 0;
  double weights = 0;
  double trained = 0;
  double averages = 0;
  double kept = 0;
  constexpr bool averaged = has<kinds::average, typename Trainer::policies>;
  for (at::Tensor const& tensor : Parameters::of(module).tensors) {
    count += tensor.numel();
    weights += static_cast<double>(tensor.nbytes());
    if (tensor.requires_grad()) trained += static_cast<double>(tensor.nbytes());
    if (averaged && tensor.is_floating_point()) averages += static_cast<double>(tensor.nbytes());
  }
  print_paragraph(out, run_line(trainer, count));
  explain_policies(out, typename Trainer::policies{}, Trainer::host_syncs_per_step);
  explain_outlook(trainer, horizon, out, typename Trainer::policies{});
  explain_findings(trainer, out, typename Trainer::policies{});
  for (at::Tensor const& buffer : module.buffers()) weights += static_cast<double>(buffer.nbytes());
  double state = 0;
  auto const& optimizer = trainer.template policy<kinds::optimizer>();
  constexpr bool keeps_moments = requires { optimizer.moment_count(); };
  if constexpr (keeps_moments) state = trained * static_cast<double>(optimizer.moment_count());
  std::string extra = averaged ? ", " + bytes_text(averages) + " average" : "";
  if constexpr (has<kinds::early_stop, typename Trainer::policies>) {
    auto const& stop = trainer.template policy<kinds::early_stop>();
    if constexpr (requires { stop.restore_best; }) {
      if (stop.restore_best) {
        kept = weights;
        extra += ", " + bytes_text(kept) + " best weights";
      }
    }
  }
  if constexpr (keeps_moments || is_null<std::remove_cvref_t<decltype(optimizer)>>) {
    out << "checkpoint: " << bytes_text(weights + state + averages + kept) << " ("
        << bytes_text(weights) << " weights and buffers, " << bytes_text(state) << " optimizer"
        << extra << ")\n";
  } else {
    out << "checkpoint: " << bytes_text(weights) << " weights and buffers" << extra
        << ", and what the optimizer keeps\n";
  }
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
