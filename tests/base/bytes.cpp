// SPDX-License-Identifier: Apache-2.0
// torch-free
#include <doctest/doctest.h>

#include <frugal/base/bytes.hpp>

#include "support/locales.hpp"

namespace frugal_test::watch_bytes {

using frugal::detail::bytes_text;

TEST_CASE("a size has the largest unit of which it has one") {
  CHECK(bytes_text(0) == "0 B");
  CHECK(bytes_text(1023) == "1023 B");
  CHECK(bytes_text(1536) == "1.5 KiB");
  CHECK(bytes_text(0x1p31) == "2.0 GiB");
  CHECK(bytes_text(0x1p52) == "4096.0 TiB");
}

TEST_CASE("a negative size has the unit of its amount") {
  CHECK(bytes_text(-1023) == "-1023 B");
  CHECK(bytes_text(-0x1p31) == "-2.0 GiB");
}

TEST_CASE("a size reads the same in every locale") {
  support::GroupedLocale const grouped;
  CHECK(bytes_text(0x1p52) == "4096.0 TiB");
  support::CommaLocale const comma;
  if (comma.works()) CHECK(bytes_text(1536) == "1.5 KiB");
}

}  // namespace frugal_test::watch_bytes
