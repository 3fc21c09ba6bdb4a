// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/core/compose/about.hpp>
#include <frugal/core/compose/declared.hpp>
#include <frugal/core/compose/policy.hpp>
#include <frugal/core/libtorch/parameters.hpp>
#include <frugal/core/run/learning_rate.hpp>
#include <frugal/core/run/phases.hpp>
#include <frugal/core/state/tensor_part.hpp>
#include <frugal/policy/kinds.hpp>
#include <frugal/policy/optimize.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace frugal::detail {

/// What one side of a Partition updates in this process.
struct PartitionSide {
  Parameters parameters{};
  std::optional<ParameterParts> parts{};
  TensorPlaces places{};
  std::string label{};  ///< "first."

  OwnedParameters owned(std::size_t first_rate) const;
};

/// Both sides.
class PartitionSides {
 public:
  PartitionSides() = default;
  /// SettingsError without patterns, for a pattern that matches no parameter, for a side without parameters,
  /// and for a tied parameter of which one name matches and another does not.
  PartitionSides(OwnedParameters const& all, std::vector<std::string> const& select);

  PartitionSide const& operator[](std::size_t side) const { return sides_[side]; }

  void compare_in_processes(FitBegin& phase) const;

  /// Saves whose each parameter is. StateError for one that was the other side's.
  template <class Archive>
  void persist(Archive& archive) const {
    for (PartitionSide const& side : sides_) {
      for (std::string const& parameter : side.parameters.names) {
        archive.scope(parameter, [&](auto& inner) {
          std::string label = side.label;
          inner(label_ + "side", label);
          if (label != side.label) refuse_other(parameter, label, side.label);
        });
      }
    }
  }

 private:
  [[noreturn]] static void refuse_other(std::string const& parameter, std::string const& saved,
                                        std::string const& here);

  std::array<PartitionSide, 2> sides_{};
  std::string label_{};
  std::vector<std::pair<std::string, std::size_t>>
      sides_of_all_{};  ///< parameters of all processes
};

/// Names for the log: "first" and "first.head" for the rates "default" and "head" of one side.
std::vector<GroupRate> rates_of_sides(std::vector<GroupRate> first, std::vector<GroupRate> rest);

std::uint64_t trained_bytes(Parameters const& all);

/// Bytes of the moments that an optimizer keeps of these parameters.
template <class Policy>
std::uint64_t moment_bytes(Policy const& policy, Parameters const& own) {
  if constexpr (requires { policy.moment_count(); }) {
    return trained_bytes(own) * policy.moment_count();
  } else {
    return policy.moment_bytes(own);
  }
}

/// An optimizer that updates some parameters of a run.
template <class Policy>
concept UpdatesOwned =
    requires(typename Policy::State& state, FitBegin& begin, Update& update,
             OwnedParameters const& own) {
      state.begin(begin, own);
      state.step(update, state.group_factors(update));
    } &&
    has_property<property::capturable, Policy> && has_property<property::works_on_parts, Policy>;

}  // namespace frugal::detail

namespace frugal {

template <class First, class Rest>
struct Partition {};

/// Two kinds of optimizers in one recipe: `first` updates the parameters whose names match `select`, `rest` all
/// others.
///
///     Optimize<Partition<SGD, AdamW>>{
///         .select = {"critic.*"}, .first = {.lr = 1e-2, .momentum = 0.9}, .rest = {.lr = 2e-4}}
///
/// Each is an Optimize of its own, with its settings and its groups, which see its parameters alone. `Rest` may be a
/// Partition too. Schedule, clipping and overflows are of the whole: a window is a step of both or of none.
///
/// Lever   hours per run, as each of the two.
/// Cost    one fused ATen kernel per side, group's settings, device and dtype; no host sync.
/// State   that of each, and for each parameter whose it is.
/// Errors  those of the two; SettingsError without a pattern, for one that matches no parameter, for a side
///         without parameters, for a tied parameter of which one name matches and another does not; StateError
///         for a checkpoint in which the other side had a parameter. With Any or Nothing it does not compile.
template <class First, class Rest>
struct Optimize<Partition<First, Rest>> {
  static_assert(
      detail::UpdatesOwned<Optimize<First>> && detail::UpdatesOwned<Optimize<Rest>>,
      "frugal: Optimize<Partition<...>> takes two of AdamW, Adam, SGD, Adagrad and "
      "Partition: each updates some of the parameters, and another optimizer updates all. "
      "Write Optimize<Partition<SGD, AdamW>>.");
  using kind = kinds::optimizer;
  using listens = list<on::fit_begin, on::update>;
  using properties = list<property::capturable, property::works_on_parts>;
  static constexpr About about{Term::hours_per_run,
                               "one fused kernel per side, parameter group and step"};

  /// Patterns (NamePattern) of the parameters that `first` updates.
  std::vector<std::string> select{};
  Optimize<First> first{};  ///< settings for the parameters that match
  Optimize<Rest> rest{};    ///< settings for all others

  /// What the moments of a module's parameters take.
  std::uint64_t moment_bytes(Parameters const& all) const {
    TensorPlaces const here;
    detail::PartitionSides const sides({all, nullptr, here}, select);
    return detail::moment_bytes(first, sides[0].parameters) +
           detail::moment_bytes(rest, sides[1].parameters);
  }

  class State {
   public:
    explicit State(Optimize const& settings)
        : select_(settings.select), first_(settings.first), rest_(settings.rest) {}

    void on_fit_begin(FitBegin& phase) {
      phase.report_learning_rates(
          begin(phase, {phase.parameters(), phase.parts(), phase.places()}));
    }
    void on_update(Update& phase) { detail::update_fused(*this, phase); }

    std::vector<GroupRate> begin(FitBegin& phase, detail::OwnedParameters const& own) {
      sides_ = detail::PartitionSides(own, select_);
      sides_.compare_in_processes(phase);
      auto rates = first_.begin(phase, sides_[0].owned(own.first_rate));
      auto more = rest_.begin(phase, sides_[1].owned(own.first_rate + rates.size()));
      return detail::rates_of_sides(std::move(rates), std::move(more));
    }

    // Both before the first kernel: a factor may be refused.
    auto group_factors(Update& phase) const {
      auto factors = first_.group_factors(phase);
      return std::pair(std::move(factors), rest_.group_factors(phase));
    }
    template <class Factors>
    void step(Update& phase, Factors const& factors) {
      first_.step(phase, factors.first);
      rest_.step(phase, factors.second);
    }

    template <class Archive>
    void persist(Archive& archive) {
      sides_.persist(archive);
      first_.persist(archive);
      rest_.persist(archive);
    }

   private:
    std::vector<std::string> select_;
    typename Optimize<First>::State first_;
    typename Optimize<Rest>::State rest_;
    detail::PartitionSides sides_;
  };
};

}  // namespace frugal

#ifndef FRUGAL_COMPILED
#include <frugal/policy/optimize/partition.ipp>
#endif
