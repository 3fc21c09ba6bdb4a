// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>
#include <torch/nn/module.h>

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <optional>
#include <ostream>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include <frugal/core/compose/list.hpp>
#include <frugal/core/compose/options.hpp>
#include <frugal/core/compose/rational.hpp>
#include <frugal/core/libtorch/layer_tensors.hpp>
#include <frugal/core/libtorch/modes.hpp>
#include <frugal/core/libtorch/parameters.hpp>
#include <frugal/core/run/counters.hpp>
#include <frugal/error.hpp>
#include <frugal/inline.hpp>
#include <frugal/model/prune/rules.hpp>
#include <frugal/model/structured/cut.hpp>
#include <frugal/model/structured/groups.hpp>
#include <frugal/model/structured/trace.hpp>
#include <frugal/model/where.hpp>
#include <frugal/policy/checkpoint/options.hpp>

namespace frugal {

/// The share of channels or heads that stays.
template <Rational Share>
struct Keep<Share> {
  static_assert(0 < Share.value() && Share.value() < 1,
                "frugal: Keep<share>: the share that stays is above 0 and below 1. Write "
                "Keep<0.75_r>.");
  static constexpr double value = Share.value();
};

/// Widths become multiples of this, rounded up; RoundTo<Auto> takes the machine's vector.
template <auto Width>
struct RoundTo {
  static_assert(Width >= 1,
                "frugal: RoundTo<0> rounds to nothing. Write RoundTo<8>, or RoundTo<Auto>.");
  static constexpr std::int64_t width = Width;
};
template <>
struct RoundTo<Auto> {
  static constexpr std::int64_t width = 0;
};

/// One group of channels or heads.
struct CutRow {
  std::string layers{};     ///< the weights whose rows they are
  std::int64_t before = 0;  ///< channels or heads
  std::int64_t after = 0;
  std::string why{};  ///< why all stay; empty if some went
};

/// The result of prune_structured.
struct CutReport {
  std::vector<CutRow> rows{};
  std::int64_t parameters_before = 0;
  std::int64_t parameters_after = 0;

  FRUGAL_INLINE friend std::ostream& operator<<(std::ostream& out, CutReport const& report) {
    for (CutRow const& row : report.rows) {
      out << row.layers << ": " << row.before << " -> " << row.after;
      if (!row.why.empty()) out << ", " << row.why;
      out << '\n';
    }
    return out << report.parameters_before << " -> " << report.parameters_after << " parameters";
  }
};

namespace detail {

template <class T>
inline constexpr bool is_keep_share = false;
template <Rational Share>
inline constexpr bool is_keep_share<Keep<Share>> = true;
template <class T>
inline constexpr bool is_round_to = false;
template <auto Width>
inline constexpr bool is_round_to<RoundTo<Width>> = true;

namespace option {

struct keep_share {
  template <class O>
  static constexpr bool has = is_keep_share<O>;
};
struct round_to {
  template <class O>
  static constexpr bool has = is_round_to<O>;
};

}  // namespace option

FRUGAL_INLINE std::int64_t count_parameters(torch::nn::Module const& module) {
  std::int64_t all = 0;
  for (at::Tensor const& each : each_once(module.parameters())) all += each.numel();
  return all;
}

/// Cuts one group, and compares with the masked module. Empty, or why the group was put back.
FRUGAL_INLINE std::string try_cut(torch::nn::Module& module, CutGroup const& group,
                                  at::Tensor const& keep,
                                  std::function<at::Tensor()> const& forward) {
  at::NoGradGuard const no_gradients;
  KeptTensors kept;
  try {
    mask_group(group, keep, kept);
    at::Tensor const masked = forward().to(at::kDouble);
    kept.put_back();
    cut_group(group, keep, kept);
    sync_options(module);
    at::Tensor const found = forward().to(at::kDouble);
    // Of outputs of any size: a network whose outputs are small is compared as closely.
    if (found.sizes() == masked.sizes() &&
        (found - masked).abs().max().item<double>() <= 1e-4 * masked.abs().max().item<double>()) {
      return {};
    }
    kept.put_back();
    sync_options(module);
    return "without them the output is not that of the masked module";
  } catch (std::exception const& error) {
    kept.put_back();
    sync_options(module);
    auto const* const of_torch = dynamic_cast<c10::Error const*>(&error);
    std::string const text =
        of_torch == nullptr ? error.what() : of_torch->what_without_backtrace();
    return "without them the forward pass fails: " + text.substr(0, text.find('\n'));
  } catch (...) {
    kept.put_back();
    sync_options(module);
    throw;
  }
}

FRUGAL_INLINE CutReport cut_all(torch::nn::Module& module, CutSettings const& settings,
                                std::function<at::Tensor()> const& forward) {
  register_members(module);
  KeepModes const modes(module);
  module.eval();
  CutReport report{.parameters_before = count_parameters(module)};
  AxisTrace trace(module);
  trace.run(forward);
  std::vector<CutGroup> const groups = groups_of(module, trace);
  if (settings.where) {
    std::vector<std::string> names;
    for (CutGroup const& group : groups) {
      for (CutPlace const& each : group.places) {
        if (each.makes) names.push_back(each.name);
      }
    }
    settings.where->require_in(names, "prune_structured", "weights that can lose rows");
  }
  // All are ranked before one is cut, so that their order has no effect.
  std::vector<at::Tensor> importances;
  for (CutGroup const& group : groups) {
    importances.push_back(importance_of(group, settings.rank));
  }
  bool any = false;
  for (std::size_t i = 0; i < groups.size(); ++i) {
    CutGroup const& group = groups[i];
    CutRow row{.layers = group.name(), .before = group.size, .after = group.size, .why = group.why};
    std::size_t chosen = 0;
    std::size_t makers = 0;
    for (CutPlace const& each : group.places) {
      if (!each.makes) continue;
      ++makers;
      if (!settings.where || settings.where->matches(each.name)) ++chosen;
    }
    if (chosen == 0) continue;
    if (row.why.empty() && chosen != makers)
      row.why = "the patterns leave out some of these layers";
    at::Tensor const& importance = importances[i];
    if (row.why.empty() && !importance.defined()) row.why = "there is no BatchNorm to rank by";
    if (row.why.empty()) {
      any = true;
      std::int64_t const after = width_after(group, settings);
      if (after == group.size) {
        row.why = "the width that remains is rounded up to all of them";
      } else {
        at::Tensor const least =
            std::get<1>(at::topk(importance, group.size - after, 0, /*largest=*/false));
        at::Tensor const keep = at::ones({group.size}, at::kBool).index_fill_(0, least, false);
        row.why = try_cut(module, group, keep, forward);
        if (row.why.empty()) row.after = after;
      }
    }
    report.rows.push_back(std::move(row));
  }
  for (at::Tensor& each : module.parameters()) each.mutable_grad().reset();
  report.parameters_after = count_parameters(module);
  if (any) return report;
  std::string why;
  for (CutRow const& row : report.rows)
    why += (why.empty() ? "" : "; ") + row.layers + ": " + row.why;
  throw ModuleError({.what = "no channel and no head of this module can be removed",
                     .where = "prune_structured",
                     .why = why.empty() ? "no layer takes what another one makes" : why,
                     .fix = "Look at the operators that are named, or prune single weights with "
                            "Prune<Magnitude, Sparsity<0.9_r>>."});
}

}  // namespace detail

/// What prune_structured removes: `Structured<Keep<0.75_r>, RoundTo<Auto>>`.
template <class... Options>
struct Structured {
 private:
  using classes = list<detail::option::keep_share, detail::option::round_to, detail::option::where>;
  static_assert(detail::options_known<classes, Options...>,
                "frugal: Structured<...>: unknown option. Options: Keep<0.75_r>, RoundTo<Auto>, "
                "RoundTo<8>, Where<\"pattern\">.");
  static_assert(detail::options_unique<classes, Options...>,
                "frugal: Structured<...>: the same option twice. Keep one of each.");
  static_assert((false || ... || detail::option::keep_share::has<Options>),
                "frugal: Structured needs the share of channels that stays. Write "
                "Structured<Keep<0.75_r>, RoundTo<Auto>>.");
  using Share = detail::option_of<detail::option::keep_share, void, Options...>;
  using Rounding = detail::option_of<detail::option::round_to, RoundTo<1>, Options...>;
  using Which = detail::option_of<detail::option::where, void, Options...>;

 public:
  double keep = Share::value;  ///< share of the channels or heads of each group that stays
  RankBy rank = RankBy::l2;    ///< which of them stay

  detail::CutSettings settings() const {
    detail::CutSettings made{.keep = keep, .round = Rounding::width, .rank = rank};
    if constexpr (!std::is_void_v<Which>) made.where = NamePatterns(Which{});
    if (keep > 0 && keep < 1) return made;
    throw SettingsError({.what = "Structured keeps a share of " + std::to_string(keep),
                         .where = "Structured::keep",
                         .why = "it is the share of channels that stays",
                         .fix = "Give a number between 0 and 1, such as 0.75."});
  }
};

/// Removes channels and heads from a module for good: the least important ones of each group of
/// layers that depend on one another, from weights, biases, statistics and what takes them.
///
/// Lever   hours per run and price per hour: fewer operations, with dense kernels. Only widths that
///         fill the machine's vector are faster: RoundTo<Auto>.
/// Cost    one traced forward pass, and two per group.
/// Errors  SettingsError for a pattern that matches nothing, a share out of range; ModuleError if
///         nothing can be removed. The module is then unchanged. A group that cannot be traced
///         is whole, with the reason in the report.
/// Source  Li et al., "Pruning filters for efficient ConvNets" (2017); Fang et al., "DepGraph:
///         towards any structural pruning" (2023).
///
/// `example`  what the forward pass takes, or a function of the module that returns its output.
///
///     auto const report = prune_structured(net, torch::randn({1, 3, 32, 32}),
///                                          Structured<Keep<0.75_r>, RoundTo<Auto>>{});
///     std::cout << report << '\n';
///
/// Call it before the trainer is made. A program that resumes a run calls it again: it cuts the same
/// widths, and the checkpoint brings the weights.
template <class Module, class Example, class... Options>
CutReport prune_structured(Module& module, Example const& example,
                           Structured<Options...> const& options) {
  auto const run = [&]() -> at::Tensor {
    if constexpr (std::invocable<Example const&, Module&>) {
      return example(module);
    } else {
      return forward(module, at::Tensor(example));
    }
  };
  return detail::cut_all(base_module(module), options.settings(), run);
}

}  // namespace frugal
