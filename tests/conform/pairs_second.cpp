// SPDX-License-Identifier: Apache-2.0
// left to clang: pairs_first.cpp has the same templates
#include <doctest/doctest.h>

#include "conform/cover.hpp"

namespace frugal_test::conform_pairs {

TEST_CASE("every two policies train together to a finite loss: second third") { train_third<1>(); }

}  // namespace frugal_test::conform_pairs
