// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include <frugal/report/compare/results.hpp>

namespace frugal::detail {

/// The policies in a recipe's name: "AdamW + Schedule<Warmup<2> + Cosine>" has two.
std::vector<std::string> parts_of_name(std::string_view name);

/// What a row adds to the row before it: "+ BF16"; its whole name if it also lacks something.
std::string lever_name(std::string const& name, std::string const& before);

/// levers.json. Without a price the values are hours.
std::string waterfall_of(ComparisonResults const& of, std::string const& title);

}  // namespace frugal::detail

#ifndef FRUGAL_COMPILED
#include <frugal/report/compare/waterfall.ipp>
#endif
