// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/base/folder.hpp>
#include <frugal/error.hpp>

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <initializer_list>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

namespace frugal {

namespace detail {

/// The most shards that one pattern may give; more are taken for a typing error.
constexpr std::size_t most_shards = 1'000'000;

/// The numbers of "000..146", as wide as the wider of the two if one begins with 0; nothing for
/// other texts.
inline std::vector<std::string> numbers_between(std::string_view range) {
  std::size_t const dots = range.find("..");
  if (dots == std::string_view::npos) return {};
  auto const number = [](std::string_view text, std::uint64_t& out) {
    auto const [end, error] = std::from_chars(text.data(), text.data() + text.size(), out);
    return !text.empty() && error == std::errc() && end == text.data() + text.size();
  };
  std::string_view const from = range.substr(0, dots);
  std::string_view const to = range.substr(dots + 2);
  std::uint64_t first = 0, last = 0;
  if (!number(from, first) || !number(to, last)) return {};
  bool const padded =
      (from.size() > 1 && from.front() == '0') || (to.size() > 1 && to.front() == '0');
  std::size_t const width = padded ? std::max(from.size(), to.size()) : 1;
  std::uint64_t const count = (first < last ? last - first : first - last);
  if (count >= most_shards) {
    throw SettingsError({.what = "a pattern gives too many shards",
                         .where = "{" + std::string(range) + "}",
                         .why = "at most " + std::to_string(most_shards) + " are read",
                         .fix = "Correct the numbers."});
  }
  std::vector<std::string> out;
  for (std::uint64_t i = 0; i <= count; ++i) {
    std::string digits = std::to_string(first < last ? first + i : first - i);
    out.push_back(std::string(width - std::min(width, digits.size()), '0') + digits);
  }
  return out;
}

}  // namespace detail

/// The names that a pattern with braces stands for, in the order of the shell:
/// "train-{000..002}.tar", "{a,b}-{0..9}.tar". Braces do not nest. A brace without an end, or with
/// neither a comma nor a range, stands for itself.
inline std::vector<std::string> expand_braces(std::string const& pattern) {
  for (std::size_t open = pattern.find('{'); open != std::string::npos;
       open = pattern.find('{', open + 1)) {
    std::size_t const close = pattern.find('}', open);
    if (close == std::string::npos) break;
    std::string const inside = pattern.substr(open + 1, close - open - 1);
    std::vector<std::string> choices = detail::numbers_between(inside);
    if (choices.empty() && inside.find(',') != std::string::npos) {
      for (std::size_t at = 0; at <= inside.size();) {
        std::size_t const end = std::min(inside.find(',', at), inside.size());
        choices.push_back(inside.substr(at, end - at));
        at = end + 1;
      }
    }
    if (choices.empty()) continue;
    std::vector<std::string> const rests = expand_braces(pattern.substr(close + 1));
    if (choices.size() > detail::most_shards / rests.size()) {
      throw SettingsError({.what = "a pattern gives too many shards",
                           .where = pattern,
                           .why = "at most " + std::to_string(detail::most_shards) + " are read",
                           .fix = "Correct the numbers."});
    }
    std::vector<std::string> out;
    for (std::string const& choice : choices) {
      for (std::string const& rest : rests) out.push_back(pattern.substr(0, open) + choice + rest);
    }
    return out;
  }
  return {pattern};
}

/// The shards that a text names: a file, a pattern with braces, or a folder, whose files with one
/// of the endings are taken in the order of their names.
///
/// Errors  DataError for a folder without such files.
inline std::vector<std::filesystem::path> shard_paths(
    std::string const& pattern, std::initializer_list<std::string_view> endings) {
  std::error_code ignored;
  std::vector<std::filesystem::path> out;
  if (!std::filesystem::is_directory(pattern, ignored)) {
    for (std::string& each : expand_braces(pattern)) out.emplace_back(std::move(each));
    return out;
  }
  for (std::filesystem::path const& each : entries_of(pattern)) {
    std::string const name = each.filename().string();
    bool const fits = std::any_of(endings.begin(), endings.end(),
                                  [&](std::string_view ending) { return name.ends_with(ending); });
    if (fits && !name.starts_with('.')) out.push_back(each);
  }
  if (out.empty()) {
    std::string all;
    for (std::string_view const ending : endings) {
      all += (all.empty() ? "" : ", ") + std::string(ending);
    }
    throw DataError({.what = "the folder holds no shards",
                     .where = pattern,
                     .why = "no name ends in one of: " + all,
                     .fix = "Check the path, or name the files."});
  }
  return out;
}

}  // namespace frugal
