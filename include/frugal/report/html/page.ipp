// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/report/html/page.hpp>

#include <frugal/inline.hpp>
#include <frugal/report/html/script.hpp>
#include <frugal/report/html/style.hpp>

namespace frugal::html {

FRUGAL_INLINE void Page::paragraph(std::string_view text, std::string_view kind) {
  body_ += kind.empty() ? "<p>" : "<p class=\"" + std::string(kind) + "\">";
  body_ += escaped(text) + "</p>\n";
}

FRUGAL_INLINE void Page::section(std::string_view id, std::string_view heading) {
  end_section();
  std::string const name(id);
  body_ += "<section id=\"" + name + "\" aria-labelledby=\"" + name + "-h\">\n<h2 id=\"" + name +
           "-h\">" + escaped(heading) + "</h2>\n";
  open_ = true;
}

FRUGAL_INLINE void Page::table(std::string_view caption, std::vector<std::string> const& head,
                               std::vector<Row> const& rows, std::size_t texts) {
  body_ += "<div class=\"scroll\" role=\"region\" tabindex=\"0\" aria-label=\"" + escaped(caption) +
           "\"><table class=\"t" + std::to_string(texts) + "\"><thead><tr>";
  for (std::string const& each : head) body_ += "<th scope=\"col\">" + escaped(each) + "</th>";
  body_ += "</tr></thead><tbody>\n";
  for (Row const& row : rows) {
    body_ += "<tr>";
    for (std::size_t i = 0; i < row.size(); ++i) {
      body_ += i == 0 ? "<th scope=\"row\">" + row[i] + "</th>" : "<td>" + row[i] + "</td>";
    }
    body_ += "</tr>\n";
  }
  body_ += "</tbody></table></div>\n";
}

FRUGAL_INLINE void Page::figures(std::vector<std::pair<std::string, std::string>> const& all) {
  body_ += "<dl class=\"figures\">\n";
  for (auto const& [name, value] : all) {
    body_ += "<div><dt>" + escaped(name) + "</dt><dd>" + value + "</dd></div>\n";
  }
  body_ += "</dl>\n";
}

FRUGAL_INLINE std::string Page::html(std::string_view title, std::string_view subtitle) && {
  end_section();
  return "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
         "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src "
         "'unsafe-inline'; script-src '" +
         std::string(script_hash) +
         "'; img-src data:; base-uri 'none'; form-action 'none'\">\n"

         "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
         "<meta name=\"color-scheme\" content=\"light dark\">\n"
         "<link rel=\"icon\" href=\"data:,\">\n<title>" +
         escaped(title) + "</title>\n<style>" + std::string(style) +
         "</style>\n</head>\n<body>\n<a class=\"skip\" href=\"#main\">Skip to the content</a>\n"
         "<header><p class=\"brand\">frugal</p><h1>" +
         escaped(title) + "</h1>\n<p class=\"sub\">" + escaped(subtitle) +
         "</p></header>\n<main id=\"main\">\n" + std::move(body_) +
         "</main>\n<footer><p>Written by frugal. One file: it loads nothing from "
         "elsewhere.</p></footer>\n<script>" +
         std::string(script) + "</script>\n</body>\n</html>\n";
}

}  // namespace frugal::html
