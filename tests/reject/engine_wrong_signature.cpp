// SPDX-License-Identifier: Apache-2.0
// expect: frugal: this policy's on_step cannot be called with what the loop gives it. Write on_step(Step&).
#include "../core/compose/stand_ins.hpp"

using namespace frugal_test::compose;

namespace on = frugal::on;
namespace around = frugal::around;

struct Sound {
  using kind = alpha;
  using listens = list<on::step>;
  template <class>
  struct State {
    explicit State(Sound const&) {}
    void on_step(Notes&) {}
  };
};
using SoundEngine = Engine<Context<Sound>, Sound>;
static_assert(sizeof(SoundEngine) >= 1);
#ifdef FRUGAL_REJECT
struct Unsound {
  using kind = alpha;
  using listens = list<on::step>;
  template <class>
  struct State {
    explicit State(Unsound const&) {}
    void on_step(Notes&, int) {}
  };
};
using UnsoundEngine = Engine<Context<Unsound>, Unsound>;
static_assert(sizeof(UnsoundEngine) >= 1);
#endif
