// SPDX-License-Identifier: Apache-2.0
// libFuzzer: what the readers of tar shards do not check elsewhere. The first byte says what
// follows:
//
//  i  an index file: refused with a DataError, or every read of it stays in its bytes
//  m  members as a tar reader hands them over, a line each: name, tab, offset, tab, size. Each is
//     refused with a DataError, or lies in the file; the index that is made of them reads as made
//  n  an array of NumPy: refused with a DataError, or its shape fits its bytes, and writing and
//     reading gives it again
//
// Everything else ends the program; the sanitizers check the rest.
#include <frugal/data/shards/npy.hpp>
#include <frugal/data/shards/tar_index.hpp>

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "demand.hpp"

extern "C" std::size_t LLVMFuzzerMutate(std::uint8_t* data, std::size_t size, std::size_t most);

namespace {

using frugal::DataError;
using frugal::detail::TarIndex;

using frugal_fuzz::demand;

/// Reads all of an index, and returns the sum of the bytes of its texts.
std::uint64_t read_all(TarIndex const& index) {
  std::uint64_t bytes = 0, members = 0;
  for (std::uint64_t i = 0; i < index.samples(); ++i) {
    for (char const c : index.key(i)) bytes += static_cast<unsigned char>(c);
    demand(index.first_member(i) < index.end_member(i), "a sample has members");
    std::uint64_t end = 0;
    for (std::uint64_t m = index.first_member(i); m < index.end_member(i); ++m, ++members) {
      auto const member = index.member(m);
      for (char const c : member.extension) bytes += static_cast<unsigned char>(c);
      demand(member.place.offset >= end, "members rise");
      end = member.place.end();
      demand(end >= member.place.offset && end <= index.stamp().size, "a member is in its file");
    }
  }
  demand(members == index.members(), "each member belongs to a sample");
  return bytes;
}

void try_index(std::span<std::byte const> bytes) {
  // Of a size of its own, so that the sanitizer sees a read behind it.
  std::vector<std::byte> const copy(bytes.begin(), bytes.end());
  read_all(TarIndex::parse(copy, "fuzz"));
}

void try_members(std::string_view text) {
  bool const cut = text.size() % 2 == 1;
  frugal::detail::TarIndexBuilder builder("fuzz", {.size = 1U << 20, .time = 1});
  auto const field = [&](char by) {
    std::size_t const end = std::min(text.find(by), text.size());
    std::string_view const out = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    return out;
  };
  auto const number = [](std::string_view digits) {
    std::uint64_t out = 0;
    std::from_chars(digits.data(), digits.data() + digits.size(), out);
    return out;
  };
  // More would show nothing, and an error costs the sanitizer most of the time.
  for (int i = 0; i < 64 && !text.empty(); ++i) {
    std::string_view const name = field('\t');
    std::uint64_t const offset = number(field('\t'));
    std::uint64_t const size = number(field('\n'));
    try {
      builder.add(name, {.offset = offset, .size = size});
    } catch (DataError const& error) {
      demand(error.fault().where.starts_with("fuzz, member"), "an error names its member");
    }
  }
  if (cut) builder.cut_off();
  std::uint64_t const samples = builder.samples();
  TarIndex const index = builder.finish();
  demand(index.samples() == samples, "each sample is in the index");
  read_all(index);
  demand(TarIndex::parse(index.bytes(), "again").hash() == index.hash(), "an index reads as made");
}

void try_npy(std::span<std::byte const> bytes) {
  std::vector<std::byte> const copy(bytes.begin(), bytes.end());
  frugal::NpyArray const array = frugal::read_npy(copy, "fuzz");
  demand(*frugal::tensor_bits(array.dtype, array.shape) == 8 * array.bytes.size(),
         "the shape fits the bytes");
  std::string again = frugal::npy_header(array.dtype, array.shape);
  again.append(reinterpret_cast<char const*>(array.bytes.data()), array.bytes.size());
  frugal::NpyArray const second = frugal::read_npy(std::as_bytes(std::span(again)), "again");
  demand(second.shape == array.shape && second.dtype == array.dtype, "an array reads as written");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(std::uint8_t const* data, std::size_t size) {
  if (size == 0) return 0;
  auto const bytes = std::as_bytes(std::span(data + 1, size - 1));
  try {
    if (data[0] == 'i') try_index(bytes);
    if (data[0] == 'm') try_members({reinterpret_cast<char const*>(data) + 1, size - 1});
    if (data[0] == 'n') try_npy(bytes);
  } catch (DataError const& error) {
    demand(!error.fault().what.empty() && error.fault().where.starts_with("fuzz"),
           "what is damaged is refused with what and where");
  }
  return 0;
}

/// Mutates, and then usually corrects the hash of an index: otherwise no mutation would get past
/// it.
extern "C" std::size_t LLVMFuzzerCustomMutator(std::uint8_t* data, std::size_t size,
                                               std::size_t most, unsigned seed) {
  size = LLVMFuzzerMutate(data, size, most);
  if (size < 17 || data[0] != 'i' || seed % 8 == 0) return size;
  size -= (size - 1) % 8;
  std::uint64_t const hash = frugal::Hash::of(std::as_bytes(std::span(data + 1, size - 9)));
  std::memcpy(data + size - 8, &hash, sizeof hash);
  return size;
}
