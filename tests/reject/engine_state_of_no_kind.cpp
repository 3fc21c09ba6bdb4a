// SPDX-License-Identifier: Apache-2.0
// expect: frugal: this recipe has no policy of that kind.
#include "../core/compose/stand_ins.hpp"

using namespace frugal_test::compose;

using A = Teller<alpha>;
void look(Engine<Context<A>, A>& engine) {
  engine.state<alpha>();
#ifdef FRUGAL_REJECT
  engine.state<beta>();
#endif
}
