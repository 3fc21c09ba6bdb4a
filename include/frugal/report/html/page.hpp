// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/base/html_text.hpp>

#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace frugal::html {

/// Collects the body of a page; every text given is escaped here, but for what `raw` is given.
class Page {
 public:
  using Row = std::vector<std::string>;  ///< of cells, already HTML

  static std::string escaped(std::string_view text) { return detail::as_html(text); }

  void raw(std::string_view html) { body_ += html; }
  std::string& text() { return body_; }
  void paragraph(std::string_view text, std::string_view kind = "");

  /// A landmark with its heading, until the next one or the end.
  void section(std::string_view id, std::string_view heading);
  void end_section() {
    if (std::exchange(open_, false)) body_ += "</section>\n";
  }

  /// A table that scrolls by itself where it is wider than the page. Numbers are right of texts:
  /// the first `texts` columns are texts.
  void table(std::string_view caption, std::vector<std::string> const& head,
             std::vector<Row> const& rows, std::size_t texts = 1);

  /// Name and value, large: what a reader wants to know first.
  void figures(std::vector<std::pair<std::string, std::string>> const& all);

  /// The whole document. Nothing is fetched, and no script runs but the page's own, which the
  /// policy names by its hash: a name that were not escaped could not run one either.
  std::string html(std::string_view title, std::string_view subtitle) &&;

 private:
  std::string body_;
  bool open_ = false;
};

}  // namespace frugal::html

#ifndef FRUGAL_COMPILED
#include <frugal/report/html/page.ipp>
#endif
