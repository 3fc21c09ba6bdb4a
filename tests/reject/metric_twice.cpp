// SPDX-License-Identifier: Apache-2.0
// needs: torch
// expect: frugal: two metrics of this recipe have one name, or one is called "loss", which is always measured. The compiler's note names them: give one another name.
#include <frugal/policy/validate.hpp>

#include <string_view>

using namespace frugal;

static_assert(sizeof(Validate<Every<1, Epoch>, Accuracy>) != 0);
#ifdef FRUGAL_REJECT
static_assert(sizeof(Validate<Every<1, Epoch>, Accuracy, Accuracy>) != 0);
#endif
