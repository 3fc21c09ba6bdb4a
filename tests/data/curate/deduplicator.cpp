// SPDX-License-Identifier: Apache-2.0
// torch-free
#include <doctest/doctest.h>

#include <frugal/data/curate/deduplicator.hpp>

#include <set>
#include <string>

namespace frugal_test::data_curate_deduplicator {

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
