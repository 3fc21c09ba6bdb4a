// SPDX-License-Identifier: Apache-2.0
// torch-free
#include <frugal/data/curate/bands.hpp>

#include <doctest/doctest.h>

#include <cstdint>
#include <set>
#include <vector>

namespace frugal_test::data_curate_bands {

using frugal::Bands;

TEST_CASE("the recall is that of the page, from 0 to 1") {
  Bands const bands;
  CHECK(bands.hashes() == 260);
  CHECK(bands.recall(0) == 0);
  CHECK(bands.recall(1) == 1);
  CHECK(bands.recall(0.8) == doctest::Approx(0.68).epsilon(0.005));
  CHECK(bands.recall(0.86) == doctest::Approx(0.95).epsilon(0.005));
  CHECK(bands.recall(0.89) > 0.99);
  CHECK(Bands{.bands = 1, .rows = 1}.recall(0.3) == doctest::Approx(0.3));
}

TEST_CASE("a key depends on the rows of its band, on all of them, and on the band") {
  Bands const bands{.bands = 3, .rows = 4};
  std::vector<std::uint32_t> signature(12, 5);
  std::set<std::uint64_t> keys;
  for (std::uint32_t band = 0; band < 3; ++band) keys.insert(bands.key(signature, band));
  CHECK(keys.size() == 3);  // equal rows of different bands are no candidates
  for (std::uint32_t row = 0; row < 12; ++row) {
    auto changed = signature;
    changed[row] ^= 1U;
    for (std::uint32_t band = 0; band < 3; ++band) {
      CHECK((bands.key(changed, band) == bands.key(signature, band)) == (row / 4 != band));
    }
  }
}

}  // namespace frugal_test::data_curate_bands
