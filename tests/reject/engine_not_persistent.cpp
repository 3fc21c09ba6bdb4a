// SPDX-License-Identifier: Apache-2.0
// expect: frugal: this policy's State carries data that no checkpoint would keep. Give it `template <class Archive> void persist(Archive&)`, or `using transient = void` when a resumed run may start without it.
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
    using transient = void;
    void on_step(Notes&) {}
    int count = 0;
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
    int count = 0;
  };
};
using UnsoundEngine = Engine<Context<Unsound>, Unsound>;
static_assert(sizeof(UnsoundEngine) >= 1);
#endif
