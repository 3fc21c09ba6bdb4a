// SPDX-License-Identifier: Apache-2.0
// torch-free
#include <doctest/doctest.h>

#include <frugal/base/utf8.hpp>
#include <frugal/data/curate/curation_page.hpp>

#include "support/files.hpp"

#include <cstddef>
#include <cstdint>
#include <string>

namespace frugal_test::data_curate_curation_page {

using frugal::Curation;

Curation some(std::size_t removed) {
  Curation out{
      .name = "set", .identity = "", .method = "by hand", .samples = 4000, .bytes = 1'000'000};
  for (std::size_t i = 0; i < removed; ++i) {
    out.removed.push_back({.index = i + 1,
                           .twin = 0,
                           .similarity = i % 2 == 0 ? 1 : 0.83,
                           .copy = i % 2 == 0,
                           .through = 0,
                           .through_similarity = 1,
                           .bytes = 100});
  }
  return out;
}

std::size_t count(std::string const& text, std::string const& what) {
  std::size_t found = 0;
  for (std::size_t at = text.find(what); at != text.npos; at = text.find(what, at + 1)) ++found;
  return found;
}

std::string const hostile = "</pre><script>alert('1')</script>\" onload=\"x &amp; \x01\xff";

TEST_CASE("hostile names and texts are shown and do nothing") {
  Curation curation = some(1);
  curation.name = curation.method = hostile;
  std::string const page =
      frugal::curation_html(curation, {.name = [](std::uint64_t) { return hostile; },
                                       .text = [](std::uint64_t) { return hostile; }});
  CHECK(count(page, "<script") == 0);
  CHECK(count(page,
              "&lt;script&gt;alert(&#39;1&#39;)&lt;/script&gt;&quot; onload=&quot;x &amp;amp; "
              "\xef\xbf\xbd\xef\xbf\xbd") >= 6);
  CHECK(count(page, "<pre>") == count(page, "</pre>"));
  CHECK(count(page, "default-src 'none'") == 1);
  CHECK(frugal::detail::is_utf8(page));
}

TEST_CASE("figures have their share of the whole") {
  std::string const page = frugal::curation_html(some(1000));
  CHECK(count(page, "<dd>4,000</dd>") == 1);
  CHECK(count(page, "<dd>3,000</dd>") == 1);
  CHECK(count(page, "<dd>1,000 <small>25.00%</small></dd>") == 1);
  CHECK(count(page, "<dd>100,000 <small>10.00%</small></dd>") == 1);
  CHECK(count(page, "<dd>500</dd>") == 1);
  CHECK(count(page, "$") == 0);
  Curation priced = some(1000);
  priced.price = {.per_hour = 36, .seconds_per_sample = 1};
  CHECK(count(frugal::curation_html(priced), "<dd>$10.00</dd>") == 1);
}

TEST_CASE("similarities are counted in steps of 0.05, and 1 by itself") {
  std::string const page = frugal::curation_html(some(10));
  CHECK(count(page, "<tr><td>1</td><td>5</td>") == 1);
  CHECK(count(page, "<tr><td>0.80 to 0.85</td><td>5</td>") == 1);
  CHECK(count(page, "<tr>") == 2);
}

TEST_CASE("rows are limited, and spread over all that was removed") {
  std::string const page = frugal::curation_html(some(1000), {.rows = 10});
  CHECK(count(page, "<article>") == 10);
  CHECK(count(page, "10 of 1,000, spread evenly") == 1);
  CHECK(count(page, "sample 901 ") == 1);
  CHECK(count(frugal::curation_html(some(3)), "<article>") == 3);
  CHECK(count(frugal::curation_html(some(3)), "spread evenly") == 0);
}

TEST_CASE("nothing removed is a page too") {
  std::string const page = frugal::curation_html(some(0));
  CHECK(count(page, "<dd>0 <small>0.00%</small></dd>") == 2);
  CHECK(count(page, "<article>") == 0);
  CHECK(count(frugal::curation_html({}), "<dd>0 <small>0%</small></dd>") == 2);
}

TEST_CASE("a chain names the sample that joins it") {
  Curation curation = some(1);
  curation.removed[0] = {
      .index = 3, .twin = 0, .similarity = 0.7, .through = 2, .through_similarity = 0.85};
  std::string const page = frugal::curation_html(curation);
  CHECK(count(page,
              "similarity 0.700 with</small> sample 0 <small>through</small> sample 2 "
              "<small>(0.850)</small>") == 1);
}

TEST_CASE("a page replaces the page before it") {
  support::TemporaryFolder folder;
  frugal::write_curation_page(folder / "r.html", some(1));
  frugal::write_curation_page(folder / "r.html", some(2));
  CHECK(support::text_of(folder / "r.html") == frugal::curation_html(some(2)));
  CHECK(support::entries(folder.path()) == 1);
}

}  // namespace frugal_test::data_curate_curation_page
