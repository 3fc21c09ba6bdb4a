// SPDX-License-Identifier: Apache-2.0
// torch-free
#include <frugal/data/curate/curation.hpp>

#include "support/files.hpp"

#include <doctest/doctest.h>

#include <cstddef>
#include <cstdint>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>

namespace frugal_test::data_curate_curation {

using frugal::Curation;

TEST_CASE("an epoch saves the time of the removed samples, by number, by bytes or by both") {
  frugal::Curation curation{.name = "", .identity = "", .method = "", .samples = 10, .bytes = 90};
  curation.removed = {{.index = 3, .bytes = 30}, {.index = 4, .copy = true, .bytes = 6}};
  CHECK(curation.kept() == 8);
  CHECK(curation.removed_bytes() == 36);
  CHECK(curation.copies() == 1);
  // 2 samples of 900 s each are half an hour of 3 dollars, and so are 36 bytes of 50 s.
  curation.price = {.per_hour = 3, .seconds_per_sample = 900};
  CHECK(curation.dollars_per_epoch() == 1.5);
  curation.price = {.per_hour = 3, .seconds_per_byte = 50};
  CHECK(curation.dollars_per_epoch() == 1.5);
  curation.price = {.per_hour = 3, .seconds_per_sample = 900, .seconds_per_byte = 50};
  CHECK(curation.dollars_per_epoch() == 3);
}

TEST_CASE("without a price there are no dollars") {
  frugal::Curation curation{.name = "", .identity = "", .method = "", .samples = 10};
  CHECK(!curation.dollars_per_epoch());
  curation.price = {.per_hour = 3};
  CHECK(!curation.dollars_per_epoch());
  curation.price = {.seconds_per_sample = 3};
  CHECK(!curation.dollars_per_epoch());
}

Curation some() {
  Curation out{
      .name = "a \"set\"\n<b>", .identity = "v1", .method = "by hand", .samples = 9, .bytes = 90};
  out.price = {.per_hour = 3.5, .seconds_per_sample = 0.1};
  out.removed = {{.index = 3,
                  .twin = 1,
                  .similarity = 1,
                  .copy = true,
                  .through = 1,
                  .through_similarity = 1,
                  .bytes = 10},
                 {.index = 8,
                  .twin = 0,
                  .similarity = 2.0 / 3,
                  .through = 5,
                  .through_similarity = 0.85,
                  .bytes = 7}};
  out.candidates = 12;
  out.compared = 4;
  return out;
}

frugal::Fault fault_of(std::string const& text) {
  try {
    frugal::parse_curation(text, "report.jsonl");
  } catch (frugal::FormatError const& error) {
    return error.fault();
  }
  return {.what = "nothing was thrown", .where = "", .why = "", .fix = ""};
}

/// The text with a correct hash, however wrong its lines are.
std::string sealed(std::string const& lines) {
  frugal::detail::JsonLine last;
  last.add("xxh3", frugal::hex_of(frugal::detail::hash_of_text(lines)));
  return lines + std::move(last).str();
}

TEST_CASE("a report reads as it was written") {
  support::TemporaryFolder folder;
  frugal::write_curation(folder / "r.jsonl", {.name = "old", .identity = "", .method = ""});
  frugal::write_curation(folder / "r.jsonl", some());
  Curation const read = frugal::read_curation(folder / "r.jsonl");
  CHECK(read.name == some().name);
  CHECK(read.identity == "v1");
  CHECK(read.method == "by hand");
  CHECK(read.samples == 9);
  CHECK(read.bytes == 90);
  CHECK(read.price == some().price);
  CHECK(read.removed == some().removed);
  CHECK(read.candidates == 12);
  CHECK(read.compared == 4);
  CHECK(support::entries(folder.path()) == 1);
}

TEST_CASE("every line is JSON that another library reads, with the names of samples") {
  auto const lines = support::lines_of(frugal::curation_text(
      some(), [](std::uint64_t index) { return "\xff</script> " + std::to_string(index); }));
  REQUIRE(lines.size() == 4);
  auto const head = nlohmann::json::parse(lines[0]);
  CHECK(head.at("removed") == 2);
  CHECK(head.at("removed_bytes") == 17);
  CHECK(head.at("dollars_per_epoch").get<double>() == doctest::Approx(0.2 / 3600 * 3.5));
  auto const row = nlohmann::json::parse(lines[2]);
  CHECK(row.at("kind") == "near");
  CHECK(row.at("similarity") == 2.0 / 3);
  CHECK(row.at("twin_name") == "\xef\xbf\xbd</script> 0");
  CHECK(nlohmann::json::parse(lines[1]).at("kind") == "copy");
}

TEST_CASE("a report without a price names no dollars") {
  Curation curation = some();
  curation.price = {};
  CHECK(frugal::curation_text(curation).find("dollars") == std::string::npos);
}

TEST_CASE("every truncation and every flipped bit of a report is refused") {
  std::string const text = frugal::curation_text(some());
  for (std::size_t size = 0; size < text.size(); ++size) {
    CHECK(fault_of(text.substr(0, size)).what == "the report of a curation is damaged");
  }
  for (std::size_t bit = 0; bit < text.size() * 8; ++bit) {
    std::string damaged = text;
    damaged[bit / 8] = static_cast<char>(damaged[bit / 8] ^ (1 << (bit % 8)));
    CHECK(fault_of(damaged).what == "the report of a curation is damaged");
  }
}

TEST_CASE("contradictory lines are refused with their number, even under a correct hash") {
  std::string const text = frugal::curation_text(some());
  auto const lines = support::lines_of(text);
  std::string const head = lines[0] + '\n', one = lines[1] + '\n', two = lines[2] + '\n';
  CHECK(fault_of(sealed(head + one + two)).what == "nothing was thrown");
  CHECK(fault_of(sealed(head + two + one)).why == "its samples are not in ascending order");
  CHECK(fault_of(sealed(head + two + one)).where == "report.jsonl, line 3");
  CHECK(fault_of(sealed(head + one + one)).why == "its samples are not in ascending order");
  CHECK(fault_of(sealed(head + one)).why == "it lists 1 samples, and says 2");
  CHECK(fault_of(sealed(one + two)).why == "\"format\" does not say \"frugal curation\"");
  auto const with = [&](std::string line, std::string const& from, std::string const& to) {
    line.replace(line.find(from), from.size(), to);
    return line;
  };
  CHECK(fault_of(sealed(head + one + with(two, ":8,", ":9,"))).why ==
        "it names a sample beyond the last of 9");
  CHECK(fault_of(sealed(head + with(one, "\"twin\":1", "\"twin\":3") + two)).why ==
        "the sample is its own twin");
  CHECK(fault_of(sealed(head + with(one, "copy", "kopy") + two)).why ==
        "its kind is neither copy nor near");
  CHECK(fault_of(sealed(with(head, "\"version\":1", "\"version\":2") + one + two)).why ==
        "a newer frugal wrote it; update frugal");
  CHECK(fault_of(sealed(head + "nonsense\n" + two)).why.starts_with("it is no JSON object"));
  CHECK(fault_of(sealed(head + "\n" + two)).why.starts_with("it is no JSON object"));
}

TEST_CASE("a missing report is named") {
  CHECK_THROWS_AS(frugal::read_curation("/no/such/report.jsonl"), frugal::StoreError);
}

}  // namespace frugal_test::data_curate_curation
