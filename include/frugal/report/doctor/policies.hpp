// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/core/compose/policy.hpp>
#include <frugal/core/compose/written_name.hpp>
#include <frugal/report/doctor/machine.hpp>

#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace frugal::doctor {

/// The cautions that apply on this machine, in the policies' own words (explain() prints the same).
template <class... Ps>
std::vector<Caution> cautions() {
  std::vector<Caution> all;
  auto const add = [&all]<class P>(std::type_identity<P>) {
    std::string text = P::caution();
    if (text.empty()) return;
    all.push_back({.policy = frugal::detail::policy_name<P>(),
                   .text = std::move(text),
                   .page = std::string(P::kind::page)});
  };
  (add(std::type_identity<Ps>{}), ...);
  return all;
}

}  // namespace frugal::doctor
