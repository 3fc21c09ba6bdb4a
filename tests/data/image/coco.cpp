// SPDX-License-Identifier: Apache-2.0
// needs: images
#include <frugal/data/image/coco.hpp>

#include <doctest/doctest.h>

#include <frugal/data/collate_then.hpp>
#include <frugal/data/image/annotated_batch.hpp>
#include <frugal/data/image/augment.hpp>
#include <frugal/data/image/color.hpp>
#include <frugal/data/image/geometry.hpp>
#include <frugal/data/loading/loader.hpp>
#include <frugal/data/loading/transformed.hpp>
#include <frugal/error.hpp>

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "files.hpp"
#include "support/files.hpp"

namespace frugal_test::data_image_coco {

using namespace frugal_test::image;
using namespace frugal;
namespace fs = std::filesystem;

static_assert(SampleSet<CocoImages> && IdentifiedSet<CocoImages>);

/// Nine images of several sizes; image i has i % 3 persons, and its id is 100 - i.
struct People : support::TemporaryFolder {
  Json file;

  People() {
    file = {{"images", Json::array()},
            {"annotations", Json::array()},
            {"categories",
             {{{"id", 5}, {"name", "dog"}},
              {{"id", 2}, {"name", "person"}, {"keypoints", {"left_eye", "right_eye"}}}}}};
    for (std::uint32_t i = 0; i < 9; ++i) {
      std::uint32_t const height = 20 + i, width = 30 - i;
      std::string const name = "all/" + std::to_string(i) + ".png";
      write(name, encode_png(gradient(height, width, 3)));
      file["images"].push_back(
          {{"id", 100 - i}, {"file_name", name}, {"height", height}, {"width", width}});
      for (std::uint32_t k = 0; k < i % 3; ++k) {
        file["annotations"].push_back({{"id", 10 * i + k},
                                       {"image_id", 100 - i},
                                       {"category_id", 2},
                                       {"iscrowd", k},
                                       {"bbox", {1 + k, 2, 6.5, 7}},
                                       {"segmentation", {{1 + k, 2, 7 + k, 2, 7 + k, 9}}},
                                       {"keypoints", {2, 3, 2, 4, 5, 1}}});
      }
    }
    save();
  }
  void write(std::string const& name, std::vector<std::byte> const& bytes) const {
    fs::create_directories((*this / name).parent_path());
    std::ofstream(*this / name, std::ios::binary)
        .write(reinterpret_cast<char const*>(bytes.data()),
               static_cast<std::streamsize>(bytes.size()));
  }
  void save() const { std::ofstream(*this / "a.json") << file.dump(); }
  CocoImages set(CocoOptions const& options = {}) const {
    return {path(), *this / "a.json", options};
  }
};

TEST_CASE("a sample has its image and the parts that were asked for") {
  People const people;
  CocoImages const set = people.set({.mask = true, .keypoints = true});
  REQUIRE(set.size() == 9);
  CHECK(set.classes() == std::vector<std::string>{"person", "dog"});
  CHECK(set.category_ids() == std::vector<std::int64_t>{2, 5});
  // By id: 92 to 100.
  CHECK(set.name(0) == (people / "all/8.png").string());
  AnnotatedImage const two = set.get(0);
  CHECK(two.id == 92);
  CHECK(at::equal(two.data, read_image(people / "all/8.png")));
  CHECK(at::equal(two.boxes, at::tensor({1.F, 2.F, 7.5F, 9.F, 2.F, 2.F, 8.5F, 9.F}).view({2, 4})));
  CHECK(at::equal(two.labels, at::zeros({2}, at::kLong)));
  CHECK(at::equal(two.crowd, at::tensor({0, 1}).to(at::kBool)));
  CHECK(at::equal(two.keypoints[1], at::tensor({2.F, 3.F, 2.F, 4.F, 5.F, 1.F}).view({2, 3})));
  CHECK(two.mask.sizes() == at::IntArrayRef({28, 22}));
  CHECK((two.mask.max().item<std::int64_t>() == 1 && two.mask.min().item<std::int64_t>() == 0));

  AnnotatedImage const none = people.set().get(8);
  CHECK(none.id == 100);
  CHECK(none.boxes.sizes() == at::IntArrayRef({0, 4}));
  CHECK((!none.mask.defined() && !none.keypoints.defined()));
}

auto train(People const& people, int workers) {
  auto const set = people.set({.mask = true, .keypoints = true});
  Transformed transformed(set,
                          Augment{RandomResizedCrop{.height = 16, .width = 12, .visible = 0.2},
                                  RandomFlip{.keypoint_pairs = keypoint_pairs(set.keypoints())}});
  return loader(
      std::move(transformed), {.batch = 2},
      CollateThen{CollateAnnotated{}, Augment{ColorJitter{.brightness = 0.3}, Normalize{}}},
      {.workers = workers});
}

bool same(AnnotatedBatch const& a, AnnotatedBatch const& b) {
  return at::equal(a.data, b.data) && at::equal(a.boxes(), b.boxes()) &&
         at::equal(a.mask(), b.mask()) && at::equal(a.keypoints(), b.keypoints()) &&
         at::equal(a.field("id"), b.field("id"));
}

TEST_CASE("a loader repeats an epoch from any place, with any number of workers") {
  People const people;
  auto alone = train(people, 0);
  std::vector<AnnotatedBatch> expected;
  alone.seek({.seed = 7, .epoch = 1});
  while (auto batch = alone.next()) expected.push_back(*batch);
  REQUIRE(expected.size() == 5);

  auto workers = train(people, 2);
  workers.seek({.seed = 7, .epoch = 1, .position = 4});
  for (std::size_t i = 2; i < 5; ++i) CHECK(same(*workers.next(), expected[i]));
  CHECK(!workers.next());
  alone.seek({.seed = 7, .epoch = 2});
  CHECK(!same(*alone.next(), expected[0]));
}

TEST_CASE("an image that is missing, elsewhere or of another size is refused") {
  People people;
  fs::rename(people / "all/3.png", people / "all/x.png");
  auto fault = fault_of<DataError>([&] { return people.set(); });
  CHECK(fault.where ==
        (people / "all/3.png").string() + ", image 97 of " + (people / "a.json").string());
  CHECK(fault.why == "there is no such file");
  fs::rename(people / "all/x.png", people / "all/3.png");

  people.file["images"][3]["height"] = 24;
  people.save();
  fault = fault_of<DataError>([&] { return people.set().get(5); });
  CHECK(fault.what == "an image has another size than its annotations say");
  CHECK(fault.why == "it is 27 x 23, and should be 27 x 24");

  for (std::string const name : {"../a.json", "/etc/passwd", "all/../../x", ""}) {
    people.file["images"][3]["file_name"] = name;
    people.save();
    CHECK(fault_of<DataError>([&] { return people.set(); }).why == "its path leaves the folder");
  }
  CHECK_THROWS_AS(people.set({.decoding = {.at_least = 8}}), SettingsError);
}

TEST_CASE("an image that its EXIF orientation turns is refused, or read as the options say") {
  People people;
  auto const file = file_of("jpeg orientation 6");
  people.write("all/0.png", file);
  RawImage const stored = decode_pixels(file, {.orient = false});
  people.file["images"][0]["height"] = stored.height;
  people.file["images"][0]["width"] = stored.width;
  people.save();
  CHECK(fault_of<DataError>([&] { return people.set().get(8); }).what ==
        "the image is not upright");
  CHECK(people.set({.exif = Exif::stored}).get(8).data.size(1) == stored.height);
  CHECK(fault_of<DataError>([&] { return people.set({.exif = Exif::turned}).get(8); }).what ==
        "an image has another size than its annotations say");
}

TEST_CASE("the identity changes with the annotations, the images and the options") {
  People people;
  auto const values = [&](CocoOptions const& options = {}) {
    DataIdentity to;
    people.set(options).identify(to);
    return to.values();
  };
  auto const before = values();
  std::string const text = people.set().identity();
  CHECK(values() == before);
  CHECK(values({.mask = true}) != before);
  CHECK(people.set({.keypoints = true}).identity() != text);
  people.write("all/2.png", encode_png(gradient(22, 28, 1)));
  CHECK(values() != before);
  auto const image = values();
  people.file["annotations"][0]["bbox"][0] = 3;
  people.save();
  CHECK(values() != image);
  CHECK(people.set().identity() != text);
}

}  // namespace frugal_test::data_image_coco
