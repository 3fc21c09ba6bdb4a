// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <doctest/doctest.h>

#include <nlohmann/json.hpp>

#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <frugal/base/html_page.hpp>

// What pages show, as the JSON that their script draws.
namespace frugal_test::page_data {

using nlohmann::json;

inline json data_of(std::string const& html) {
  constexpr std::string_view head = "<script type=\"application/json\" id=\"data\">";
  constexpr std::string_view tail = "</script>\n</body>\n</html>\n";
  std::size_t const at = html.find(head);
  REQUIRE(at != html.npos);
  REQUIRE(html.ends_with(tail));
  std::string const text =
      html.substr(at + head.size(), html.size() - at - head.size() - tail.size());
  // No text can end the element, nor begin a comment.
  CHECK(text.find('<') == text.npos);
  return json::parse(text);
}
inline json data_of(frugal::html::Page page) { return data_of(std::move(page).html("", "")); }

/// The parts of a kind, in their order, whether in a section or before all of them.
inline std::vector<json> parts(json const& data, std::string const& kind) {
  std::vector<json> found;
  for (json const& each : data.at("parts")) {
    if (each.at("kind") == kind) found.push_back(each);
    if (each.at("kind") != "section") continue;
    for (json& inner : parts(each, kind)) found.push_back(std::move(inner));
  }
  return found;
}

/// The ids of the sections, in their order.
inline std::vector<std::string> sections(json const& data) {
  std::vector<std::string> ids;
  for (json const& each : parts(data, "section")) ids.push_back(each.at("id"));
  return ids;
}
/// A section, which has "parts" as a page does; null if there is none.
inline json section(json const& data, std::string const& id) {
  for (json const& each : parts(data, "section")) {
    if (each.at("id") == id) return each;
  }
  return nullptr;
}

/// The first table.
inline json table(json const& data) {
  auto const all = parts(data, "table");
  REQUIRE(!all.empty());
  return all.front();
}
/// The row of the first table whose first cell has this text.
inline json row(json const& data, std::string const& name) {
  json const rows = table(data).at("rows");
  for (json const& each : rows) {
    if (each[0] == name || (each[0].is_object() && each[0].at("text") == name)) return each;
  }
  return nullptr;
}
/// {value, small} of a key figure; null if there is none.
inline json figure(json const& data, std::string const& name) {
  for (json const& part : parts(data, "figures")) {
    for (json const& each : part.at("items")) {
      if (each.at("name") == name) return {each.at("value"), each.value("small", "")};
    }
  }
  return nullptr;
}
/// The bar of this name in the first part of bars that has one; null if there is none.
inline json bar(json const& data, std::string const& name) {
  for (json const& part : parts(data, "bars")) {
    for (json const& each : part.at("items")) {
      if (each.at("name") == name) return each;
    }
  }
  return nullptr;
}
/// The chart of this title; null if there is none.
inline json chart(json const& data, std::string const& title) {
  for (json const& each : parts(data, "chart")) {
    if (each.at("title") == title) return each;
  }
  return nullptr;
}
/// Paragraphs, notes among them.
inline std::vector<std::string> texts(json const& data) {
  std::vector<std::string> found;
  for (json const& each : parts(data, "text")) found.push_back(each.at("text"));
  return found;
}
inline bool has(std::string const& text, std::string_view what) {
  return text.find(what) != text.npos;
}
inline bool says(json const& data, std::string_view what) {
  for (std::string const& each : texts(data)) {
    if (has(each, what)) return true;
  }
  return false;
}

}  // namespace frugal_test::page_data
