// SPDX-License-Identifier: Apache-2.0
// libFuzzer: any bytes are either refused with a DataError, or are a record file whose records lie
// one behind the other inside of it. Everything else ends the program; the sanitizers check the
// rest. Seeds are files of RecordWriter, with and without a layout.
#include <frugal/data/shards/record_file.hpp>
#include <frugal/data/shards/shard_list.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>

#include "demand.hpp"

extern "C" std::size_t LLVMFuzzerMutate(std::uint8_t* data, std::size_t size, std::size_t most);

namespace {

using frugal::DataError;
using frugal::RecordFile;
using frugal::Verify;

using frugal_fuzz::demand;

void read_all(std::span<std::byte const> bytes, Verify verify) {
  RecordFile const file = RecordFile::parse(bytes, "fuzz", verify);
  std::byte const* at = nullptr;
  std::uint64_t total = 0;
  // The index of a small file may claim many empty records.
  for (std::uint64_t i = 0; i < std::min<std::uint64_t>(file.size(), 4096); ++i) {
    auto const record = file.record(i);
    demand(at == nullptr || record.data() == at, "records lie one behind the other");
    demand(record.data() >= bytes.data(), "a record begins inside the file");
    at = record.data() + record.size();
    demand(at <= bytes.data() + bytes.size(), "a record ends inside the file");
    total += record.size();
    if (file.layout().fixed()) {
      demand(record.size() == file.layout().record_bytes(), "a record has the layout's size");
    }
  }
  demand(file.size() > 4096 || total == file.data_bytes(), "records cover the data");
  if (verify == Verify::AtOpen) demand(total <= file.data_bytes(), "no record is counted twice");
}

void read_list(std::string_view text) {
  try {
    auto const list = frugal::ShardList::parse(text, "fuzz");
    auto const again = frugal::ShardList::parse(list.text(), "copy");
    demand(again.shards == list.shards, "a list is the same after writing and reading");
  } catch (DataError const& error) {
    demand(error.fault().where.starts_with("fuzz"), "a damaged list is refused with where");
  }
}

template <class Int>
void put(std::uint8_t* at, Int value) {
  std::memcpy(at, &value, sizeof value);
}
std::uint64_t hash_of(std::uint8_t const* data, std::size_t size) {
  return frugal::Hash::of(std::as_bytes(std::span(data, size)));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(std::uint8_t const* data, std::size_t size) {
  auto const bytes = std::as_bytes(std::span(data, size));
  for (Verify const verify : {Verify::AtOpen, Verify::FirstTouch, Verify::Never}) {
    try {
      read_all(bytes, verify);
    } catch (DataError const& error) {
      demand(!error.fault().what.empty() && error.fault().where.starts_with("fuzz"),
             "a damaged file is refused with what and where");
    }
  }
  read_list({reinterpret_cast<char const*>(data), size});
  return 0;
}

/// Mutates, and then usually corrects the hashes: otherwise hardly any mutation would get past
/// them.
extern "C" std::size_t LLVMFuzzerCustomMutator(std::uint8_t* data, std::size_t size,
                                               std::size_t most, unsigned seed) {
  size = LLVMFuzzerMutate(data, size, most);
  if (size < 24 + 64 || seed % 8 == 0) return size;
  std::uint32_t json = 0;
  std::memcpy(&json, data + 12, sizeof json);
  if (json > size - 24) return size;
  std::uint64_t const header = hash_of(data + 24, json);
  put(data + 16, header);
  std::uint8_t* const footer = data + size - 64;
  std::uint64_t at = 0, bytes = 0;
  std::memcpy(&at, footer + 16, sizeof at);
  std::memcpy(&bytes, footer + 24, sizeof bytes);
  if (at <= size && bytes <= size - at) put(footer + 32, hash_of(data + at, bytes));
  put(footer + 40, header);
  put(footer + 48, hash_of(footer, 48));
  std::memcpy(footer + 56, "FRGLEND\n", 8);
  return size;
}
