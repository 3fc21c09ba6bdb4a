// SPDX-License-Identifier: Apache-2.0
// torch-free
#include <frugal/data/curate/deduplicator.hpp>

#include <doctest/doctest.h>

#include <cstdint>
#include <limits>
#include <set>
#include <string>
#include <vector>

namespace frugal_test::data_curate_deduplicator {

using frugal::Deduplicate;
using frugal::detail::checked;
using frugal::detail::method_of;

std::string where(Deduplicate const& settings) {
  try {
    static_cast<void>(checked(settings));
  } catch (frugal::SettingsError const& error) {
    return error.fault().where;
  }
  return "nothing was thrown";
}

TEST_CASE("the defaults are those of the page, and the folder for spilling is the system's") {
  Deduplicate const used = checked({});
  CHECK(used.threshold == 0.8);
  CHECK(used.bands.hashes() == 260);
  CHECK_FALSE(used.spill.empty());
  CHECK(checked({.spill = "here"}).spill == "here");
}

TEST_CASE("a setting out of range is named") {
  for (double const wrong : {0.0, -1.0, 1.01, std::numeric_limits<double>::quiet_NaN()}) {
    CHECK(where({.threshold = wrong}) == "Deduplicate::threshold");
  }
  CHECK(where({.threshold = 1}) == "nothing was thrown");
  CHECK(where({.bands = {.bands = 0}}) == "Deduplicate::bands");
  CHECK(where({.bands = {.bands = 65536, .rows = 65536}}) == "Deduplicate::bands");  // 2^32
  CHECK(where({.bands = {.bands = 65536, .rows = 1}}) == "nothing was thrown");
  CHECK(where({.memory = 65535}) == "Deduplicate::memory");
  CHECK(where({.bucket_reach = 0}) == "Deduplicate::bucket_reach");
}

TEST_CASE("the report says in words what was done") {
  CHECK(method_of({.near = false}) == "copies by XXH3-128; the first of a group stays");
  CHECK(method_of({.threshold = 1, .keep = frugal::KeepSample::longest}) ==
        "copies by XXH3-128; near-duplicates by shingles of 5 words, folded, 260 MinHashes in 20 "
        "bands of 13, Jaccard similarity of at least 1, verified; the longest of a group stays");
}

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

TEST_CASE("a content hash is XXH3-128, as xxh128sum prints it") {
  // From xxHash's own tests (cli/xsum_sanity_check.c).
  CHECK(frugal::hex_of(frugal::content_hash("")) == "99aa06d3014798d86001c324468d497f");
  CHECK(frugal::content_hash("").high == 0x99aa06d3014798d8U);
}

TEST_CASE("every flipped bit of a sample changes its content hash") {
  std::string text = "the quick brown fox jumps over the lazy dog";
  std::set<frugal::ContentHash> hashes{frugal::content_hash(text)};
  for (std::size_t bit = 0; bit < text.size() * 8; ++bit) {
    std::string other = text;
    other[bit / 8] = static_cast<char>(other[bit / 8] ^ (1 << (bit % 8)));
    hashes.insert(frugal::content_hash(other));
  }
  CHECK(hashes.size() == text.size() * 8 + 1);
}

}  // namespace frugal_test::data_curate_deduplicator
