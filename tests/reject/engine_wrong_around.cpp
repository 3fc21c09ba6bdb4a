// SPDX-License-Identifier: Apache-2.0
// expect: frugal: this policy's around_forward cannot be called with what the loop gives it. Write around_forward(Forward const&, auto&& next) and return next().
#include "../core/compose/stand_ins.hpp"

using namespace frugal_test::compose;

namespace on = frugal::on;
namespace around = frugal::around;

struct Sound {
  using kind = alpha;
  using listens = list<around::forward>;
  template <class>
  struct State {
    explicit State(Sound const&) {}
    template <class Next>
    int around_forward(Notes const&, Next&& next) {
      return next();
    }
  };
};
using SoundEngine = Engine<Context<Sound>, Sound>;
static_assert(sizeof(SoundEngine) >= 1);
#ifdef FRUGAL_REJECT
struct Unsound {
  using kind = alpha;
  using listens = list<around::forward>;
  template <class>
  struct State {
    explicit State(Unsound const&) {}
    void around_forward(Notes const&) {}
  };
};
using UnsoundEngine = Engine<Context<Unsound>, Unsound>;
static_assert(sizeof(UnsoundEngine) >= 1);
#endif
