// SPDX-License-Identifier: Apache-2.0
// needs: torch
// expect: frugal: a function of on_checkpoint returns nothing: a save does not end a run. End it in on_step.
#include <frugal/policy/callback.hpp>

using namespace frugal;

struct Notes {
  void operator()(Saved&) const {}
};
struct Ends {
  flow operator()(Saved&) const { return flow::stop; }
};
decltype(on_checkpoint(Notes{}))::State* good;
auto const size = sizeof(decltype(on_checkpoint(Notes{}))::State);
#ifdef FRUGAL_REJECT
auto const bad = sizeof(decltype(on_checkpoint(Ends{}))::State);
#endif
