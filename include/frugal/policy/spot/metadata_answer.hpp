// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/error.hpp>

#include <algorithm>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace frugal {

namespace detail {

inline bool equal_ignoring_case(std::string_view a, std::string_view b) {
  auto const lower = [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; };
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [&](char x, char y) { return lower(x) == lower(y); });
}

inline bool is_printable(std::string_view text) {
  return std::all_of(text.begin(), text.end(), [](char c) { return c >= ' ' && c <= '~'; });
}

/// Foreign text made safe for a log: at most `most` characters of printable ASCII.
inline std::string printable(std::string_view text, std::size_t most = 200) {
  std::string out(text.substr(0, most));
  for (char& c : out) {
    if (c < ' ' || c > '~') c = '?';
  }
  return text.size() > most ? out + "..." : out;
}

inline std::string_view trimmed(std::string_view text) {
  constexpr std::string_view blanks = " \t\r\n";
  std::size_t const first = text.find_first_not_of(blanks);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(blanks) - first + 1);
}

}  // namespace detail

/// The response of a metadata service.
struct MetadataAnswer {
  int status = 0;  ///< HTTP status: 200, 404
  std::string body;
  std::vector<std::pair<std::string, std::string>> headers;  ///< in order of arrival

  /// The value of the first header with that name, ignoring case.
  std::optional<std::string_view> header(std::string_view name) const {
    for (auto const& [key, value] : headers) {
      if (detail::equal_ignoring_case(key, name)) return value;
    }
    return {};
  }

  /// Takes a raw header line. A status line begins a new response: the one before was 100 Continue.
  void add_header_line(std::string_view line) {
    if (line.starts_with("HTTP/")) headers.clear();
    std::size_t const colon = line.find(':');
    if (colon == std::string_view::npos || line.starts_with("HTTP/")) return;
    headers.emplace_back(line.substr(0, colon), detail::trimmed(line.substr(colon + 1)));
  }
};

namespace detail {

/// The base address of a metadata service, without a trailing slash.
inline std::string checked_base(std::string base) {
  while (base.ends_with('/')) base.pop_back();
  if (!base.starts_with("http://") || base.size() == 7 || !is_printable(base) ||
      base.find_first_of(" ?#@") != std::string::npos) {
    throw SettingsError({.what = "no address of a metadata service",
                         .where = printable(base),
                         .why = "it has to be http:// and a host",
                         .fix = "Give the vendor's address, which is the default."});
  }
  return base;
}

/// The error for an HTTP status without a helpful meaning in the vendor's documentation.
inline MetadataError refused(std::string const& url, MetadataAnswer const& answer,
                             std::string fix) {
  std::string why = "it answered " + std::to_string(answer.status);
  if (!answer.body.empty()) why += " \"" + printable(trimmed(answer.body), 80) + '"';
  return MetadataError({.what = "the metadata service refused",
                        .where = url,
                        .why = std::move(why),
                        .fix = std::move(fix)});
}

/// The error for a malformed response.
inline MetadataError nonsense(std::string const& url, std::string why) {
  return MetadataError(
      {.what = "the metadata service gave an invalid answer",
       .where = url,
       .why = std::move(why),
       .fix = "Query the address by hand with curl; something else may listen there."});
}

}  // namespace detail

}  // namespace frugal
