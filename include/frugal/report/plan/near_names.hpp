// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace frugal::plan::detail {

/// Whatever the locale: Turkish has another small letter for I, and MIG would not be found.
std::string lower(std::string_view text);

/// The letters and digits of a text between everything else, in lower case: "nvidia", "a100",
/// "sxm4", "80gb".
std::vector<std::string> words_of(std::string_view text);

/// Levenshtein distance: how many characters to insert, delete or replace.
std::size_t edits_between(std::string_view a, std::string_view b);

/// For an error about an unknown name: "near it are a, b", or all names if none is near.
std::string near_names(std::string_view wanted, std::vector<std::string> const& known);

}  // namespace frugal::plan::detail

#ifndef FRUGAL_COMPILED
#include <frugal/report/plan/near_names.ipp>
#endif
