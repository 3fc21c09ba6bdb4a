// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/base/name_pattern.hpp>
#include <frugal/core/libtorch/parameters.hpp>
#include <frugal/core/run/learning_rate.hpp>
#include <frugal/core/run/run_limits.hpp>
#include <frugal/core/state/tensor_part.hpp>
#include <frugal/error.hpp>
#include <frugal/policy/schedule.hpp>
#include <frugal/policy/schedule/plateau.hpp>

#include <ATen/ATen.h>

#include <algorithm>
#include <array>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

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

/// Biases and normalization weights: parameters with at most one dimension. Weight decay on these
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

namespace frugal::detail {

void require_at_least_zero(char const* name, double value, std::string const& where);
void require_learning_rate(double value, std::string const& where, char const* name = "lr");
void require_fraction(char const* name, double value, std::string const& where);

/// The settings of one parameter; nothing: the optimizer has no such setting.
struct ParameterSettings {
  std::optional<double> lr{}, weight_decay{}, beta1{}, beta2{}, momentum{};
  std::vector<std::size_t> schedules{};  ///< of these groups
  std::size_t rate = 0;                  ///< place in GroupSettings::rates

  /// Whether one kernel call can update both parameters.
  bool same_update(ParameterSettings const& other) const;
};

/// A setting of which a parameter can have one value.
struct OneValue {
  char const* name;
  std::optional<double> ParameterGroup::* in;
  std::optional<double> ParameterSettings::* to;
};
inline constexpr std::array one_values{
    OneValue{"lr", &ParameterGroup::lr, &ParameterSettings::lr},
    OneValue{"weight_decay", &ParameterGroup::weight_decay, &ParameterSettings::weight_decay},
    OneValue{"beta1", &ParameterGroup::beta1, &ParameterSettings::beta1},
    OneValue{"beta2", &ParameterGroup::beta2, &ParameterSettings::beta2},
    OneValue{"momentum", &ParameterGroup::momentum, &ParameterSettings::momentum}};

/// The settings of each parameter, and the distinct learning rates.
struct GroupSettings {
  std::vector<ParameterSettings> parameters;
  std::vector<GroupRate> rates;                     ///< in the order of their first parameters
  std::vector<std::vector<std::size_t>> schedules;  ///< of each rate, as in ParameterSettings
  std::vector<ParameterSettings> distinct{};        ///< by same_update()
};

/// Combines the rules of all groups. An object for one call.
class GroupResolver {
 public:
  /// `usual` is what the optimizer gives a parameter that no group selects; `label` stands before the
  /// name of the optimizer's members, "first.".
  GroupResolver(std::vector<ParameterGroup> const& groups, Parameters const& parameters,
                ParameterSettings usual, std::string label = {});

  /// SettingsError for a group that selects nothing, which is usually a misspelt name, for two
  /// groups that give a parameter two values of a setting, and for settings that are out of range
  /// or that the optimizer does not have.
  GroupSettings resolve();

 private:
  /// The groups that change a parameter's rate, and what each calls it.
  using RateRules = std::vector<std::pair<std::size_t, std::string>>;

  std::string where() const { return "Optimize::" + label_ + "groups"; }
  std::string where(std::size_t g) const { return where() + "[" + std::to_string(g) + "]"; }

  void require_in_range(std::size_t g) const;

  void require_known(std::size_t g) const;

  void apply(std::size_t g);

  std::vector<NamedFactor> factors_of(std::size_t g) const;

  void give(std::size_t v, std::size_t g, std::size_t i);

  /// One rate for each combination of rules that change it, with a name made of theirs.
  GroupSettings with_rates();

  [[noreturn]] void refuse_two(std::size_t v, std::size_t i, std::size_t first, double one,
                               std::size_t second, double other) const;

  [[noreturn]] void refuse_unused(std::size_t g) const;

  std::vector<ParameterGroup> const& groups_;
  Parameters const& parameters_;
  ParameterSettings usual_;
  std::string label_;
  std::vector<ParameterSettings> own_;  // of each parameter
  struct Factors {
    double lr = 1.0, weight_decay = 1.0;
  };
  std::vector<Factors> factors_;                                        // likewise
  std::array<std::vector<std::size_t>, one_values.size()> value_from_;  // the groups that gave them
  std::vector<RateRules> rate_rules_;                                   // likewise
};

/// The settings of each parameter of this process, from rules over the names and shapes of all that the
/// processes of a run have (`places`). A rule gets those of other processes without values.
GroupSettings resolve_groups(std::vector<ParameterGroup> const& groups, Parameters const& own,
                             ParameterSettings usual, TensorPlaces const& places,
                             std::string const& label = {});

/// The schedules of a run's parameter groups, if they have any.
class RateSchedules {
 public:
  RateSchedules() = default;
  /// SettingsError if a curve runs "to the end" of a run without a known end.
  RateSchedules(std::vector<ParameterGroup> const& groups, GroupSettings const& settings,
                RunLimits const& horizon);

  explicit operator bool() const { return some_; }
  std::vector<std::string> const& outlooks() const { return outlooks_; }

  /// The factor of each rate at an optimizer step, counted from 0. SettingsError for one that is
  /// negative or not finite.
  std::vector<double> factors(std::uint64_t step) const;

  /// For recipes that capture their steps.
  void require_none() const;

 private:
  [[noreturn]] void refuse(std::size_t group, double factor, std::uint64_t step) const;

  bool some_ = false;
  std::vector<std::string> names_;                 // of the groups
  std::vector<GroupSchedule::Factor> of_group_;    // none: the group has no schedule
  std::vector<std::vector<std::size_t>> of_rate_;  // the groups whose schedules it has
  std::vector<std::string> outlooks_;
};

}  // namespace frugal::detail

namespace frugal {

namespace detail {

/// The factors of layer_wise_rate.
class LayerWiseRate {
 public:
  LayerWiseRate(std::string layers, double decay, std::vector<std::string> const& below);

  std::string const& layers() const { return layers_; }

  std::vector<NamedFactor> operator()(std::vector<std::string> const& names) const;

 private:
  static constexpr std::string_view number = "{}";

  std::optional<std::uint64_t> layer_of(std::string_view name) const;

  bool is_named_below(std::string_view name) const {
    return std::any_of(below_.begin(), below_.end(),
                       [&](NamePattern const& each) { return each.matches(name); });
  }

  /// "encoder.layer.3"
  std::string label(std::uint64_t layer) const;

  [[noreturn]] static void refuse(std::string what, std::vector<std::string> const& names);

  std::string layers_;
  double decay_;
  std::size_t place_;  // of {}
  std::vector<NamePattern> below_;
};

}  // namespace detail

/// Layer-wise learning rates: the head has the factor 1, the last layer `decay`, each layer below
/// it `decay` times that of the one above, and the embeddings that of the first layer once more.
/// With n layers, layer i (from 1) has `decay^(n + 1 - i)`, the embeddings `decay^(n + 1)`.
///
///     layer_wise_rate("encoder.layer.{}.", 0.9)
///
/// `layers` is how the names of a layer's parameters begin, with {} for its number; `*` stands for
/// any text. Numbers give the order, and need not be consecutive. Of all other parameters, those
/// before the first layer's in named_parameters() are the embeddings, the others the head. If the
/// module registers them in another order, name the embeddings: `below` has patterns (NamePattern).
///
/// Source  Bao et al., "BEiT" (2022), and its LayerDecayValueAssigner, timm's
///         param_groups_layer_decay likewise. Clark et al., "ELECTRA" (2020), whose code has one
///         more `decay` between the head and the last layer.
ParameterGroup layer_wise_rate(std::string layers, double decay,
                               std::vector<std::string> const& below = {});

}  // namespace frugal

#ifndef FRUGAL_COMPILED
#include <frugal/policy/optimize/groups.ipp>
#endif
