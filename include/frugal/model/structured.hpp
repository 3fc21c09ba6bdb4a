// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>
#include <torch/nn/module.h>

#include <concepts>
#include <cstdint>
#include <functional>
#include <ostream>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include <frugal/core/compose/list.hpp>
#include <frugal/core/compose/options.hpp>
#include <frugal/core/compose/rational.hpp>
#include <frugal/core/libtorch/parameters.hpp>
#include <frugal/core/run/counters.hpp>
#include <frugal/error.hpp>
#include <frugal/model/masked_weights.hpp>
#include <frugal/model/structured/groups.hpp>
#include <frugal/model/where.hpp>

namespace frugal {

/// The share of channels or heads that stays.
template <Rational Share>
struct KeepShare {
  static_assert(0 < Share.value() && Share.value() < 1,
                "frugal: KeepShare<share>: the share that stays is above 0 and below 1. Write "
                "KeepShare<0.75>.");
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

  friend std::ostream& operator<<(std::ostream& out, CutReport const& report);
};

namespace detail {

template <class T>
inline constexpr bool is_keep_share = false;
template <Rational Share>
inline constexpr bool is_keep_share<KeepShare<Share>> = true;
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

std::int64_t count_parameters(torch::nn::Module const& module);

/// Cuts one group, and compares with the masked module. Empty, or why the group was put back.
std::string try_cut(torch::nn::Module& module, CutGroup const& group, at::Tensor const& keep,
                    std::function<at::Tensor()> const& forward);

CutReport cut_all(torch::nn::Module& module, CutSettings const& settings,
                  std::function<at::Tensor()> const& forward);

}  // namespace detail

/// What prune_structured removes: `Structured<KeepShare<0.75>, RoundTo<Auto>>`.
template <class... Options>
struct Structured {
 private:
  using classes = list<detail::option::keep_share, detail::option::round_to, detail::option::where>;
  static_assert(detail::options_known<classes, Options...>,
                "frugal: Structured<...>: unknown option. Options: KeepShare<0.75>, RoundTo<Auto>, "
                "RoundTo<8>, Where<\"pattern\">.");
  static_assert(detail::options_unique<classes, Options...>,
                "frugal: Structured<...>: the same option twice. Keep one of each.");
  static_assert((false || ... || detail::option::keep_share::has<Options>),
                "frugal: Structured needs the share of channels that stays. Write "
                "Structured<KeepShare<0.75>, RoundTo<Auto>>.");
  using Share = detail::option_of<detail::option::keep_share, void, Options...>;
  using Rounding = detail::option_of<detail::option::round_to, RoundTo<1>, Options...>;
  using Which = detail::option_of<detail::option::where, void, Options...>;

 public:
  double keep = Share::value;  ///< share of the channels or heads of each group that stays
  std::int64_t round_to = Rounding::width;  ///< widths become multiples of it; 0: of the vector
  RankBy rank = RankBy::l2;                 ///< which of them stay

  detail::CutSettings settings() const {
    detail::CutSettings made{.keep = keep, .round = round_to, .rank = rank};
    if constexpr (!std::is_void_v<Which>) made.where = NamePatterns(Which{});
    if (round_to < 0) {
      throw SettingsError({.what = "round_to is " + std::to_string(round_to),
                           .where = "Structured",
                           .why = "widths become multiples of it",
                           .fix = "Give 1 or more, or 0 for the machine's vector."});
    }
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
///                                          Structured<KeepShare<0.75>, RoundTo<Auto>>{});
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

#ifndef FRUGAL_COMPILED
#include <frugal/model/structured.ipp>
#endif
