// SPDX-License-Identifier: Apache-2.0
// expect: frugal: a sample of this set is no GreyImage, or not read by index. Give deduplicate_images a function that makes one of it: `deduplicate_images(set, settings, [](Sample const& s) { return GreyImage{pixels, height, width}; })`.
#include <frugal/data/curate/deduplicate_images.hpp>

#include <cstdint>
#include <string>

struct Pixels {
  std::uint64_t size() const { return 1; }
  std::string get(std::uint64_t) const { return "x"; }
};

inline frugal::Curation curation_of(Pixels const& set) {
#ifdef FRUGAL_REJECT
  return frugal::deduplicate_images(set, {});
#else
  return frugal::deduplicate_images(set, {}, [](std::string const& each) {
    return frugal::GreyImage{{each.begin(), each.end()}, 1, 1};
  });
#endif
}
