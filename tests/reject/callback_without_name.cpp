// SPDX-License-Identifier: Apache-2.0
// needs: torch
// expect: frugal: a callback with a state has no name by which a checkpoint finds it. Write fr::on_step<"name">(function), or remove its member persist.
#include <frugal/policy/callback.hpp>

using namespace frugal;

struct Count {
  void operator()(Step&) { ++steps; }
  template <class Archive>
  void persist(Archive& archive) {
    archive("steps", steps);
  }
  int steps = 0;
};

auto good = on_step<"count">(Count{});
#ifdef FRUGAL_REJECT
auto bad = on_step(Count{});
#endif
