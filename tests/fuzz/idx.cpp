// SPDX-License-Identifier: Apache-2.0
// libFuzzer: any bytes are either refused as an IDX file with a DataError, or give an array whose
// size is that of its shape and type, within the limits. Plain and gzip files take the same way.
#include <frugal/data/idx.hpp>

#include <cstddef>
#include <cstdint>
#include <sstream>
#include <string>

#include "demand.hpp"

using frugal_fuzz::demand;

extern "C" int LLVMFuzzerTestOneInput(std::uint8_t const* data, std::size_t size) {
  std::istringstream input(std::string(reinterpret_cast<char const*>(data), size));
  frugal::IdxLimits const limits{.bytes = 1 << 20, .dimensions = 8};
  try {
    frugal::IdxArray const array = frugal::read_idx(input, "fuzz", limits);
    std::uint64_t elements = 1;
    for (std::uint64_t const extent : array.shape) elements *= extent;
    demand(array.shape.size() <= 8, "the number of dimensions is limited");
    demand(array.elements() == elements, "the elements are those of the shape");
    demand(array.size <= limits.bytes, "the size is limited");
    unsigned sum = 0;
    for (std::uint64_t i = 0; i < array.size; ++i) sum += static_cast<unsigned>(array.data[i]);
    demand(sum <= 255 * array.size, "every byte can be read");
  } catch (frugal::DataError const& error) {
    demand(error.fault().where.starts_with("fuzz") && !error.fault().what.empty(),
           "a damaged file is refused with what and where");
  }
  return 0;
}
