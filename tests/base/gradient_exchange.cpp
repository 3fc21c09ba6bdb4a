// SPDX-License-Identifier: Apache-2.0
// torch-free
#include <doctest/doctest.h>

#include <frugal/base/gradient_exchange.hpp>

namespace frugal_test::base_gradient_exchange {

TEST_CASE(
    "1448 bytes of payload in a frame of 1514 leave 95.6 % of a link, of which a byte takes eight "
    "bits") {
  frugal::LinkSpeed const link = frugal::tcp_link(0.1, 0.5);
  CHECK(link.bytes_per_second == doctest::Approx(11.955e6).epsilon(1e-4));
  CHECK(link.latency == 0.5);
}

}  // namespace frugal_test::base_gradient_exchange
