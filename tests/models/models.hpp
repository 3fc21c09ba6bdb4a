// SPDX-License-Identifier: Apache-2.0
// Models filled as tests/reference/models.json says, and compared with it.
#pragma once

#include <doctest/doctest.h>

#include <torch/nn/module.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <map>
#include <string>
#include <vector>

#include "support/reference.hpp"

namespace frugal_test::models {

using support::Json;

inline std::map<std::string, at::Tensor> state_of(torch::nn::Module const& module) {
  std::map<std::string, at::Tensor> all;
  for (auto const& each : module.named_parameters()) all.emplace(each.key(), each.value());
  for (auto const& each : module.named_buffers()) all.emplace(each.key(), each.value());
  return all;
}

/// The names and shapes of a module are those of the file, and its values are filled in by their rule.
inline void fill(torch::nn::Module& module, Json const& state, std::uint32_t stream) {
  at::NoGradGuard const no_gradients;
  auto const found = state_of(module);
  REQUIRE(found.size() == state.size());
  std::uint32_t number = 0;
  for (Json const& each : state) {
    std::string const name = each.at(0);
    CAPTURE(name);
    REQUIRE(found.contains(name));
    at::Tensor const& tensor = found.at(name);
    std::vector<std::int64_t> const shape = support::shape_in(each.at(1));
    REQUIRE(tensor.sizes() == at::IntArrayRef(shape));
    std::uint32_t const at = number++;
    if (!tensor.is_floating_point()) continue;
    at::Tensor const made = support::table(shape, stream, at);
    if (tensor.dim() > 1) {
      tensor.copy_(made * std::sqrt(3.0 / (static_cast<double>(tensor.numel()) /
                                           static_cast<double>(tensor.size(0)))));
    } else if (name.ends_with("running_var") || name.ends_with("weight")) {
      tensor.copy_(made * 0.25 + 1);
    } else {
      tensor.copy_(made * 0.1);
    }
  }
}

inline at::Tensor integers_in(Json const& rows) {
  std::vector<at::Tensor> all;
  for (Json const& row : rows) all.push_back(at::tensor(row.get<std::vector<std::int64_t>>()));
  return at::stack(all);
}

/// The largest difference from numbers of the file.
inline double farthest(at::Tensor const& found, Json const& expected) {
  return support::distance(found, support::tensor_in(expected, found.sizes().vec(), at::kDouble));
}

/// The largest difference of the sums over gradients, as a share of the largest sum.
inline double farthest_gradient(torch::nn::Module& module, Json const& state,
                                at::Tensor const& output, Json const& expected) {
  (output * support::table(output.sizes().vec(), 90, 0)).mean().backward();
  std::map<std::string, std::uint32_t> place;
  std::uint32_t number = 0;
  for (Json const& each : state) place[each.at(0)] = number++;
  auto const found = state_of(module);
  double largest = 0, difference = 0;
  for (auto const& [name, sum] : expected.items()) {
    at::Tensor const gradient = found.at(name).grad();
    at::Tensor const by = support::table(gradient.sizes().vec(), 91, place.at(name));
    double const made = (gradient * by).to(at::kDouble).sum().item<double>();
    difference = std::max(difference, std::abs(made - sum.get<double>()));
    largest = std::max(largest, std::abs(sum.get<double>()));
  }
  return difference / largest;
}

/// FNV-1a over names and shapes, as the file's.
inline std::string fingerprint(torch::nn::Module const& module) {
  std::uint64_t h = 0xCBF29CE484222325U;
  for (auto const& [name, tensor] : state_of(module)) {
    std::string line = name + " ";
    for (std::int64_t i = 0; i < tensor.dim(); ++i) {
      line += (i == 0 ? "" : ",") + std::to_string(tensor.size(i));
    }
    for (char const byte : line + "\n") {
      h = (h ^ static_cast<unsigned char>(byte)) * 0x100000001B3U;
    }
  }
  char text[17];
  std::snprintf(text, sizeof text, "%016llx", static_cast<unsigned long long>(h));
  return text;
}

/// Names and shapes of a model of the published size.
inline void check_real(torch::nn::Module const& module, std::string const& name) {
  Json const file = support::reference("models.json");
  Json const& real = support::case_named(file.at("real"), name);
  CAPTURE(name);
  CHECK(state_of(module).size() == real.at("tensors").get<std::size_t>());
  CHECK(fingerprint(module) == real.at("fingerprint").get<std::string>());
}

}  // namespace frugal_test::models
