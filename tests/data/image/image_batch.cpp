// SPDX-License-Identifier: Apache-2.0
#include <frugal/data/image/image_batch.hpp>

#include "references.hpp"

#include <doctest/doctest.h>

#include <array>
#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

namespace frugal_test::data_image_image_batch {

using namespace frugal_test::image;
using frugal::Patch;
using frugal::detail::change_rows;
using frugal::detail::check_images;
using frugal::detail::image_transform_text;

template <class Error, class F>
std::string why(F&& f) {
  try {
    f();
  } catch (Error const& error) {
    return error.fault().why;
  }
  return "nothing was thrown";
}

TEST_CASE("images are bytes or floats of three dimensions or more") {
  check_images(at::zeros({1, 2, 3}), "test");
  check_images(at::zeros({4, 1, 2, 3}, at::kByte), "test");
  check_images(at::zeros({4, 1, 2, 3}, at::kHalf), "test");
  CHECK(why<frugal::ShapeError>([] { check_images(at::zeros({2, 3}), "test"); }) ==
        "it is [2, 3] Float");
  CHECK(why<frugal::ShapeError>([] { check_images(at::zeros({3, 0, 2}), "test"); }) ==
        "it is [3, 0, 2] Float");
  CHECK(why<frugal::DtypeError>([] { check_images(at::zeros({1, 2, 3}, at::kInt), "test"); }) ==
        "it has dtype Int");
}

TEST_CASE("a batch has a key for each image") {
  check_images(at::zeros({2, 1, 2, 3}), keys_of(2), "test");
  CHECK(why<frugal::ShapeError>([] {
          check_images(at::zeros({2, 1, 2, 3}), keys_of(3), "test");
        }) == "the images are [2, 1, 2, 3] Float, with 3 keys");
}

TEST_CASE("floats end at 1, bytes at 255") {
  CHECK(frugal::detail::brightest(at::zeros({1})) == 1);
  CHECK(frugal::detail::brightest(at::zeros({1}, at::kByte)) == 255);
}

at::Tensor negative(at::Tensor const& some) { return some.neg(); }

TEST_CASE("the given rows are changed, in a batch of their own") {
  at::Tensor const all = at::arange(8, at::kFloat).view({4, 2});
  at::Tensor const out = change_rows(all, {2, 0}, [](at::Tensor const& some) {
    CHECK(some.sizes() == at::IntArrayRef({2, 2}));
    CHECK(some[0][0].item<float>() == 4);
    return some.neg();
  });
  CHECK(at::equal(out, at::tensor({-0.F, -1.F, 2.F, 3.F, -4.F, -5.F, 6.F, 7.F}).view({4, 2})));
  CHECK(at::equal(all, at::arange(8, at::kFloat).view({4, 2})));
}

TEST_CASE("no rows are no copy, and all rows are the batch itself") {
  at::Tensor const all = at::ones({3, 2});
  CHECK(change_rows(all, {}, negative).is_same(all));
  change_rows(all, {0, 1, 2}, [&](at::Tensor const& some) {
    CHECK(some.is_same(all));
    return some.neg();
  });
}

std::vector<Patch> const patches{{.from = 1, .box = {1, 2, 3, 4}, .to = 0, .top = 5, .left = 1},
                                 {.from = 0, .box = {0, 0, 8, 9}, .to = 1, .top = 0, .left = 0},
                                 {.from = 2, .box = {2, 3, 0, 5}, .to = 2, .top = 1, .left = 1},
                                 {.from = 0, .box = {7, 8, 1, 1}, .to = 2, .top = 7, .left = 8}};

TEST_CASE("patches are copied to the bytes that operators give, in any order of memory") {
  for (bool const bytes : {true, false}) {
    at::Tensor const in = images({3, 2, 8, 9}, 4, bytes);
    at::Tensor const expected = at::zeros_like(in);
    for (Patch const& each : patches) {
      for (std::int64_t y = 0; y < each.box.height; ++y) {
        for (std::int64_t x = 0; x < each.box.width; ++x) {
          expected.select(0, each.to)
              .select(1, each.top + y)
              .select(1, each.left + x)
              .copy_(
                  in.select(0, each.from).select(1, each.box.top + y).select(1, each.box.left + x));
        }
      }
    }
    for (auto const format : {at::MemoryFormat::Contiguous, at::MemoryFormat::ChannelsLast}) {
      for (auto const other : {at::MemoryFormat::Contiguous, at::MemoryFormat::ChannelsLast}) {
        at::Tensor const out = at::zeros_like(in).contiguous(other);
        frugal::detail::paste(in.contiguous(format), out, patches);
        CHECK(at::equal(out, expected));
      }
    }
    at::Tensor const out = at::zeros_like(in);
    frugal::detail::paste_by_operators(in, out, patches);
    CHECK(at::equal(out, expected));
  }
}

TEST_CASE("the result of a batch in channels-last memory is one, too") {
  at::Tensor const in = images({3, 2, 8, 9}, 4, true).contiguous(at::MemoryFormat::ChannelsLast);
  at::Tensor const out = frugal::detail::empty_images(in, 4, 5);
  CHECK(out.sizes() == at::IntArrayRef({3, 2, 4, 5}));
  CHECK(out.is_contiguous(at::MemoryFormat::ChannelsLast));
}

TEST_CASE("name, version and settings are in the text") {
  CHECK(image_transform_text("Crop", 2, std::int64_t{8}, true, 0.5) == "Crop/2(8,1,0.5,)");
  CHECK(image_transform_text("Mean", 1, std::vector{1.0, 2.5}, std::array{3.0}) ==
        "Mean/1([1,2.5,],[3,],)");
}

TEST_CASE("numbers that differ in their last bit differ in the text") {
  CHECK(image_transform_text("x", 1, 0.1) != image_transform_text("x", 1, std::nextafter(0.1, 1)));
  CHECK(image_transform_text("x", 1, ~std::uint64_t{0}) !=
        image_transform_text("x", 1, ~std::uint64_t{0} - 1));
}

TEST_CASE("lists of numbers do not run into each other") {
  using Numbers = std::vector<double>;
  CHECK(image_transform_text("x", 1, Numbers{1, 2}, Numbers{3}) !=
        image_transform_text("x", 1, Numbers{1}, Numbers{2, 3}));
}

}  // namespace frugal_test::data_image_image_batch
