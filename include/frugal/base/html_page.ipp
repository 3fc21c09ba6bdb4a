// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/base/html_page.hpp>

#include <frugal/base/html_asset.hpp>
#include <frugal/inline.hpp>

namespace frugal::html {

FRUGAL_INLINE void Page::section(std::string_view id, std::string_view title) {
  end_section();
  begin("section").add("id", id).add("title", title).key("parts").array();
  open_ = true;
}

FRUGAL_INLINE void Page::list(std::vector<std::string> const& items) {
  begin("list").key("items").array();
  for (std::string const& each : items) json_.value(each);
  json_.end().end();
}

FRUGAL_INLINE void Page::figures(std::vector<Figure> const& items) {
  begin("figures").key("items").array();
  for (Figure const& each : items) {
    json_.object().add("name", each.name).add("value", each.value);
    if (!each.small.empty()) json_.add("small", each.small);
    json_.end();
  }
  json_.end().end();
}

FRUGAL_INLINE void Page::bars(std::vector<Bar> const& items, std::string_view note) {
  begin("bars").key("items").array();
  for (Bar const& each : items) {
    json_.object().add("name", each.name).add("value", each.value);
    json_.add("from", each.from).add("to", each.to).add("kind", each.kind);
    if (!each.note.empty()) json_.add("note", each.note);
    json_.end();
  }
  json_.end();
  if (!note.empty()) json_.add("note", note);
  json_.end();
}

FRUGAL_INLINE void Page::twins(std::vector<Twins> const& items) {
  begin("twins").key("items").array();
  for (Twins const& each : items) {
    json_.object().add("removed", each.removed).add("how", each.how).add("kept", each.kept);
    if (!each.through.empty()) json_.add("through", each.through);
    if (each.texts) {
      json_.key("texts").array().value(each.texts->first).value(each.texts->second).end();
    }
    json_.end();
  }
  json_.end().end();
}

FRUGAL_INLINE void Page::write(detail::JsonWriter& json, Table const& table) {
  json.object().add("kind", "table").add("title", table.title).add("texts", table.texts);
  if (!table.folded.empty()) json.add("folded", table.folded);
  json.key("head").array();
  for (std::string const& each : table.head) json.value(each);
  json.end().key("rows").array();
  for (Row const& row : table.rows) {
    json.array();
    for (Cell const& each : row) {
      if (each.mark.empty() && !each.wraps) {
        json.value(each.text);
        continue;
      }
      json.object().add("text", each.text);
      if (!each.mark.empty()) json.add("mark", each.mark);
      if (each.wraps) json.add("wrap", true);
      json.end();
    }
    json.end();
  }
  json.end().end();
}

FRUGAL_INLINE std::string Page::html(std::string_view title, std::string_view subtitle) && {
  end_section();
  json_.end().add("title", title).add("subtitle", subtitle);
  std::string const json = json_.str();
  std::string text(page_asset);
  text.reserve(text.size() + json.size() + 64);
  // No text can end the element: outside of strings JSON has no "<".
  for (char const c : json) c == '<' ? text += "\\u003c" : text += c;
  return text + "</script>\n</body>\n</html>\n";
}

}  // namespace frugal::html
