// SPDX-License-Identifier: Apache-2.0
// torch-free, optimised
#include <doctest/doctest.h>

#include <frugal/data/curate/deduplicate_images.hpp>

#include <bit>
#include <cmath>
#include <cstdint>
#include <random>
#include <set>
#include <string>
#include <vector>

namespace frugal_test::data_curate_deduplicate_images {

using frugal::Curation;
using frugal::GreyImage;
using frugal::ImageHash;
using frugal::KeepSample;

struct Images {
  std::uint64_t size() const { return images.size(); }
  GreyImage const& get(std::uint64_t index) const {
    return images.at(static_cast<std::size_t>(index));
  }
  std::string identity() const { return "images"; }
  std::vector<GreyImage> images;
};

/// Waves in a random direction.
GreyImage picture(std::mt19937_64& random, std::uint32_t height = 40, std::uint32_t width = 48) {
  std::uniform_real_distribution<double> unit(-1, 1);
  GreyImage out{.pixels = {}, .height = height, .width = width};
  struct Wave {
    double y, x, phase;
  };
  std::vector<Wave> waves;
  for (int i = 0; i < 8; ++i)
    waves.push_back({9 * unit(random), 9 * unit(random), 4 * unit(random)});
  for (std::uint32_t y = 0; y < height; ++y) {
    for (std::uint32_t x = 0; x < width; ++x) {
      double sum = 0;
      for (Wave const& each : waves) {
        sum += std::sin(each.y * y / height + each.x * x / width + each.phase);
      }
      out.pixels.push_back(static_cast<std::uint8_t>(std::lround(128 + 15 * sum)));
    }
  }
  return out;
}

GreyImage darker(GreyImage image) {
  for (std::uint8_t& each : image.pixels) each = static_cast<std::uint8_t>(each - each / 8);
  return image;
}

GreyImage twice_as_large(GreyImage const& image) {
  GreyImage out{.pixels = {}, .height = 2 * image.height, .width = 2 * image.width};
  for (std::uint32_t y = 0; y < out.height; ++y) {
    for (std::uint32_t x = 0; x < out.width; ++x) {
      out.pixels.push_back(image.pixels[std::size_t{y / 2} * image.width + x / 2]);
    }
  }
  return out;
}

Images mixed(std::size_t size) {
  std::mt19937_64 random(5);
  Images set;
  while (set.images.size() < size) {
    GreyImage const image = picture(random);
    set.images.push_back(image);
    if (random() % 3 == 0) set.images.push_back(darker(image));
    if (random() % 3 == 0) set.images.push_back(twice_as_large(image));
    if (random() % 3 == 0) set.images.push_back(image);
  }
  return set;
}

TEST_CASE("groups are those of comparing all pairs of hashes") {
  Images const set = mixed(400);
  for (ImageHash const kind : {ImageHash::difference, ImageHash::frequency}) {
    std::vector<std::uint64_t> hashes;
    for (GreyImage const& each : set.images) {
      hashes.push_back(kind == ImageHash::difference ? frugal::difference_hash(each)
                                                     : frugal::frequency_hash(each));
    }
    for (unsigned const distance : {0U, 4U, 9U}) {
      frugal::Groups groups;
      for (std::size_t i = 0; i < hashes.size(); ++i) {
        for (std::size_t j = 0; j < i; ++j) {
          if (static_cast<unsigned>(std::popcount(hashes[i] ^ hashes[j])) <= distance)
            groups.join(i, j);
        }
      }
      Curation const found = frugal::deduplicate_images(set, {.hash = kind, .distance = distance});
      std::size_t next = 0;
      for (std::size_t i = 0; i < hashes.size(); ++i) {
        if (groups.find(i) == i) continue;
        REQUIRE(next < found.removed.size());
        auto const& each = found.removed[next++];
        CHECK(each.index == i);
        CHECK(each.twin == groups.find(i));
        CHECK(each.similarity == frugal::hash_similarity(hashes[i], hashes[each.twin]));
        CHECK(each.through_similarity >= 1 - distance / 64.0);
        CHECK(each.copy == (set.images[i].pixels == set.images[each.twin].pixels));
      }
      CHECK(next == found.removed.size());
      CHECK(next > 50);
    }
  }
}

TEST_CASE("the result is the same for 1 to 8 threads") {
  Images const set = mixed(300);
  Curation const expected = frugal::deduplicate_images(set, {.threads = 1});
  CHECK(expected.identity == "images");
  for (unsigned threads = 2; threads <= 8; ++threads) {
    Curation const found = frugal::deduplicate_images(set, {.threads = threads});
    CHECK(found.removed == expected.removed);
    CHECK(found.bytes == expected.bytes);
    CHECK(found.compared == expected.compared);
  }
}

TEST_CASE("the largest image of a group stays if asked for") {
  std::mt19937_64 random(1);
  GreyImage const image = picture(random);
  Images const set{{image, twice_as_large(image), image}};
  Curation const found = frugal::deduplicate_images(set, {.keep = KeepSample::longest});
  REQUIRE(found.removed.size() == 2);
  CHECK(found.removed[0].twin == 1);
  CHECK(found.removed[1].twin == 1);
  CHECK(found.method.find("the largest") != std::string::npos);
}

TEST_CASE("a thousand blank images are one group, compared once each") {
  Images const set{std::vector<GreyImage>(
      1000, {.pixels = std::vector<std::uint8_t>(64), .height = 8, .width = 8})};
  Curation const found = frugal::deduplicate_images(set, {});
  CHECK(found.removed.size() == 999);
  CHECK(found.compared == 999);
  CHECK(found.copies() == 999);
}

TEST_CASE("samples that are no images are read through a function") {
  struct Paths {
    std::uint64_t size() const { return 2; }
    std::string get(std::uint64_t) const { return "abcdef"; }
    std::string curated() const { return "gold"; }
  };
  auto const decode = [](std::string const& text) {
    return GreyImage{.pixels = {text.begin(), text.end()}, .height = 2, .width = 3};
  };
  CHECK_THROWS_AS(frugal::deduplicate_images(Paths{}, {}, decode), frugal::SettingsError);
  CHECK(frugal::deduplicate_images(Paths{}, {.even_if_curated = "gold"}, decode).removed.size() ==
        1);
}

TEST_CASE("a distance that finds everything alike, and an image without pixels, are refused") {
  CHECK_THROWS_AS(frugal::deduplicate_images(Images{}, {.distance = 12}), frugal::SettingsError);
  CHECK_THROWS_AS(frugal::deduplicate_images(Images{{GreyImage{}}}, {}), frugal::DataError);
  CHECK(frugal::deduplicate_images(Images{}, {}).removed.empty());
}

}  // namespace frugal_test::data_curate_deduplicate_images
