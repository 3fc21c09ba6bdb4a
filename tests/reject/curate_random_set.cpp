// SPDX-License-Identifier: Apache-2.0
// expect: frugal: deduplicate reads each sample once, and this set gives another sample in every epoch. Deduplicate the set behind its random transform.
#include <frugal/data/curate/deduplicate.hpp>

#include <cstdint>
#include <string>

struct Masked {
  std::uint64_t size() const { return 1; }
#ifdef FRUGAL_REJECT
  std::string get(frugal::SampleKey const&) const { return "text"; }
#else
  std::string get(std::uint64_t) const { return "text"; }
#endif
};

inline frugal::Curation curation_of(Masked const& set) { return frugal::deduplicate(set, {}); }
