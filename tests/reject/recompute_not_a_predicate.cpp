// SPDX-License-Identifier: Apache-2.0
// needs: torch
// expect: frugal: a predicate for Modules is called with a module's name and the module. Give it `bool operator()(std::string_view, torch::nn::Module const&) const`.
#include <frugal/policy/recompute.hpp>

using namespace frugal;

struct Named {
  bool operator()(std::string_view name, torch::nn::Module const&) const { return name == "0"; }
};
struct NamedAlone {
  bool operator()(std::string_view name) const { return name == "0"; }
};

Modules<Named> good;
#ifdef FRUGAL_REJECT
Modules<NamedAlone> bad;
#endif
