// SPDX-License-Identifier: Apache-2.0
// needs: torch
// expect: frugal: Packed packs a set of documents that is read by index, `get(index)`, and gives a span, a vector or a tensor of token ids. Tokenise the texts first
#include <frugal/data/text/packed.hpp>
#include <frugal/data/text/tokenise.hpp>

#include <cstdint>
#include <string>

struct Texts {
  std::uint64_t size() const { return 1; }
  std::string get(std::uint64_t) const { return "no tokens"; }
};

#ifdef FRUGAL_REJECT
using PackedOf = Texts;
#else
using PackedOf = frugal::Documents;
#endif

inline frugal::PackedBatch first(PackedOf const& documents) {
  return frugal::Packed<PackedOf>(documents, {.length = 8}).get(0);
}
