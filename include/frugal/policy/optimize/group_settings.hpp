// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include <frugal/core/libtorch/parameters.hpp>
#include <frugal/core/run/learning_rate.hpp>
#include <frugal/core/state/tensor_part.hpp>
#include <frugal/policy/optimize/groups.hpp>

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
  /// `usual` is what the optimizer gives a parameter that no group selects.
  GroupResolver(std::vector<ParameterGroup> const& groups, Parameters const& parameters,
                ParameterSettings usual);

  /// SettingsError for a group that selects nothing, which is usually a misspelt name, for two
  /// groups that give a parameter two values of a setting, and for settings that are out of range
  /// or that the optimizer does not have.
  GroupSettings resolve();

 private:
  /// The groups that change a parameter's rate, and what each calls it.
  using RateRules = std::vector<std::pair<std::size_t, std::string>>;

  static std::string where(std::size_t g) { return "Optimize::groups[" + std::to_string(g) + "]"; }

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
                             ParameterSettings usual, TensorPlaces const& places);

}  // namespace frugal::detail

#ifndef FRUGAL_COMPILED
#include <frugal/policy/optimize/group_settings.ipp>
#endif
