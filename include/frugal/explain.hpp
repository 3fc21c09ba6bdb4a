// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <iostream>
#include <ostream>
#include <string>
#include <string_view>
#include <type_traits>

#include <frugal/compose/about.hpp>
#include <frugal/compose/composition.hpp>
#include <frugal/compose/list.hpp>
#include <frugal/compose/policy.hpp>
#include <frugal/libtorch/parameters.hpp>
#include <frugal/policy/kinds.hpp>
#include <frugal/watch/bytes.hpp>

namespace frugal {

namespace detail {

template <class P>
std::string name_in_plan() {
  std::string name(type_name<P>());
  for (std::size_t at; (at = name.find("frugal::")) != std::string::npos;) name.erase(at, 8);
  for (std::string const auto_of : {"Automatic()", "Automatic{}"}) {
    for (std::size_t at; (at = name.find(auto_of)) != std::string::npos;) {
      name.replace(at, auto_of.size(), "Auto");
    }
  }
  return name;
}

template <class P>
void explain_policy(std::ostream& out, int number) {
  constexpr About about = about_of<P>();
  out << "  " << (number < 10 ? " " : "") << number << "  " << name_in_plan<P>();
  if constexpr (is_null<P>) {
    out << "  (default)\n";
    return;
  }
  out << '\n';
  if (about.term != Term::none) out << "        lowers  " << name_of(about.term) << '\n';
  if (!about.cost.empty()) out << "        costs   " << about.cost << '\n';
}

template <class P>
void explain_cautions(std::ostream& out) {
  if constexpr (requires { P::caution(); }) {
    std::string const caution = P::caution();
    if (!caution.empty()) out << "caution: " << caution << '\n';
  }
}

/// What the last fit found out, for policies that find something out.
template <class Trainer, class... Ps>
void explain_findings(Trainer& trainer, std::ostream& out, list<Ps...>) {
  auto const tell = [&]<class P>(std::type_identity<P>) {
    if constexpr (requires(P const& policy) { policy.finding(); }) {
      std::string const finding = trainer.template policy<typename P::kind>().finding();
      if (!finding.empty()) out << "found: " << P::kind::name << ": " << finding << '\n';
    }
  };
  (tell(std::type_identity<Ps>{}), ...);
}

template <class... Ps>
void explain_policies(std::ostream& out, list<Ps...>, int host_syncs) {
  out << "policies, in the order in which events reach them\n";
  int number = 0;
  (explain_policy<Ps>(out, ++number), ...);
  out << "host syncs per step: " << host_syncs << '\n';
  (explain_cautions<Ps>(out), ...);
}

}  // namespace detail

/// Prints the plan of a trainer type: its policies in their computed order, defaults included,
/// what each lowers and costs, the host syncs per step, and the cautions that apply on this
/// machine. Needs no data, no module and no GPU.
template <class Trainer>
void explain(std::ostream& out = std::cout) {
  detail::explain_policies(out, typename Trainer::policies{}, Trainer::host_syncs_per_step);
}

/// The same for a trainer at hand, what its last fit found out, and what its module adds:
/// parameters, and the size of a checkpoint, which is the weights and buffers, what the optimizer
/// keeps of them, and their average or the best ones where a policy keeps them.
template <class Trainer>
void explain(Trainer& trainer, std::ostream& out = std::cout) {
  explain<Trainer>(out);
  detail::explain_findings(trainer, out, typename Trainer::policies{});
  torch::nn::Module const& module = base_module(trainer.module());
  std::int64_t count = 0;
  double weights = 0;
  double trained = 0;
  double averages = 0;
  double kept = 0;
  constexpr bool averaged = detail::has<kinds::average, typename Trainer::policies>;
  for (at::Tensor const& tensor : Parameters::of(module).tensors) {
    count += tensor.numel();
    weights += static_cast<double>(tensor.nbytes());
    if (tensor.requires_grad()) trained += static_cast<double>(tensor.nbytes());
    if (averaged && tensor.is_floating_point()) averages += static_cast<double>(tensor.nbytes());
  }
  for (at::Tensor const& buffer : module.buffers()) weights += static_cast<double>(buffer.nbytes());
  double state = 0;
  auto const& optimizer = trainer.template policy<kinds::optimizer>();
  constexpr bool keeps_moments = requires { optimizer.moment_count(); };
  if constexpr (keeps_moments) state = trained * static_cast<double>(optimizer.moment_count());
  std::string beside = averaged ? ", " + detail::bytes_text(averages) + " average" : "";
  if constexpr (detail::has<kinds::early_stop, typename Trainer::policies>) {
    auto const& stop = trainer.template policy<kinds::early_stop>();
    if constexpr (requires { stop.restore_best; }) {
      if (stop.restore_best) {
        kept = weights;
        beside += ", " + detail::bytes_text(kept) + " best weights";
      }
    }
  }
  out << "parameters: " << count << '\n';
  if constexpr (keeps_moments || detail::is_null<std::remove_cvref_t<decltype(optimizer)>>) {
    out << "checkpoint: " << detail::bytes_text(weights + state + averages + kept) << " ("
        << detail::bytes_text(weights) << " weights and buffers, " << detail::bytes_text(state)
        << " optimizer" << beside << ")\n";
  } else {
    out << "checkpoint: " << detail::bytes_text(weights) << " weights and buffers" << beside
        << ", and what the optimizer keeps\n";
  }
}

}  // namespace frugal
