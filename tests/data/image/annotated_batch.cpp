// SPDX-License-Identifier: Apache-2.0
#include <frugal/data/image/annotated_batch.hpp>

#include <doctest/doctest.h>

#include <frugal/core/source/batch.hpp>
#include <frugal/core/source/labels.hpp>
#include <frugal/data/image/augment.hpp>
#include <frugal/data/image/color.hpp>
#include <frugal/error.hpp>
#include <frugal/metrics/mean_average_precision.hpp>

#include <cstdint>
#include <string>
#include <vector>

namespace frugal_test::data_image_annotated_batch {

using namespace frugal;

/// An image of 8 x 8 with that many objects, whose numbers are not those of another image.
AnnotatedImage image_of(std::int64_t objects, std::int64_t id) {
  at::Tensor const corners = at::arange(2 * objects, at::kFloat).view({objects, 2}).div(8).add(id);
  return {.data = at::full({3, 8, 8}, id, at::kFloat),
          .mask = at::full({8, 8}, id, at::kLong),
          .boxes = at::cat({corners, corners + 2}, 1),
          .labels = at::arange(objects) + id,
          .crowd = at::arange(objects).eq(1),
          .keypoints = at::full({objects, 2, 3}, id, at::kFloat),
          .id = id};
}

TEST_CASE("objects are packed, and rows of padding have label -100") {
  auto const batch =
      CollateAnnotated{}(std::vector{image_of(1, 3), image_of(0, 4), image_of(2, 5)});
  CHECK(batch.data.sizes() == at::IntArrayRef({3, 3, 8, 8}));
  CHECK(at::equal(batch.target, batch.boxes()));
  auto const pad = static_cast<float>(ignored_label);
  CHECK(at::equal(
      batch.boxes(),
      at::tensor({3.F, 3.125F, 5.F, 5.125F, 3.F, 0.F, 0.F,   0.F,    0.F,   0.F,    pad, 0.F,
                  0.F, 0.F,    0.F, 0.F,    pad, 0.F, 0.F,   0.F,    0.F,   0.F,    pad, 0.F,
                  5.F, 5.125F, 7.F, 7.125F, 5.F, 0.F, 5.25F, 5.375F, 7.25F, 7.375F, 6.F, 1.F})
          .view({3, 2, 6})));
  CHECK(at::equal(batch.mask().select(1, 0).select(1, 0), at::tensor({3, 4, 5}, at::kLong)));
  CHECK(batch.keypoints().sizes() == at::IntArrayRef({3, 2, 2, 3}));
  CHECK(at::equal(batch.keypoints().sum({1, 2, 3}), at::tensor({18.F, 0.F, 60.F})));
  CHECK(at::equal(batch.field("id"), at::tensor({3, 4, 5}, at::kLong)));
  CHECK(batch_samples(batch) == 3);

  auto const last = batch_narrow(batch, 2, 1);
  CHECK(at::equal(last.boxes(), batch.boxes().narrow(0, 2, 1)));
  CHECK(last.field("id").item<std::int64_t>() == 5);
}

TEST_CASE("the target is the part that is asked for, and the others are fields") {
  CollateAnnotated const collate{.target = Annotation::mask};
  auto const batch = collate(std::vector{image_of(1, 3), image_of(2, 5)});
  CHECK(batch.target.sizes() == at::IntArrayRef({2, 8, 8}));
  CHECK(batch.mask().is_same(batch.target));
  CHECK(batch.boxes().size(1) == 2);
  CHECK(collate.identity() != CollateAnnotated{}.identity());

  AnnotatedImage const boxes{.data = at::zeros({3, 8, 8}),
                             .boxes = at::empty({0, 4}),
                             .labels = at::empty({0}, at::kLong)};
  CHECK_THROWS_AS(collate(std::vector{boxes}), DataError);
  auto const none = CollateAnnotated{}(std::vector{boxes, boxes});
  CHECK(none.boxes().sizes() == at::IntArrayRef({2, 0, 6}));
  CHECK_THROWS_AS(none.mask(), DataError);
}

TEST_CASE("MeanAveragePrecision takes the boxes as they are") {
  auto const batch =
      CollateAnnotated{}(std::vector{image_of(1, 3), image_of(0, 4), image_of(2, 5)});
  at::Tensor found = batch.boxes().clone();
  found.select(2, 5).copy_(batch.boxes().select(2, 4));
  found.select(2, 4).fill_(0.5);
  MeanAveragePrecision metric;
  metric.add(Loss{.value = {}, .output = found}, batch);
  CHECK(metric.result()["map"] == doctest::Approx(1));
}

TEST_CASE("a batch takes transforms that move no pixel") {
  auto const batch = CollateAnnotated{}(std::vector{image_of(1, 3), image_of(2, 5)});
  std::vector<SampleKey> const keys{{0, 1, 2}, {1, 1, 2}};
  Augment const augment{ColorJitter{.brightness = 0.3}, Normalize{}};
  auto const changed = augment(batch, keys);
  CHECK(at::equal(changed.data, augment(batch.data, keys)));
  CHECK(at::equal(changed.boxes(), batch.boxes()));
}

TEST_CASE("samples of unlike parts are refused, with their numbers") {
  std::vector samples{image_of(1, 3), image_of(1, 5)};
  std::vector<std::size_t> const numbers{30, 50};
  auto const why = [&](auto&& change) {
    auto changed = samples;
    change(changed[1]);
    try {
      CollateAnnotated{}(changed, numbers);
    } catch (Error const& error) {
      CHECK(error.fault().where.find("sample 50") != std::string::npos);
      return error.fault().why;
    }
    return std::string("nothing was thrown");
  };
  CHECK(why([](AnnotatedImage& x) { x.mask = at::Tensor(); }) == "one of them has a mask");
  CHECK(why([](AnnotatedImage& x) { x.keypoints = at::Tensor(); }) == "one of them has keypoints");
  CHECK(why([](AnnotatedImage& x) { x.keypoints = at::zeros({1, 3, 3}); }) == "they have 3 and 2");
  CHECK_THROWS_AS(CollateAnnotated{}({}), DataError);
}

}  // namespace frugal_test::data_image_annotated_batch
