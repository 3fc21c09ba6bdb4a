// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <concepts>
#include <cstdint>
#include <functional>
#include <string>
#include <type_traits>
#include <utility>

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

}  // namespace frugal
