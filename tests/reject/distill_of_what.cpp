// SPDX-License-Identifier: Apache-2.0
// needs: torch
// expect: frugal: Distill<...>: unknown option. Write Distill<Temperature<4>> for logits of classes, or Distill<SquaredError> for other outputs.
#include <frugal/model/distill.hpp>

using namespace frugal;

Distill<Temperature<4>> good;
#ifdef FRUGAL_REJECT
Distill<CrossEntropy> bad;
#endif
