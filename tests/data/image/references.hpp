// SPDX-License-Identifier: Apache-2.0
// The cases of tests/reference/image_transforms.json: what torchvision gives.
#pragma once

#include <doctest/doctest.h>

#include <ATen/ATen.h>

#include <cstdint>
#include <string>
#include <vector>

#include <frugal/core/source/sample_set.hpp>

#include "support/reference.hpp"

namespace frugal_test::image {

using support::Json;

/// Keys of samples 0, 1, ... of an epoch.
inline std::vector<frugal::SampleKey> keys_of(std::uint64_t count, std::uint64_t first = 0,
                                              std::uint64_t epoch = 0, std::uint64_t seed = 5) {
  std::vector<frugal::SampleKey> keys;
  for (std::uint64_t i = 0; i < count; ++i) keys.push_back({first + i, seed, epoch});
  return keys;
}

/// Images as make_image_transforms.py has them: bytes, or floats from 0 to 1.
inline at::Tensor images(std::vector<std::int64_t> const& shape, std::uint32_t seed, bool bytes) {
  at::Tensor const all = support::table(shape, 77, seed).add_(1).mul_(128).floor_().to(at::kByte);
  return bytes ? all : all.to(at::kFloat).div_(255);
}

/// Runs `transform(images, arguments)` for every case of an operation, in both orders of memory,
/// and compares: floats within 2e-6 of a value up to 1, bytes within `bytes_within`.
template <class Transform>
void compare(std::string const& op, Transform&& transform, double bytes_within = 0,
             double floats_within = 2e-6) {
  Json const file = support::reference("image_transforms.json");
  int compared = 0;
  for (Json const& each : file.at("cases")) {
    if (each.at("op") != op) continue;
    bool const bytes = each.at("dtype") == "uint8";
    CAPTURE(each.at("dtype").dump() + each.at("input").dump() + each.at("arguments").dump());
    at::Tensor const in = images(support::shape_in(each.at("input")), each.at("seed"), bytes);
    at::Tensor const expected =
        support::tensor_in(each.at("values"), support::shape_in(each.at("shape")));
    for (auto const format : {at::MemoryFormat::Contiguous, at::MemoryFormat::ChannelsLast}) {
      at::Tensor const given = in.contiguous(format);
      at::Tensor const out = transform(given, each.at("arguments"));
      REQUIRE(out.sizes() == expected.sizes());
      double const bound = out.is_floating_point() ? floats_within : bytes_within;
      CHECK(support::distance(out, expected) <= bound);
      CHECK(at::equal(given, in));
    }
    ++compared;
  }
  CHECK(compared > 0);
}

}  // namespace frugal_test::image
