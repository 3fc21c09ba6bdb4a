// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string_view>

namespace frugal {

/// What a policy lowers: a factor of the cost of training, which is price per hour x hours per run
/// x runs to convergence, or memory, which decides the machine that a job fits on and often costs
/// hours.
enum class Term { none, price_per_hour, hours_per_run, runs_to_convergence, memory };

constexpr std::string_view name_of(Term term) {
  switch (term) {
    case Term::price_per_hour:
      return "price per hour";
    case Term::hours_per_run:
      return "hours per run";
    case Term::runs_to_convergence:
      return "runs to convergence";
    case Term::memory:
      return "memory";
    case Term::none:
      break;
  }
  return "-";
}

/// A policy's description of itself: `static constexpr About about{...}`. Optional.
struct About {
  Term term = Term::none;
  std::string_view cost{};  ///< its cost in words: "two batches when fit begins"
  /// Host syncs (waits for the device) in every step. Reads at a cadence do not count.
  int host_syncs_per_step = 0;
};

namespace detail {

template <class P>
constexpr About about_of() {
  if constexpr (requires { P::about; }) {
    return P::about;
  } else {
    return {};
  }
}

/// A type's name as the compiler spells it; compilers differ in spaces.
template <class T>
constexpr std::string_view type_name() {
  std::string_view const text = __PRETTY_FUNCTION__;
  std::size_t const begin = text.find("T = ") + 4;
  std::size_t const end = text.find_last_of(";]");
  std::size_t const semicolon = text.find("; std::string_view", begin);
  return text.substr(begin, (semicolon == std::string_view::npos ? end : semicolon) - begin);
}

}  // namespace detail
}  // namespace frugal
