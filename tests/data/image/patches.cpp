// SPDX-License-Identifier: Apache-2.0
#include "references.hpp"

#include <frugal/data/image/patches.hpp>

#include <vector>

namespace frugal_test::image_patches {

using namespace frugal_test::image;
using frugal::Patch;

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

}  // namespace frugal_test::image_patches
