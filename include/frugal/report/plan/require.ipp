// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/report/plan/require.hpp>

#include <frugal/base/number_text.hpp>
#include <frugal/error.hpp>
#include <frugal/inline.hpp>

#include <algorithm>
#include <numeric>
#include <utility>

namespace frugal::plan::detail {

FRUGAL_INLINE void refuse(std::string_view input, double value, std::string_view rule) {
  throw SettingsError(
      {.what = "an input of the plan is out of range",
       .where = std::string(input),
       .why = "it is " + frugal::detail::general(value, 6) + ", and must be " + std::string(rule),
       .fix = "Correct the input."});
}

FRUGAL_INLINE std::string lower(std::string_view text) {
  std::string out(text);
  for (char& c : out) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return out;
}

FRUGAL_INLINE std::vector<std::string> words_of(std::string_view text) {
  std::vector<std::string> words(1);
  for (char const c : lower(text)) {
    if ((c >= 'a' && c <= 'z') || (c >= '0' && c <= '9')) {
      words.back() += c;
    } else if (!words.back().empty()) {
      words.emplace_back();
    }
  }
  if (words.back().empty()) words.pop_back();
  return words;
}

FRUGAL_INLINE std::size_t edits_between(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 0; i < a.size(); ++i) {
    std::size_t diagonal = std::exchange(row[0], i + 1);
    for (std::size_t j = 0; j < b.size(); ++j) {
      std::size_t const replaced = diagonal + (a[i] == b[j] ? 0 : 1);
      diagonal = row[j + 1];
      row[j + 1] = std::min({replaced, row[j] + 1, diagonal + 1});
    }
  }
  return row.back();
}

FRUGAL_INLINE std::string near_names(std::string_view wanted,
                                     std::vector<std::string> const& known) {
  if (known.empty()) return "there are none";
  // Longer names have no near ones, and the distance is quadratic.
  std::string const sought = lower(wanted.substr(0, 80));
  std::vector<std::string> const sought_words = words_of(sought);
  std::vector<std::pair<std::size_t, std::size_t>> near;  // edits, and the place in `known`
  for (std::size_t at = 0; at < known.size(); ++at) {
    std::vector<std::string> const words = words_of(known[at]);
    bool const shares_word = std::any_of(words.begin(), words.end(), [&](std::string const& word) {
      return std::find(sought_words.begin(), sought_words.end(), word) != sought_words.end();
    });
    std::size_t const edits = edits_between(sought, lower(known[at]));
    if (shares_word || edits <= 2 || edits * 3 <= known[at].size()) {
      near.emplace_back(shares_word ? 0 : edits, at);
    }
  }
  std::sort(near.begin(), near.end());
  // Next to names that share a word, such as "A100 40GB" for "A100", others only distract.
  if (!near.empty() && near.front().first == 0) {
    std::erase_if(near, [](auto const& each) { return each.first != 0; });
  }
  if (near.size() > 4) near.resize(4);
  std::string text = near.empty() ? "known are " : "near it are ";
  char const* separator = "";
  auto const add = [&](std::string const& name) { text += std::exchange(separator, ", ") + name; };
  for (auto const& each : near) add(known[each.second]);
  if (near.empty()) std::for_each(known.begin(), known.end(), add);
  return text;
}

}  // namespace frugal::plan::detail
