// SPDX-License-Identifier: Apache-2.0
// libFuzzer: any bytes are either refused as a report of a curation with a FormatError, or give a
// curation that is the same after writing and reading, and whose kept samples are all but the
// removed ones. The input is the report without its last line, which is added here: a mutation
// would hardly ever have the hash that it says.
#include <frugal/data/curate/curated.hpp>
#include <frugal/data/curate/curation.hpp>
#include <frugal/data/curate/curation_page.hpp>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include "demand.hpp"

namespace {

using frugal_fuzz::demand;

std::optional<frugal::Curation> read(std::string const& text) {
  try {
    return frugal::parse_curation(text, "fuzz");
  } catch (frugal::FormatError const& error) {
    demand(error.fault().where.starts_with("fuzz, line ") && !error.fault().why.empty(),
           "a damaged report is refused with where and why");
    return std::nullopt;
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(std::uint8_t const* data, std::size_t size) {
  std::string text(reinterpret_cast<char const*>(data), size);
  static_cast<void>(read(text));
  frugal::detail::JsonLine last;
  last.add("xxh3", frugal::hex_of(frugal::detail::hash_of_text(text)));
  auto const found = read(text + std::move(last).str());
  if (!found) return 0;
  auto const again = read(frugal::curation_text(*found));
  demand(again && again->removed == found->removed && again->name == found->name &&
             again->identity == found->identity && again->method == found->method &&
             again->samples == found->samples && again->price == found->price,
         "a report is the same after writing and reading");
  std::string const page = frugal::curation_html(*found, {.rows = 5});
  std::size_t scripts = 0;
  for (std::size_t at = 0; (at = page.find("<script", at)) != page.npos; ++at) ++scripts;
  demand(scripts == 2, "a page has its own script and its data, and no other");
  if (found->samples > 1U << 16) return 0;
  frugal::Kept const kept(found->samples, found->removed,
                          [](frugal::Removed const& each) { return each.index; });
  demand(kept.size() == found->kept(), "what is not removed is kept");
  for (frugal::Removed const& each : found->removed) {
    demand(!kept.contains(each.index), "what is removed is not kept");
  }
  return 0;
}
