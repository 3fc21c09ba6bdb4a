// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/search/sampler/sobol.hpp>

#include <frugal/error.hpp>
#include <frugal/inline.hpp>
#include <frugal/search/trials/candidate.hpp>

#include <ATen/ATen.h>

#include <bit>
#include <optional>

namespace frugal::detail {

FRUGAL_INLINE std::vector<std::uint32_t> sobol_point(std::size_t dimensions, std::size_t index) {
  auto const count = static_cast<std::int64_t>(dimensions);
  at::Tensor state = at::zeros({count, static_cast<std::int64_t>(sobol_bits)},
                               at::TensorOptions().dtype(at::kLong).device(at::kCPU));
  at::_sobol_engine_initialize_state_(state, count);
  std::int64_t const* const directions = state.const_data_ptr<std::int64_t>();
  std::size_t const code = index ^ (index >> 1);
  std::vector<std::uint32_t> point(dimensions);
  for (std::size_t i = 0; i < dimensions; ++i) {
    for (std::size_t bit = 0; bit < sobol_bits; ++bit) {
      if (((code >> bit) & 1) == 0) continue;
      point[i] ^= static_cast<std::uint32_t>(directions[i * sobol_bits + bit]);
    }
  }
  return point;
}

FRUGAL_INLINE std::uint32_t scrambled(std::uint32_t number, Draw& draw) {
  std::uint32_t found = 0;
  for (std::size_t bit = sobol_bits; bit-- != 0;) {
    std::uint32_t const own = std::uint32_t{1} << bit;
    std::uint32_t const higher = ~(own | (own - 1));
    std::uint64_t const drawn = draw.bits();
    auto const row = (static_cast<std::uint32_t>(drawn) & higher) | own;
    auto const shift = static_cast<int>(drawn >> 63);
    if (((std::popcount(row & number) + shift) & 1) != 0) found |= own;
  }
  return found;
}

}  // namespace frugal::detail

namespace frugal {

FRUGAL_INLINE Candidate SobolSampler::suggest(SearchDomain const& domain, SearchHistory const&,
                                              std::size_t trial, std::uint64_t seed) const {
  std::size_t const dimensions = domain.settings.size() + 1;
  if (dimensions > detail::sobol_dimensions) {
    throw SettingsError(
        {.what = "the search space has " + std::to_string(dimensions - 1) + " settings",
         .where = "the sampler sobol",
         .why = "LibTorch has direction numbers for 21201 dimensions, one of "
                "them for the recipe",
         .fix = "Search fewer settings, or use RandomSampler."});
  }
  if (trial >> detail::sobol_bits != 0) {
    throw SettingsError({.what = "trial " + std::to_string(trial) + " has no point",
                         .where = "the sampler sobol",
                         .why = "LibTorch's sequence has 2^30 points",
                         .fix = "Use RandomSampler."});
  }
  std::vector<std::uint32_t> const point = detail::sobol_point(dimensions, trial);
  auto const unit = [&](std::size_t i) {
    std::uint32_t number = point[i];
    if (scramble) {
      Draw draw({.index = i, .seed = seed}, draw_stream("search.sobol"));
      number = detail::scrambled(number, draw);
    }
    return static_cast<double>(number) * 0x1.0p-30;
  };
  Candidate candidate{.recipe =
                          static_cast<std::size_t>(value_at(domain.recipe_choice(), unit(0)))};
  for (std::size_t i = 0; i < domain.settings.size(); ++i) {
    SearchedSetting const& setting = domain.settings[i];
    bool const applies = setting.applies_to(candidate.recipe);
    candidate.values.push_back(applies ? std::optional(value_at(setting.values, unit(i + 1)))
                                       : std::nullopt);
  }
  return candidate;
}

FRUGAL_INLINE std::string SobolSampler::text() const {
  return std::string(name) + (scramble ? ", scrambled" : "");
}

}  // namespace frugal
