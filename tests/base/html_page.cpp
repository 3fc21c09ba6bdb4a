// SPDX-License-Identifier: Apache-2.0
// torch-free
#include <doctest/doctest.h>

#include <frugal/base/html_asset.hpp>
#include <frugal/base/html_page.hpp>
#include <frugal/base/utf8.hpp>

#include "support/page_data.hpp"

#include <cstddef>
#include <string>
#include <string_view>
#include <utility>

namespace frugal_test::base_html_page {

using namespace page_data;
using frugal::html::Cell;
using frugal::html::Page;

std::size_t count(std::string const& text, std::string_view what) {
  std::size_t found = 0;
  for (std::size_t at = 0; (at = text.find(what, at)) != text.npos; ++at) ++found;
  return found;
}

TEST_CASE("parts are in their order, and those behind a heading in its section") {
  Page page;
  page.text("first");
  page.section("one", "One");
  page.note("second");
  page.list({"a", "b"});
  page.section("two", "Two");
  page.code("Code", "int x;\n");
  json const data = data_of(std::move(page));
  CHECK(data.at("parts")[0] == json{{"kind", "text"}, {"text", "first"}});
  CHECK(sections(data) == std::vector<std::string>{"one", "two"});
  CHECK(section(data, "one").at("title") == "One");
  CHECK(section(data, "one").at("parts")[0].at("note") == true);
  CHECK(section(data, "one").at("parts")[1].at("items") == json{"a", "b"});
  CHECK(section(data, "two").at("parts")[0].at("text") == "int x;\n");
}

TEST_CASE("figures, bars and tables have what they were given, and nothing for what is empty") {
  Page page;
  page.figures({{"steps", "9", "1 epoch"}, {"cost", "$1.00"}});
  page.bars({{.name = "a", .value = "50%", .to = 0.5},
             {.name = "b", .value = "1", .from = 0.5, .to = 1, .kind = "more", .note = "n"}},
            "below");
  page.table({"Rows", {"x", "y"}, {{{"1", "winner"}, Cell::long_text("long")}, {"2", "z"}}, 2});
  page.table({.title = "T", .head = {"x"}, .rows = {}, .folded = "more"});
  page.twins({{.removed = "r", .how = "copy of", .kept = "k"},
              {.removed = "r", .how = "like", .kept = "k", .through = "t", .texts = {{"a", "b"}}}});
  json const data = data_of(std::move(page));
  CHECK(figure(data, "steps") == json{"9", "1 epoch"});
  CHECK(figure(data, "cost") == json{"$1.00", ""});
  CHECK(bar(data, "a") ==
        json{{"name", "a"}, {"value", "50%"}, {"from", 0.0}, {"to", 0.5}, {"kind", "total"}});
  CHECK(bar(data, "b").at("note") == "n");
  CHECK(parts(data, "bars")[0].at("note") == "below");
  CHECK(table(data).at("texts") == 2);
  CHECK(row(data, "1") ==
        json{{{"text", "1"}, {"mark", "winner"}}, {{"text", "long"}, {"wrap", true}}});
  CHECK(row(data, "2") == json{"2", "z"});
  CHECK(parts(data, "table")[1].at("folded") == "more");
  json const twins = parts(data, "twins")[0].at("items");
  CHECK(!twins[0].contains("through"));
  CHECK(twins[1].at("texts") == json{"a", "b"});
}

TEST_CASE("hostile texts stay texts, and bytes that are no UTF-8 are replaced") {
  std::string const evil = "</script><!--<script>x()</script>\"'&\xff";
  Page page;
  page.section(evil, evil);
  page.table({evil, {evil}, {{evil}}});
  std::string const html = std::move(page).html(evil, evil);
  // The page's script and its data.
  CHECK(count(html, "<script") == 2);
  CHECK(count(html, "</script") == 2);
  CHECK(frugal::detail::is_utf8(html));
  json const data = data_of(html);
  CHECK(data.at("title") == "</script><!--<script>x()</script>\"'&\xef\xbf\xbd");
  CHECK(row(data, data.at("title")) == json::array({data.at("title")}));
}

TEST_CASE("a page loads nothing, and its policy allows one script") {
  std::string const html = Page().html("t", "s");
  CHECK(html.starts_with("<!doctype html>"));
  for (char const* word :
       {"default-src 'none'", "script-src 'sha256-", "base-uri 'none'", "form-action 'none'"}) {
    CHECK(count(html, word) == 1);
  }
  for (char const* fetch : {"src=", "@import", "url(", "fetch(", "<iframe", "http-equiv=\"refresh",
                            "innerHTML", "eval("}) {
    CHECK(count(html, fetch) == 0);
  }
  CHECK(count(html, "http://") == count(html, "http://www.w3.org/2000/svg"));
  CHECK(count(html, "https://") == 0);
  CHECK(count(html, "<noscript>") == 1);
}

}  // namespace frugal_test::base_html_page
