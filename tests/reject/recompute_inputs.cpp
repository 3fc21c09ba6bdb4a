// SPDX-License-Identifier: Apache-2.0
// needs: torch
// expect: frugal: the function given to recompute cannot be called with these inputs. Let it take them by value or by const&, in the order of the call.
#include <frugal/policy/recompute.hpp>

at::Tensor good(at::Tensor const& x) {
  return frugal::recompute([](at::Tensor const& h) { return h.exp(); }, x);
}
#ifdef FRUGAL_REJECT
void bad(at::Tensor const& x) {
  frugal::recompute([](at::Tensor& h) { return h.exp(); }, x);
}
#endif
