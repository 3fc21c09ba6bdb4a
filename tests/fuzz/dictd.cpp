// SPDX-License-Identifier: Apache-2.0
// libFuzzer: any bytes are either refused as an index of a dictd dictionary with a DataError, or
// give an entry for each line, within the dictionary, that says what the line says.
#include <frugal/data/curate/dictd.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "demand.hpp"

namespace {

constexpr std::uint64_t dictionary = std::uint64_t{1} << 40;

using frugal_fuzz::demand;

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(std::uint8_t const* data, std::size_t size) {
  std::string_view const text(reinterpret_cast<char const*>(data), size);
  try {
    auto const entries = frugal::parse_dictd_index(text, "fuzz", dictionary);
    auto lines = static_cast<std::size_t>(std::count(text.begin(), text.end(), '\n'));
    if (!text.empty() && text.back() != '\n') ++lines;
    demand(entries.size() == lines, "every line is an entry");
    std::size_t at = 0;
    for (auto const& each : entries) {
      demand(each.offset <= dictionary && each.size <= dictionary - each.offset,
             "entries lie within the dictionary");
      demand(text.substr(at).starts_with(each.headword), "a line begins with its headword");
      demand(text[at + each.headword.size()] == '\t', "a tab follows the headword");
      at = std::min(text.find('\n', at), text.size() - 1) + 1;
    }
  } catch (frugal::DataError const& error) {
    demand(error.fault().where.starts_with("fuzz, line ") && !error.fault().why.empty(),
           "a damaged index is refused with where and why");
  }
  return 0;
}
