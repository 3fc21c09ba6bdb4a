// SPDX-License-Identifier: Apache-2.0
// expect: frugal: this set is marked as curated, and deduplication would thin it out. To do so all the same, name it: `deduplicate(set, {.even_if_curated = "name"})`.
#include <frugal/data/curate/curated.hpp>

#include <cstdint>
#include <string>

struct Golden {
  std::uint64_t size() const { return 1; }
  std::string get(std::uint64_t) const { return "gold"; }
};

inline frugal::Curation thinned(frugal::Curated<Golden> const& set) {
#ifdef FRUGAL_REJECT
  return frugal::deduplicate(set);
#else
  return frugal::deduplicate(set, {.even_if_curated = "golden"});
#endif
}
