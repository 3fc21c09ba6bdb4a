// SPDX-License-Identifier: Apache-2.0
// expect: frugal: a sample of this set is no text. Give deduplicate a function that makes one of it: `deduplicate(set, settings, [](Sample const& s) { return s.text; })`.
#include <frugal/data/curate/deduplicate.hpp>

#include <cstdint>
#include <string>

struct Article {
  std::string title, text;
};

struct Articles {
  std::uint64_t size() const { return 1; }
  Article get(std::uint64_t) const { return {"title", "text"}; }
};

inline frugal::Curation curation_of(Articles const& set) {
#ifdef FRUGAL_REJECT
  return frugal::deduplicate(set, {});
#else
  return frugal::deduplicate(set, {}, [](Article const& each) { return each.text; });
#endif
}
