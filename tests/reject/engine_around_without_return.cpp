// SPDX-License-Identifier: Apache-2.0
// expect: frugal: this policy's around_forward returns a value that the loop does not use. Return void; a flow where the run may end; what next() returns in an around-hook; a bool in a query.
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
    template <class Next>
    void around_forward(Notes const&, Next&& next) {
      next();
    }
  };
};
using UnsoundEngine = Engine<Context<Unsound>, Unsound>;
static_assert(sizeof(UnsoundEngine) >= 1);
#endif
