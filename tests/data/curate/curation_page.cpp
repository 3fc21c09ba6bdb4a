// SPDX-License-Identifier: Apache-2.0
// torch-free
#include <doctest/doctest.h>

#include <frugal/base/utf8.hpp>
#include <frugal/data/curate/curation_page.hpp>

#include "support/files.hpp"
#include "support/page_data.hpp"

#include <cstddef>
#include <cstdint>
#include <string>

namespace frugal_test::data_curate_curation_page {

using namespace page_data;
using frugal::Curation;
using frugal::CurationPage;

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

json page_of(Curation const& curation, CurationPage const& page = {}) {
  return data_of(frugal::curation_html(curation, page));
}
/// The removed samples that are shown.
json twins(json const& page) {
  auto const all = parts(page, "twins");
  return all.empty() ? json::array() : all[0].at("items");
}

TEST_CASE("hostile names and texts are shown and do nothing") {
  std::string const hostile = "</pre></script><script>alert('1')</script>\" &amp; \x01\xff";
  std::string const shown = "</pre></script><script>alert('1')</script>\" &amp; \x01\xef\xbf\xbd";
  Curation curation = some(1);
  curation.name = curation.method = hostile;
  std::string const html =
      frugal::curation_html(curation, {.name = [&](std::uint64_t) { return hostile; },
                                       .text = [&](std::uint64_t) { return hostile; }});
  CHECK(!has(html, "<script>alert"));
  CHECK(has(html, "default-src 'none'"));
  CHECK(frugal::detail::is_utf8(html));
  json const page = data_of(html);
  CHECK(page.at("title") == "Curation of " + shown);
  CHECK(page.at("subtitle") == shown + ".");
  CHECK(twins(page)[0].at("removed") == shown);
  CHECK(twins(page)[0].at("texts") == json{shown, shown});
}

TEST_CASE("figures have their share of the whole") {
  json const page = page_of(some(1000));
  CHECK(figure(page, "samples")[0] == "4,000");
  CHECK(figure(page, "kept")[0] == "3,000");
  CHECK(figure(page, "removed") == json{"1,000", "25.00%"});
  CHECK(figure(page, "of these, copies")[0] == "500");
  CHECK(figure(page, "bytes saved") == json{"100,000", "10.00%"});
  CHECK(figure(page, "saved per epoch").is_null());
  Curation priced = some(1000);
  priced.price = {.per_hour = 36, .seconds_per_sample = 1};
  CHECK(figure(page_of(priced), "saved per epoch")[0] == "$10.00");
}

TEST_CASE("similarities are counted in steps of 0.05, and 1 by itself") {
  json const page = page_of(some(10));
  CHECK(parts(page, "bars")[0].at("items").size() == 2);
  CHECK(bar(page, "1").at("value") == "5");
  CHECK(bar(page, "0.80 to 0.85").at("value") == "5");
  CHECK(bar(page, "0.80 to 0.85").at("to") == 1);
}

TEST_CASE("rows are limited, and spread over all that was removed") {
  json const page = page_of(some(1000), {.rows = 10});
  CHECK(twins(page).size() == 10);
  CHECK(says(page, "10 of 1,000, spread evenly"));
  CHECK(twins(page)[9].at("removed") == "sample 901");
  CHECK(twins(page)[9].at("how") == "copy of");
  CHECK(twins(page)[9].at("kept") == "sample 0");
  CHECK(twins(page_of(some(3))).size() == 3);
  CHECK(!says(page_of(some(3)), "spread evenly"));
}

TEST_CASE("nothing removed is a page too") {
  json const page = page_of(some(0));
  CHECK(figure(page, "removed") == json{"0", "0.00%"});
  CHECK(sections(page).empty());
  CHECK(figure(page_of({}), "removed") == json{"0", "0%"});
  CHECK(page_of({}).at("title") == "Curation");
}

TEST_CASE("a chain names the sample that joins it") {
  Curation curation = some(1);
  curation.removed[0] = {
      .index = 3, .twin = 0, .similarity = 0.7, .through = 2, .through_similarity = 0.85};
  json const found = twins(page_of(curation))[0];
  CHECK(found.at("how") == "similarity 0.700 with");
  CHECK(found.at("through") == "sample 2 (0.850)");
  CHECK(!found.contains("texts"));
}

TEST_CASE("a page replaces the page before it") {
  support::TemporaryFolder folder;
  frugal::write_curation_page(folder / "r.html", some(1));
  frugal::write_curation_page(folder / "r.html", some(2));
  CHECK(support::text_of(folder / "r.html") == frugal::curation_html(some(2)));
  CHECK(support::entries(folder.path()) == 1);
}

}  // namespace frugal_test::data_curate_curation_page
