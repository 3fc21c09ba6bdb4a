// SPDX-License-Identifier: Apache-2.0
// expect: frugal: this policy's State has on_validate, which is not a hook and would never be called. Write on_validated or around_validate, or give a member of your own another name.
// expect: Unsound
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
    void on_step(Notes&) {}
    void on_validate(Notes&) {}
  };
};
using UnsoundEngine = Engine<Context<Unsound>, Unsound>;
static_assert(sizeof(UnsoundEngine) >= 1);
#endif
