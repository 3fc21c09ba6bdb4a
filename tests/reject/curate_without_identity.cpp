// SPDX-License-Identifier: Apache-2.0
// expect: frugal: nothing says whether this set is the one of the report. Give it `identity()`, a text that changes with its content; or deduplicate it here, with `curate(set, settings)`.
#include <frugal/data/curate/curated.hpp>

#include <cstdint>
#include <string>

struct Nameless {
  std::uint64_t size() const { return 1; }
  std::string get(std::uint64_t) const { return "text"; }
};

inline frugal::Curated<Nameless> kept(Nameless const& set, frugal::Curation const& report) {
#ifdef FRUGAL_REJECT
  return frugal::Curated<Nameless>(set, report);
#else
  static_cast<void>(report);
  return frugal::curate(set, {}).first;
#endif
}
