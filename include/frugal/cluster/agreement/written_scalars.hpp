// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <iterator>
#include <string>
#include <utility>
#include <vector>

#include <frugal/core/measure/measured_parts.hpp>
#include <frugal/core/run/scalars.hpp>
#include <frugal/core/run/window_phases.hpp>

namespace frugal::detail {

/// The scalars of losses as text, for read_scalars().
inline std::string written_scalars(std::vector<MicroBatchRecord> const& records) {
  CountedWriter out;
  for (MicroBatchRecord const& each : records) {
    out.put(static_cast<std::uint64_t>(std::distance(each.scalars.begin(), each.scalars.end())));
    for (Scalars::Value const& scalar : each.scalars) {
      out.put_text(scalar.name);
      // One of weight 0 is never read.
      bool const reads = !scalar.is_number && each.weight != 0;
      out.put(reads ? scalar.tensor.item<double>() : scalar.number);
    }
  }
  return out.take();
}
/// Of all processes, to the records of all: `places` has where those of each process are, process by
/// process.
inline void read_scalars(std::vector<std::string> const& texts,
                         std::vector<std::size_t> const& places,
                         std::vector<MicroBatchRecord>& records) {
  std::string whole;
  for (std::string const& text : texts) whole += text;
  CountedReader in(whole);
  for (std::size_t const place : places) {
    for (auto left = in.get<std::uint64_t>(); left != 0; --left) {
      std::string name = in.text();
      records[place].scalars.add({std::move(name), in.get<double>()});
    }
  }
}

}  // namespace frugal::detail
