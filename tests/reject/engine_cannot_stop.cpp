// SPDX-License-Identifier: Apache-2.0
// expect: frugal: this policy's on_loss returns a flow, and a run cannot stop there. Return void, and stop in on_fit_begin, on_window, on_step, on_validated or on_epoch_end.
#include "../core/compose/stand_ins.hpp"

using namespace frugal_test::compose;

namespace on = frugal::on;
namespace around = frugal::around;

struct Sound {
  using kind = alpha;
  using listens = list<on::step, on::loss>;
  template <class>
  struct State {
    explicit State(Sound const&) {}
    flow on_step(Notes&) { return flow::stop; }
    void on_loss(Notes&) {}
  };
};
using SoundEngine = Engine<Context<Sound>, Sound>;
static_assert(sizeof(SoundEngine) >= 1);
#ifdef FRUGAL_REJECT
struct Unsound {
  using kind = alpha;
  using listens = list<on::loss>;
  template <class>
  struct State {
    explicit State(Unsound const&) {}
    flow on_loss(Notes&) { return flow::stop; }
  };
};
using UnsoundEngine = Engine<Context<Unsound>, Unsound>;
static_assert(sizeof(UnsoundEngine) >= 1);
#endif
