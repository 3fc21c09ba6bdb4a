// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/ATen.h>

#include <concepts>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include <frugal/core/run/run_limits.hpp>
#include <frugal/policy/schedule.hpp>
#include <frugal/policy/schedule/plateau.hpp>

namespace frugal {

/// A schedule of one parameter group: curves, as in a recipe, or a function of the optimizer step,
/// counted from 0, as the lambdas of LambdaLR. Its factor and the one of the recipe's Schedule
/// multiply.
///
///     .schedule = Schedule<Warmup<1000>, Cosine>{}
///     .schedule = [](std::uint64_t step) { return step < 100 ? 0.0 : 1.0; }
///
/// It has no state: a resumed run computes the same factors.
class GroupSchedule {
 public:
  using Factor = std::function<double(std::uint64_t step)>;

  /// A schedule over a run of known length.
  struct Laid {
    Factor factor{};
    std::string outlook{};  ///< what the run does not come to; see Schedule::outlook
  };

  GroupSchedule() = default;

  template <class F>
    requires(std::is_invocable_r_v<double, F const&, std::uint64_t> &&
             !std::same_as<F, GroupSchedule>)
  GroupSchedule(F factor)  // NOLINT(google-explicit-constructor): a setting, written as it is
      : lay_([factor = std::move(factor)](RunLimits const&) { return Laid{factor, {}}; }) {}

  template <class... Parts>
    requires(sizeof...(Parts) > 0)
  GroupSchedule(Schedule<Parts...> const& schedule)  // NOLINT(google-explicit-constructor)
      : lay_([parts = schedule.parts](RunLimits const& horizon) {
          static_assert(
              (true && ... && !detail::is_plateau<Parts>),
              "frugal: the schedule of a parameter group is a function of the step, and Plateau "
              "watches validation. Put Plateau in the recipe's Schedule, which multiplies the "
              "rates of all groups.");
          detail::CurveState<Parts...> curves(parts);
          curves.lay_over(horizon);
          return Laid{[curves](std::uint64_t step) { return curves.factor(step); },
                      curves.outlook(horizon)};
        }) {}

  explicit operator bool() const { return static_cast<bool>(lay_); }

  /// SettingsError if a curve runs "to the end" of a run without a known end.
  Laid over(RunLimits const& horizon) const { return lay_(horizon); }

 private:
  std::function<Laid(RunLimits const&)> lay_;
};

/// What a rule of many rates gives one parameter, and the name of its rate in the log.
struct NamedFactor {
  std::string name{};
  double factor = 1.0;
};

/// A rule for some of the parameters: it gives each that it selects the settings below. Rules of
/// different settings compose. Factors of several rules multiply. Two rules that give a parameter
/// two values of a setting are a SettingsError; what no rule sets is the optimizer's.
struct ParameterGroup {
  /// For error messages and, if it changes the learning rate, for the log: "lr/<name>".
  std::string name{};
  /// Whether this parameter (its name as in named_parameters(), and its tensor) is in the group.
  std::function<bool(std::string_view name, at::Tensor const& parameter)> selects{};
  std::optional<double> lr{};
  std::optional<double> lr_factor{};  ///< multiplies the rate, a rule's or the optimizer's
  std::optional<double> weight_decay{};
  std::optional<double> weight_decay_factor{};  ///< multiplies the decay likewise
  std::optional<double> beta1{};                ///< of Adam and AdamW
  std::optional<double> beta2{};                ///< of Adam and AdamW
  std::optional<double> momentum{};             ///< of SGD
  GroupSchedule schedule{};                     ///< multiplies the rate at each step
  /// A factor of the rate for each of these parameters, all of the module's (layer_wise_rate).
  /// Without `selects`, for all of them.
  std::function<std::vector<NamedFactor>(std::vector<std::string> const& names)> lr_factors{};
};

/// Biases and normalisation weights: parameters with at most one dimension. Weight decay on these
/// only costs accuracy. A factor, so that it composes with rules that set a decay.
ParameterGroup no_decay_for_biases_and_norms();

namespace detail {

ParameterGroup named_unless(ParameterGroup group, std::string const& name);

}  // namespace detail

/// The parameters whose names match a pattern (NamePattern), with these settings:
///
///     group_by_pattern("*.lora.*.B", {.lr_factor = 16})
ParameterGroup group_by_pattern(std::string const& pattern, ParameterGroup settings = {});

/// The parameters of a submodule, such as "head", or one parameter, "head.weight". Names match by
/// whole components: "1" selects "1.weight", and not "10.weight".
ParameterGroup group_by_prefix(std::string const& prefix, ParameterGroup settings = {});

}  // namespace frugal

#ifndef FRUGAL_COMPILED
#include <frugal/policy/optimize/groups.ipp>
#endif
