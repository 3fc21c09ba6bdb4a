// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>

#include <frugal/core/compose/policy.hpp>
#include <frugal/core/compose/written_name.hpp>
#include <frugal/search/results/winner_code.hpp>
#include <frugal/search/space.hpp>
#include <frugal/search/trials/candidate.hpp>
#include <frugal/search/trials/distribution.hpp>

namespace frugal::detail {

/// The members of one recipe's trainer that the settings of a space set: those of its policies, of the
/// architecture and of the objective. A policy of a repeatable kind has none: a trainer may hold two of it.
///
/// `settings` is everywhere the tuple of SearchSpace, and `candidate` has one value for each of them.
template <class Policies, class Architecture, class Objective>
class SettingPlaces {
 public:
  /// Whether a trainer of this recipe has a member that the setting sets.
  template <class V>
  static constexpr bool has() {
    return V::template is_in<Architecture> || V::template is_in<Objective> ||
           []<class... Qs>(list<Qs...>) {
             return (false || ... || is_in_policy<V, Qs>);
           }(Policies{});
  }

  /// Sets the members of an architecture or of an objective.
  template <class... Vs, class Object>
  static void set(std::tuple<Vs...> const& settings, Candidate const& candidate, Object& object) {
    each_value(settings, candidate,
               [&](auto const& setting, double value) { setting.set(object, value); });
  }

  /// Sets the members of the trainer's policies.
  template <class... Vs, class Trainer>
  static void set_policies(std::tuple<Vs...> const& settings, Candidate const& candidate,
                           Trainer& trainer) {
    each_value(settings, candidate, [&]<class V>(V const& setting, double value) {
      each_policy_with<V>([&]<class Q>(std::type_identity<Q>) {
        setting.set(trainer.template policy<typename Q::kind>(), value);
      });
    });
  }

  /// "; width 32; depth 2": the candidate's architecture.
  template <class... Vs>
  static std::string architecture(std::tuple<Vs...> const& settings, Candidate const& candidate) {
    std::string text;
    each_value(settings, candidate, [&]<class V>(V const& setting, double value) {
      if constexpr (V::template is_in<Architecture>) {
        text += "; " + setting.name + " " + shortest_text(value);
      }
    });
    return text;
  }

  /// The places as code.
  template <class... Vs>
  static WinnerCode code(std::tuple<Vs...> const& settings, std::string recipe) {
    WinnerCode all{.recipe_type = std::move(recipe), .settings = {}, .architecture = "shape"};
    std::apply([&](auto const&... each) { (add_place(all, each), ...); }, settings);
    return all;
  }

 private:
  template <class V, class Q>
  static constexpr bool is_in_policy = V::template is_in<Q> && !Q::kind::repeatable;

  template <class... Vs, class Call>
  static void each_value(std::tuple<Vs...> const& settings, Candidate const& candidate,
                         Call&& call) {
    std::size_t i = 0;
    auto const one = [&](auto const& setting) {
      if (auto const value = candidate.values[i++]) call(setting, *value);
    };
    std::apply([&](auto const&... each) { (one(each), ...); }, settings);
  }

  /// Calls `call(std::type_identity<Q>{})` for each policy that has the setting.
  template <class V, class Call>
  static void each_policy_with(Call&& call) {
    auto const one = [&]<class Q>(std::type_identity<Q> policy) {
      if constexpr (is_in_policy<V, Q>) call(policy);
    };
    [&]<class... Qs>(list<Qs...>) { (one(std::type_identity<Qs>{}), ...); }(Policies{});
  }

  template <class V>
  static void add_place(WinnerCode& all, V const& setting) {
    auto const add = [&]<class Object>(std::string const& place, std::type_identity<Object>) {
      for (std::string& member : V::template members_of<Object>()) {
        all.settings.push_back(
            {.setting = setting.name, .place = place, .member = std::move(member)});
      }
    };
    add("architecture", std::type_identity<Architecture>{});
    add("trainer.objective()", std::type_identity<Objective>{});
    each_policy_with<V>([&]<class Q>(std::type_identity<Q> policy) {
      add("trainer.policy<" + written_name<Q>() + "::kind>()", policy);
    });
  }
};

}  // namespace frugal::detail
