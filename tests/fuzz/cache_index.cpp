// SPDX-License-Identifier: Apache-2.0
// libFuzzer: of any bytes only entries are taken that have their hash, belong to the set and lie in
// the data; they read the same after being written again, and as well in two parts. Everything else
// ends the program; the sanitizers check the rest. Seeds are index files of CacheStore.
#include <frugal/data/cache/cache_store.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <vector>

#include "demand.hpp"

extern "C" std::size_t LLVMFuzzerMutate(std::uint8_t* data, std::size_t size, std::size_t most);

namespace {

using frugal::detail::cache_entries;
using frugal::detail::CacheEntry;
using frugal::detail::CacheSegmentHeader;

constexpr std::uint64_t samples = 16;
constexpr std::uint64_t data_bytes = 4096;

using frugal_fuzz::demand;

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(std::uint8_t const* data, std::size_t size) {
  auto const bytes = std::as_bytes(std::span(data, size));
  if (auto const header = CacheSegmentHeader::parse(bytes)) {
    auto const again = CacheSegmentHeader::parse(header->file_bytes());
    demand(again && again->key == header->key && again->capacity == header->capacity,
           "a header is the same after writing and reading");
  }
  if (size < 64) return 0;
  auto const list = bytes.subspan(64);
  auto const entries = cache_entries(list, samples, data_bytes);
  std::vector<std::byte> copy;
  for (CacheEntry const& entry : entries) {
    demand(entry.sample < samples, "an entry belongs to the set");
    demand(entry.bytes <= data_bytes && entry.offset <= data_bytes - entry.bytes,
           "an entry lies in the data");
    frugal::detail::append_bytes(copy, entry.file_bytes());
  }
  demand(cache_entries(copy, samples, data_bytes) == entries,
         "entries are the same after writing and reading");
  std::size_t const half = list.size() / 2 / 48 * 48;
  auto parts = cache_entries(list.first(half), samples, data_bytes);
  for (CacheEntry const& entry : cache_entries(list.subspan(half), samples, data_bytes)) {
    parts.push_back(entry);
  }
  demand(parts == entries, "an index that grows is read as one that was whole");
  return 0;
}

/// Mutates, and then usually corrects the hashes: otherwise hardly any mutation would get past
/// them.
extern "C" std::size_t LLVMFuzzerCustomMutator(std::uint8_t* data, std::size_t size,
                                               std::size_t most, unsigned seed) {
  size = LLVMFuzzerMutate(data, size, most);
  if (seed % 8 == 0) return size;
  auto const sign = [&](std::size_t at, std::size_t count) {
    std::uint64_t const hash = frugal::Hash::of(std::as_bytes(std::span(data + at, count)));
    std::memcpy(data + at + count, &hash, sizeof hash);
  };
  if (size >= 64) sign(0, 56);
  for (std::size_t at = 64; at + 48 <= size; at += 48) sign(at, 40);
  return size;
}
