// SPDX-License-Identifier: Apache-2.0
// libFuzzer: any bytes are either refused as a run file with a FormatError, or give the records
// that the bytes are, in ascending order, and the same with blocks of any size. Everything else
// ends the program.
#include <frugal/data/curate/spill_sort.hpp>

#include <algorithm>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <vector>

#include "demand.hpp"

extern "C" std::size_t LLVMFuzzerMutate(std::uint8_t* data, std::size_t size, std::size_t most);

namespace {

struct Record {
  std::uint64_t key = 0;
  std::uint64_t index = 0;
  friend auto operator<=>(Record const&, Record const&) = default;
};
using Records = std::vector<Record>;

struct Bytes {
  std::size_t read(std::span<std::byte> to) {
    std::size_t const count = std::min(to.size(), left.size());
    if (count != 0) std::memcpy(to.data(), left.data(), count);
    left = left.subspan(count);
    return count;
  }
  std::span<std::byte const> left;
};

using frugal_fuzz::demand;

std::optional<Records> read(std::span<std::byte const> bytes, std::size_t block) {
  Records out;
  try {
    frugal::detail::RunReader<Record, Bytes> reader({bytes}, bytes.size(), "fuzz", block);
    for (; reader.front() != nullptr; reader.pop()) out.push_back(*reader.front());
  } catch (frugal::FormatError const& error) {
    demand(!error.fault().what.empty() && error.fault().where.starts_with("fuzz, byte "),
           "a damaged file is refused with what and where");
    return std::nullopt;
  }
  return out;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(std::uint8_t const* data, std::size_t size) {
  auto const bytes = std::as_bytes(std::span(data, size));
  auto const whole = read(bytes, size);
  for (std::size_t const block : {1U, 2U, 3U}) demand(read(bytes, block) == whole, "blocks agree");
  if (!whole) return 0;
  demand(std::is_sorted(whole->begin(), whole->end()), "records are in order");
  demand(whole->size() * sizeof(Record) + frugal::detail::run_overhead == size, "no byte is left");
  demand(whole->empty() || std::memcmp(whole->data(), data + sizeof(frugal::detail::RunHeader),
                                       whole->size() * sizeof(Record)) == 0,
         "records are the bytes of the file");
  return 0;
}

/// Mutates, and then usually corrects header, number and hash: otherwise no mutation would get past
/// them.
extern "C" std::size_t LLVMFuzzerCustomMutator(std::uint8_t* data, std::size_t size,
                                               std::size_t most, unsigned seed) {
  size = LLVMFuzzerMutate(data, size, most);
  constexpr std::size_t head = sizeof(frugal::detail::RunHeader);
  if (size < frugal::detail::run_overhead || seed % 8 == 0) return size;
  std::size_t const records = (size - frugal::detail::run_overhead) / sizeof(Record);
  std::size_t const bytes = records * sizeof(Record);
  frugal::detail::RunHeader const header{.record = sizeof(Record)};
  std::memcpy(data, &header, head);
  if (seed % 4 != 1) {
    Records sorted(records);
    if (records != 0) std::memcpy(sorted.data(), data + head, bytes);
    std::sort(sorted.begin(), sorted.end());
    if (records != 0) std::memcpy(data + head, sorted.data(), bytes);
  }
  frugal::detail::RunTrailer const trailer{
      .records = records, .hash = frugal::Hash::of(std::as_bytes(std::span(data + head, bytes)))};
  std::memcpy(data + head + bytes, &trailer, sizeof trailer);
  return head + bytes + sizeof trailer;
}
