// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <cstdlib>

TEST_CASE("leaves") { std::_Exit(0); }
