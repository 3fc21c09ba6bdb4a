// SPDX-License-Identifier: Apache-2.0
// torch-free
#include <frugal/data/shards/record_index.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace frugal_test::data_shards_record_index {

using frugal::detail::RecordHeader;
using frugal::detail::RecordIndex;
using frugal::detail::RecordIndexReader;

/// A file of records of any bytes: `data` in blocks of 4 bytes, with these ends in its index,
/// whatever they say, and right hashes.
std::vector<std::byte> file_of(std::string const& data, std::vector<std::uint64_t> const& ends) {
  RecordHeader header{.layout = {}, .block_bytes = 4};
  std::vector<std::byte> file = header.bytes();
  frugal::detail::append_text(file, data);
  file.resize(frugal::detail::record_aligned(file.size()));
  std::vector<std::byte> index;
  auto const bytes = std::as_bytes(std::span(data));
  for (std::size_t at = 0; at < data.size(); at += 4) {
    frugal::detail::append_le(
        index, frugal::Hash::of(bytes.subspan(at, std::min<std::size_t>(4, data.size() - at))));
  }
  for (std::uint64_t const end : ends) frugal::detail::append_le(index, end);
  file.insert(file.end(), index.begin(), index.end());
  auto const footer = frugal::detail::record_footer(header, ends.size(), data.size(), index);
  file.insert(file.end(), footer.begin(), footer.end());
  return file;
}

std::string why(std::vector<std::uint64_t> const& ends) {
  try {
    static_cast<void>(RecordIndexReader(file_of("abcdef", ends), "file").read());
  } catch (frugal::DataError const& error) {
    CHECK(error.fault().where.starts_with("file, byte "));
    return error.fault().why;
  }
  return "nothing was thrown";
}

TEST_CASE("blocks and records lie where the index says") {
  auto const file = file_of("abcdef", {1, 1, 6});
  RecordIndex const index = RecordIndexReader(file, "file").read();
  CHECK(index.blocks() == 2);
  CHECK(index.records == 3);
  CHECK(index.begin(0) == 0);
  CHECK(index.begin(1) == 1);
  CHECK(index.begin(2) == 1);
  CHECK(index.begin(3) == 6);
  CHECK(index.block_hash(1) == frugal::Hash::of(index.data.subspan(4)));
  CHECK(RecordIndex::blocks_of(0, 4) == 0);
  CHECK(RecordIndex::blocks_of(~std::uint64_t{0}, 1) == ~std::uint64_t{0});
  CHECK(RecordIndexReader(file_of("", {}), "file").read().records == 0);
}

TEST_CASE("ends that fall, leave the data, or leave some of it over are refused") {
  CHECK(why({3, 2, 6}) == "record 1 ends at 2, and begins at 3 of 6");
  CHECK(why({7}) == "record 0 ends at 7, and begins at 0 of 6");
  CHECK(why({~std::uint64_t{0}, 6}).starts_with("record 0 ends at 18446744073709551615"));
  CHECK(why({3}) == "the last record ends at 3, and the data at 6");
  CHECK(why({}) == "the last record ends at 0, and the data at 6");
}

}  // namespace frugal_test::data_shards_record_index
