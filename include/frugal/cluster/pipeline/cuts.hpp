// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <numeric>
#include <string>
#include <vector>

#include <frugal/error.hpp>

namespace frugal::detail {

/// Where stages begin: the first layer of each, and the number of layers.
///
/// Cuts a list so that the largest stage has as few elements of parameters as possible. `elements`:
/// of each layer; a stage has at least one layer with parameters. ModuleError if these are too few.
inline std::vector<std::size_t> balanced_cuts(std::vector<std::int64_t> const& elements,
                                              std::size_t stages) {
  std::size_t const layers = elements.size();
  std::vector<std::int64_t> before(layers + 1);
  std::partial_sum(elements.begin(), elements.end(), before.begin() + 1);
  constexpr std::int64_t never = std::numeric_limits<std::int64_t>::max();
  // least[s][n]: the largest of s stages over the first n layers; cut[s][n]: where the last one begins.
  std::vector<std::vector<std::int64_t>> least(stages + 1,
                                               std::vector<std::int64_t>(layers + 1, never));
  std::vector<std::vector<std::size_t>> cut(stages + 1, std::vector<std::size_t>(layers + 1));
  least[0][0] = 0;
  for (std::size_t s = 1; s <= stages; ++s) {
    for (std::size_t n = 1; n <= layers; ++n) {
      for (std::size_t begin = s - 1; begin < n; ++begin) {
        std::int64_t const last = before[n] - before[begin];
        if (last == 0 || least[s - 1][begin] == never) continue;
        std::int64_t const most = std::max(last, least[s - 1][begin]);
        // Of equal ones the later cut: layers without parameters follow the layer before them.
        if (most <= least[s][n]) {
          least[s][n] = most;
          cut[s][n] = begin;
        }
      }
    }
  }
  if (least[stages][layers] == never) {
    auto const trained =
        std::ranges::count_if(elements, [](std::int64_t each) { return each != 0; });
    throw ModuleError({.what = std::to_string(stages) + " stages, and " + std::to_string(trained) +
                               " layers with parameters that are trained",
                       .where = "Pipeline",
                       .why = "each stage trains at least one layer",
                       .fix = "Start fewer processes, or cut the module into more layers."});
  }
  std::vector<std::size_t> begins(stages + 1, layers);
  for (std::size_t s = stages; s > 0; --s) begins[s - 1] = cut[s][begins[s]];
  return begins;
}

/// The same of stages whose numbers of layers are given. SettingsError unless they are all layers,
/// and each stage trains one.
inline std::vector<std::size_t> given_cuts(std::vector<std::int64_t> const& elements,
                                           std::vector<int> const& layers, std::size_t stages) {
  std::vector<std::size_t> begins{0};
  bool fits = layers.size() == stages;
  for (int const count : layers) {
    std::size_t const begin = begins.back();
    std::size_t const end = begin + static_cast<std::size_t>(std::max(count, 0));
    begins.push_back(end);
    fits = fits && count > 0 && end <= elements.size() &&
           std::any_of(elements.begin() + static_cast<std::ptrdiff_t>(begin),
                       elements.begin() + static_cast<std::ptrdiff_t>(end),
                       [](std::int64_t each) { return each != 0; });
  }
  if (fits && begins.back() == elements.size()) return begins;
  std::string text;
  for (int const count : layers) text += (text.empty() ? "" : ", ") + std::to_string(count);
  throw SettingsError({.what = "Pipeline::layers is {" + text + "}",
                       .where = "Pipeline",
                       .why = "there are " + std::to_string(stages) + " stages and " +
                              std::to_string(elements.size()) +
                              " layers, and each stage trains at least one of them",
                       .fix = "Give each stage its number of layers, in the order of the list, or "
                              "leave it out: stages then have about as many parameters each."});
}

}  // namespace frugal::detail
