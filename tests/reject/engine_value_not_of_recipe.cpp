// SPDX-License-Identifier: Apache-2.0
// expect: frugal: this policy value is not in the trainer's recipe. Name its type in the Trainer, or let the types be deduced from the values.
#include "../core/compose/stand_ins.hpp"

using namespace frugal_test::compose;

int main() {
  using A = Setting<alpha>;
  frugal::detail::Storage<A> storage;
  frugal::detail::assignment_to(storage, list<A>{}) << A{.value = 1};
#ifdef FRUGAL_REJECT
  frugal::detail::assignment_to(storage, list<A>{}) << Setting<beta>{.value = 1};
#endif
}
