// SPDX-License-Identifier: Apache-2.0
// expect: frugal: Transformed needs a function that takes a sample of the set, or a sample and a SampleKey, and can be called while it is const: several threads call it.
#include <frugal/data/loading/transformed.hpp>

struct Numbers {
  std::uint64_t size() const { return 4; }
  std::uint64_t get(std::uint64_t index) const { return index; }
};
struct Counts {
#ifdef FRUGAL_REJECT
  std::uint64_t operator()(std::uint64_t n) { return n + calls++; }
#else
  std::uint64_t operator()(std::uint64_t n) const { return n + calls; }
#endif
  std::uint64_t calls = 0;
};

inline std::uint64_t counted(frugal::Transformed<Numbers, Counts> const& set) { return set.size(); }
