// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <frugal/core/state/state_dict.hpp>
#include <frugal/core/state/state_reader.hpp>
#include <frugal/core/state/state_writer.hpp>

#include "core/loop/stand_ins.hpp"

#include <vector>

namespace frugal_test::state_archive_path {

using namespace frugal_test::loop;

TEST_CASE("scopes keep equal names apart, and end with their bodies") {
  StateDict memory;
  StateWriter writer(memory);
  writer.scope("a", [](auto& a) {
    a("n", 1);
    a.scope("b", [](auto& b) { b("n", 2); });
    a("m", 3);
  });
  writer("n", 4);
  StateReader reader(memory);
  int n = 0, a_n = 0, a_m = 0, b_n = 0;
  reader("n", n);
  reader.scope("a", [&](auto& a) {
    a.scope("b", [&](auto& b) { b("n", b_n); });
    a("n", a_n);
    a("m", a_m);
  });
  CHECK((std::vector{n, a_n, b_n, a_m} == std::vector{4, 1, 2, 3}));
}

}  // namespace frugal_test::state_archive_path
