// SPDX-License-Identifier: Apache-2.0
// torch-free
#include <doctest/doctest.h>

#include <frugal/data/curate/curation.hpp>

namespace frugal_test::data_curate_curation {

TEST_CASE("an epoch saves the time of the removed samples, by number, by bytes or by both") {
  frugal::Curation curation{.name = "", .identity = "", .method = "", .samples = 10, .bytes = 90};
  curation.removed = {{.index = 3, .bytes = 30}, {.index = 4, .copy = true, .bytes = 6}};
  CHECK(curation.kept() == 8);
  CHECK(curation.removed_bytes() == 36);
  CHECK(curation.copies() == 1);
  // 2 samples of 900 s each are half an hour of 3 dollars, and so are 36 bytes of 50 s.
  curation.price = {.per_hour = 3, .seconds_per_sample = 900};
  CHECK(curation.dollars_per_epoch() == 1.5);
  curation.price = {.per_hour = 3, .seconds_per_byte = 50};
  CHECK(curation.dollars_per_epoch() == 1.5);
  curation.price = {.per_hour = 3, .seconds_per_sample = 900, .seconds_per_byte = 50};
  CHECK(curation.dollars_per_epoch() == 3);
}

TEST_CASE("without a price there are no dollars") {
  frugal::Curation curation{.name = "", .identity = "", .method = "", .samples = 10};
  CHECK(!curation.dollars_per_epoch());
  curation.price = {.per_hour = 3};
  CHECK(!curation.dollars_per_epoch());
  curation.price = {.seconds_per_sample = 3};
  CHECK(!curation.dollars_per_epoch());
}

}  // namespace frugal_test::data_curate_curation
