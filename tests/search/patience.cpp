// SPDX-License-Identifier: Apache-2.0
// torch-free
#include <doctest/doctest.h>

#include <frugal/search/patience.hpp>

#include <chrono>
#include <sstream>

namespace frugal_test::search_patience {

using frugal::detail::Patience;

TEST_CASE("pauses become longer, and the lock is named once") {
  std::ostringstream said;
  Patience patience(std::chrono::milliseconds(100), said);
  auto const begin = std::chrono::steady_clock::now();
  patience.wait("trials/0003/claim");  // 20 ms
  patience.wait("trials/0003/claim");  // 60 ms
  CHECK(said.str().empty());
  patience.wait("trials/0003/claim");  // 140 ms
  CHECK(std::chrono::steady_clock::now() - begin >= std::chrono::milliseconds(140));
  CHECK(said.str() ==
        "frugal: the search waits for another worker. If that one is gone: trials/0003/claim\n");
  patience.wait("trials/0004/claim");
  CHECK(said.str().find("0004") == std::string::npos);
}

}  // namespace frugal_test::search_patience
