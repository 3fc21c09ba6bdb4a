// SPDX-License-Identifier: Apache-2.0
// needs: images
// Files, transforms of samples and of batches, and a loader's workers, together.
#include <doctest/doctest.h>

#include <frugal/data/collate_then.hpp>
#include <frugal/data/image/augment.hpp>
#include <frugal/data/image/color.hpp>
#include <frugal/data/image/folder.hpp>
#include <frugal/data/image/geometry.hpp>
#include <frugal/data/image/mix.hpp>
#include <frugal/data/loading/loader.hpp>
#include <frugal/data/loading/transformed.hpp>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "files.hpp"
#include "support/files.hpp"

namespace frugal_test::image_loaded {

using namespace frugal_test::image;
using namespace frugal;

/// 21 pictures of different sizes in three classes.
struct Pictures : support::TemporaryFolder {
  Pictures() {
    for (std::uint32_t i = 0; i < 21; ++i) {
      auto const path = *this / (std::to_string(i % 3) + "/" + std::to_string(i) + ".jpg");
      std::filesystem::create_directories(path.parent_path());
      auto const file = encode_jpeg(gradient(30 + i, 50 - i, 3));
      std::ofstream(path, std::ios::binary)
          .write(reinterpret_cast<char const*>(file.data()),
                 static_cast<std::streamsize>(file.size()));
    }
  }
};

auto train(Pictures const& pictures, int workers, OnError on_error = OnError::Fail) {
  Transformed set(ImageFolder(pictures.path()),
                  Augment{RandomResizedCrop{.height = 16, .width = 12}});
  CollateThen const collate{
      Stack{}, Augment{RandomFlip{}, ColorJitter{.brightness = 0.3, .hue = 0.1}, Normalize{},
                       MixUp{.classes = 3}}};
  return loader(std::move(set), {.batch = 4}, collate,
                {.workers = workers, .on_error = on_error, .skip_limit = 0.1});
}

template <class Source>
std::vector<Batch> epoch(Source& source, Cursor const& cursor) {
  std::vector<Batch> batches;
  source.seek(cursor);
  while (auto batch = source.next()) batches.push_back(*batch);
  return batches;
}

bool same(Batch const& a, Batch const& b) {
  return at::equal(a.data, b.data) && at::equal(a.target, b.target);
}

TEST_CASE(
    "augmented batches are the same with any number of workers, and differ from epoch to epoch") {
  Pictures const pictures;
  auto alone = train(pictures, 0);
  auto const expected = epoch(alone, {.seed = 7, .epoch = 2});
  REQUIRE(expected.size() == 6);
  CHECK(expected[0].data.sizes() == at::IntArrayRef({4, 3, 16, 12}));
  CHECK(expected[5].target.sizes() == at::IntArrayRef({1, 3}));
  for (int const workers : {1, 3}) {
    auto source = train(pictures, workers);
    auto const batches = epoch(source, {.seed = 7, .epoch = 2});
    REQUIRE(batches.size() == expected.size());
    for (std::size_t i = 0; i < batches.size(); ++i) CHECK(same(batches[i], expected[i]));
  }
  CHECK_FALSE(at::equal(epoch(alone, {.seed = 7, .epoch = 3})[0].data, expected[0].data));
}

TEST_CASE("a run that resumes within an epoch sees the same augmented batches") {
  Pictures const pictures;
  auto source = train(pictures, 2);
  auto const whole = epoch(source, {.seed = 7});
  auto const rest = epoch(source, {.seed = 7, .position = 8});
  REQUIRE(rest.size() == whole.size() - 2);
  for (std::size_t i = 0; i < rest.size(); ++i) CHECK(same(rest[i], whole[i + 2]));
}

TEST_CASE("a damaged file ends the run with its path, or is left out") {
  Pictures const pictures;
  std::filesystem::resize_file(pictures / "1/4.jpg", 400);
  auto strict = train(pictures, 2);
  try {
    static_cast<void>(epoch(strict, {}));
    FAIL("nothing was thrown");
  } catch (WorkerError const& error) {
    CHECK(std::string(error.what()).find((pictures / "1/4.jpg").string()) != std::string::npos);
  }
  auto lenient = train(pictures, 2, OnError::Skip);
  std::int64_t samples = 0;
  for (Batch const& batch : epoch(lenient, {})) samples += batch.data.size(0);
  CHECK(samples == 20);
}

}  // namespace frugal_test::image_loaded
