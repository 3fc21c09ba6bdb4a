// SPDX-License-Identifier: Apache-2.0
// Reads tests/reference: values that frugal did not compute.
#pragma once

#include <ATen/ATen.h>

#include <cstdint>
#include <fstream>
#include <initializer_list>
#include <limits>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace frugal_test::support {

using Json = nlohmann::json;

/// One file of tests/reference; parsed at each call.
inline Json reference(std::string const& name) {
  std::ifstream file(std::string(FRUGAL_TEST_DIR) + "/reference/" + name);
  return Json::parse(file);
}

/// The case with that name in a reference file.
inline Json const& case_named(Json const& cases, std::string const& name) {
  for (Json const& each : cases) {
    if (each.at("name") == name) return each;
  }
  throw std::runtime_error("no reference case is named " + name);
}

inline std::vector<std::int64_t> shape_in(Json const& shape) {
  return shape.get<std::vector<std::int64_t>>();
}

/// Row-major values as a tensor. A float32 is read as a double and narrowed.
inline at::Tensor tensor_in(Json const& values, std::vector<std::int64_t> const& shape,
                            at::ScalarType type = at::kFloat) {
  return at::tensor(values.get<std::vector<double>>(), at::kDouble).view(shape).to(type);
}

/// The largest absolute difference, NaN if there is one in either.
inline double distance(at::Tensor const& a, at::Tensor const& b) {
  return (a.detach().to(at::kDouble) - b.detach().to(at::kDouble)).abs().max().item<double>();
}

inline std::uint32_t mix(std::uint32_t h) {
  h ^= h >> 16;
  h *= 0x85EBCA6BU;
  h ^= h >> 13;
  h *= 0xC2B2AE35U;
  return h ^ h >> 16;
}

/// The number formula of tests/reference, in [-1, 1).
inline double number(std::initializer_list<std::uint32_t> words) {
  std::uint32_t h = 0x9E3779B9U;
  for (std::uint32_t const word : words) h = mix(h ^ word);
  return (static_cast<double>(h >> 8) - 8388608.0) / 8388608.0;
}

/// Row-major float32 tensor whose element i is number(a, b, i).
inline at::Tensor table(std::vector<std::int64_t> const& shape, std::uint32_t a, std::uint32_t b) {
  at::Tensor const out = at::empty(shape, at::kFloat);
  float* const at = out.mutable_data_ptr<float>();
  for (std::int64_t i = 0; i < out.numel(); ++i) {
    at[i] = static_cast<float>(number({a, b, static_cast<std::uint32_t>(i)}));
  }
  return out;
}

}  // namespace frugal_test::support
