// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/base/json_writer.hpp>

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace frugal::html {

/// A cell of a table.
struct Cell {
  std::string text;
  std::string mark{};  ///< behind it, in bold
  bool wraps = false;  ///< a long text

  Cell(std::string of, std::string marked = {}) : text(std::move(of)), mark(std::move(marked)) {}
  Cell(char const* of) : text(of) {}

  static Cell long_text(std::string of) {
    Cell cell(std::move(of));
    cell.wraps = true;
    return cell;
  }
};
using Row = std::vector<Cell>;

/// A table that scrolls by itself where it is wider than the page.
struct Table {
  std::string title;  ///< for screen readers
  std::vector<std::string> head;
  std::vector<Row> rows;
  std::size_t texts = 1;  ///< the first columns are texts, and the others numbers
  std::string folded{};   ///< it is shown on a click on these words
};

/// Name and value, large: what a reader wants to know first.
struct Figure {
  std::string name, value, small{};
};

/// A horizontal bar from one share of the width to another. Its text has its number.
struct Bar {
  std::string name, value;
  double from = 0, to = 0;
  char const* kind = "total";  ///< or "saved", "more", "planned"
  std::string note{};
};

/// Two samples, of which one is removed, and their texts.
struct Twins {
  std::string removed, how, kept, through{};
  std::optional<std::pair<std::string, std::string>> texts{};
};

/// Collects what a page shows, as JSON that the page's own script (html_asset.hpp) draws. No text needs to be escaped.
class Page {
 public:
  Page() { json_.object().key("parts").array(); }

  /// What follows is in a section with a heading, until the next one or the end.
  void section(std::string_view id, std::string_view title);

  void text(std::string_view text) { add("text", text); }
  void note(std::string_view text) { begin("text").add("text", text).add("note", true).end(); }
  void code(std::string_view title, std::string_view text) {
    begin("code").add("title", title).add("text", text).end();
  }
  void list(std::vector<std::string> const& items);
  void figures(std::vector<Figure> const& items);
  void bars(std::vector<Bar> const& items, std::string_view note = {});
  void twins(std::vector<Twins> const& items);
  void table(Table const& table) { write(json_, table); }
  static void write(detail::JsonWriter& json, Table const& table);

  /// Begins a part of a kind that the script knows: an object, which the caller ends.
  detail::JsonWriter& begin(std::string_view kind) { return json_.object().add("kind", kind); }

  /// The whole document. Nothing is fetched, and no script runs but the page's own.
  std::string html(std::string_view title, std::string_view subtitle) &&;

 private:
  void add(std::string_view kind, std::string_view text) { begin(kind).add("text", text).end(); }
  void end_section() {
    if (std::exchange(open_, false)) json_.end().end();
  }

  detail::JsonWriter json_;
  bool open_ = false;
};

}  // namespace frugal::html

#ifndef FRUGAL_COMPILED
#include <frugal/base/html_page.ipp>
#endif
