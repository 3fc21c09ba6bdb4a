// SPDX-License-Identifier: Apache-2.0
// torch-free
#include <frugal/data/curate/perceptual_hash.hpp>

#include <doctest/doctest.h>

#include <frugal/base/hash.hpp>

#include <bit>
#include <cstddef>
#include <cstdint>
#include <fstream>
#include <nlohmann/json.hpp>
#include <random>
#include <string>
#include <vector>

namespace frugal_test::data_curate_perceptual_hash {

using frugal::GreyImage;

nlohmann::json pictures() {
  std::ifstream file(std::string(FRUGAL_TEST_DIR) + "/reference/curate.json");
  return nlohmann::json::parse(file).at("pictures");
}

GreyImage image_of(nlohmann::json const& each) {
  return {.pixels = each.at("pixels").get<std::vector<std::uint8_t>>(),
          .height = each.at("height").get<std::uint32_t>(),
          .width = each.at("width").get<std::uint32_t>()};
}

template <class F>
GreyImage picture(std::uint32_t height, std::uint32_t width, F const& at) {
  GreyImage out{.pixels = {}, .height = height, .width = width};
  for (std::uint32_t y = 0; y < height; ++y) {
    for (std::uint32_t x = 0; x < width; ++x)
      out.pixels.push_back(static_cast<std::uint8_t>(at(y, x)));
  }
  return out;
}

int distance(std::uint64_t a, std::uint64_t b) { return std::popcount(a ^ b); }

TEST_CASE("dHash and pHash are those of NumPy and SciPy") {
  auto const all = pictures();
  CHECK(all.size() >= 6);
  for (auto const& each : all) {
    CHECK(frugal::hex_of(frugal::difference_hash(image_of(each))) ==
          each.at("dhash").get<std::string>());
    CHECK(frugal::hex_of(frugal::frequency_hash(image_of(each))) ==
          each.at("phash").get<std::string>());
  }
}

TEST_CASE("an image that was enlarged by a whole factor has the same hashes") {
  for (auto const& each : pictures()) {
    GreyImage const image = image_of(each);
    GreyImage const large = picture(3 * image.height, 2 * image.width, [&](auto y, auto x) {
      return image.pixels[std::size_t{y / 3} * image.width + x / 2];
    });
    CHECK(frugal::difference_hash(large) == frugal::difference_hash(image));
    CHECK(distance(frugal::frequency_hash(large), frugal::frequency_hash(image)) <= 1);
  }
}

TEST_CASE("less contrast changes few bits, another image changes many") {
  auto const all = pictures();
  GreyImage const image = image_of(all.at(2)), other = image_of(all.at(5));
  GreyImage const pale = picture(image.height, image.width, [&](auto y, auto x) {
    return 100 + image.pixels[std::size_t{y} * image.width + x] / 4;
  });
  for (auto* const hash : {&frugal::difference_hash, &frugal::frequency_hash}) {
    CHECK(distance(hash(pale), hash(image)) <= 8);
    CHECK(distance(hash(other), hash(image)) >= 16);
  }
  CHECK(frugal::hash_similarity(0, 0) == 1);
  CHECK(frugal::hash_similarity(0, 0xffff) == 0.75);
}

TEST_CASE("a flat image has no differences, whatever its size and shade") {
  for (std::uint32_t const side : {1U, 5U, 9U, 32U, 100U}) {
    for (int const shade : {0, 1, 127, 255}) {
      GreyImage const flat = picture(side, side + 1, [&](auto, auto) { return shade; });
      CHECK(frugal::difference_hash(flat) == 0);
      // The constant part alone can be above the median.
      CHECK(frugal::frequency_hash(flat) == (shade == 0 ? 0 : std::uint64_t{1} << 63));
    }
  }
}

TEST_CASE("a ramp to the right sets all bits of dHash, and one to the left none") {
  auto const right = picture(20, 45, [](auto, auto x) { return 5 * x; });
  auto const left = picture(20, 45, [](auto, auto x) { return 5 * (44 - x); });
  CHECK(frugal::difference_hash(right) == ~std::uint64_t{0});
  CHECK(frugal::difference_hash(left) == 0);
}

TEST_CASE("an image whose pixels do not fit its size is refused with both") {
  CHECK_THROWS_AS(frugal::difference_hash({}), frugal::DataError);
  try {
    frugal::frequency_hash({.pixels = std::vector<std::uint8_t>(5), .height = 2, .width = 3});
    FAIL("nothing was thrown");
  } catch (frugal::DataError const& error) {
    CHECK(error.fault().what == "an image of 5 pixels");
    CHECK(error.fault().why == "its height is 2 and its width 3");
  }
}

/// Hashes in clusters, so that there are neighbours at every distance.
std::vector<std::uint64_t> clusters(std::size_t count) {
  std::mt19937_64 random(3);
  std::vector<std::uint64_t> out;
  std::uint64_t centre = 0;
  for (std::size_t i = 0; i < count; ++i) {
    if (i % 20 == 0) centre = random();
    std::uint64_t hash = centre;
    for (std::size_t flips = i % 20; flips > 0; --flips)
      hash ^= std::uint64_t{1} << (random() % 64);
    out.push_back(hash);
  }
  return out;
}

TEST_CASE("a lookup finds what a look at every hash finds, at any distance") {
  auto const hashes = clusters(600);
  frugal::HammingIndex const index(hashes);
  CHECK(index.size() == 600);
  for (unsigned distance = 0; distance <= 11; ++distance) {
    std::size_t found = 0;
    for (std::size_t i = 0; i < hashes.size(); i += 7) {
      std::vector<std::uint32_t> expected;
      for (std::uint32_t j = 0; j < hashes.size(); ++j) {
        if (static_cast<unsigned>(std::popcount(hashes[i] ^ hashes[j])) <= distance)
          expected.push_back(j);
      }
      CHECK(index.within(hashes[i], distance) == expected);
      found += expected.size();
    }
    CHECK(found >= 86);  // each at least finds itself
  }
}

TEST_CASE("the worst spread of differences over the parts is found too") {
  // Two bits in each part: a distance of 8, and 2 in every part.
  std::uint64_t const spread = 0x0003'0003'0003'0003U;
  frugal::HammingIndex const index({spread});
  CHECK(index.within(0, 8) == std::vector<std::uint32_t>{0});
  CHECK(index.within(0, 7).empty());
}

TEST_CASE("an empty index finds nothing") { CHECK(frugal::HammingIndex({}).within(5, 3).empty()); }

}  // namespace frugal_test::data_curate_perceptual_hash
