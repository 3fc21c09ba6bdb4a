// SPDX-License-Identifier: Apache-2.0
// libFuzzer: any bytes are either refused with a DataError, or are a file of records that lie one
// behind the other inside of it. Everything else ends the program; the sanitizers check the rest.
// Seeds are files of ShardFiles, with and without a layout, and the same tensors without hashes.
#include <frugal/checkpoint/safetensors.hpp>
#include <frugal/data/little_endian.hpp>
#include <frugal/data/shards/record_file.hpp>
#include <frugal/data/shards/record_layout.hpp>

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
  std::size_t const fields = std::max<std::size_t>(file.layout().fields().size(), 1);
  for (std::size_t field = 0; field < fields; ++field) {
    std::byte const* at = nullptr;
    // A small file may have many empty records.
    for (std::uint64_t i = 0; i < std::min<std::uint64_t>(file.size(), 4096); ++i) {
      auto const record = file.get(i, field);
      demand(at == nullptr || record.data() == at, "records lie one behind the other");
      demand(record.data() >= bytes.data(), "a record begins inside the file");
      at = record.data() + record.size();
      demand(at <= bytes.data() + bytes.size(), "a record ends inside the file");
      if (file.layout().fixed()) {
        demand(record.size() == file.layout().fields()[field].bytes, "a record has its size");
      }
    }
  }
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

/// Mutates, and then usually corrects the hash of the header: otherwise hardly any mutation of a
/// file with hashes would get past it.
extern "C" std::size_t LLVMFuzzerCustomMutator(std::uint8_t* data, std::size_t size,
                                               std::size_t most, unsigned seed) {
  size = LLVMFuzzerMutate(data, size, most);
  if (seed % 8 == 0) return size;
  auto const bytes = std::as_writable_bytes(std::span(data, size));
  try {
    auto const table = frugal::Safetensors::parse(bytes, "fuzz").find("frugal.block_hashes");
    if (!table || table->bytes.size() < 8) return size;
    std::uint64_t const header = 8 + frugal::detail::load_le<std::uint64_t>(bytes, 0);
    std::uint64_t const hash = frugal::detail::record_file_hash(bytes.first(header), table->bytes);
    auto const at = static_cast<std::size_t>(table->bytes.data() - bytes.data());
    std::memcpy(data + at + table->bytes.size() - 8, &hash, 8);
  } catch (frugal::FormatError const&) {
    return size;  // not a safetensors file any more
  }
  return size;
}
