// SPDX-License-Identifier: Apache-2.0
// expect: frugal: this policy's stop_requested returns a value that the loop does not use. Return void; a flow where the run may end; what next() returns in an around-hook; a bool in a query.
#include "../core/compose/stand_ins.hpp"

using namespace frugal_test::compose;

namespace query = frugal::query;

struct Sound {
  using kind = alpha;
  using listens = list<query::stop_requested>;
  template <class>
  struct State {
    explicit State(Sound const&) {}
    bool stop_requested(Notes const&) const { return false; }
  };
};
using SoundEngine = Engine<Context<Sound>, Sound>;
static_assert(sizeof(SoundEngine) >= 1);
#ifdef FRUGAL_REJECT
struct Unsound {
  using kind = alpha;
  using listens = list<query::stop_requested>;
  template <class>
  struct State {
    explicit State(Unsound const&) {}
    void stop_requested(Notes const&) const {}
  };
};
using UnsoundEngine = Engine<Context<Unsound>, Unsound>;
static_assert(sizeof(UnsoundEngine) >= 1);
#endif
