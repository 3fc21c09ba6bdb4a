// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include "conform/cover.hpp"

namespace frugal_test::conform_pairs {

TEST_CASE("every two policies train together to a finite loss: first third") { train_third<0>(); }

}  // namespace frugal_test::conform_pairs
