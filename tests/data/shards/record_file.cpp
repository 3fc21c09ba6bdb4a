// SPDX-License-Identifier: Apache-2.0
// torch-free
#include <frugal/data/shards/record_file.hpp>

#include "data/shards/records.hpp"
#include "support/files.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <string>
#include <thread>
#include <vector>

namespace frugal_test::data_shards_record_file {

using namespace frugal_test::records;
using frugal::DataError;
using frugal::Fault;
using frugal::RecordFile;
using frugal::RecordWriter;
using frugal::Verify;
using frugal_test::support::TemporaryFolder;

/// Ten small records: a header of one JSON, 160 bytes of data in 4 blocks.
std::vector<std::byte> small_file() {
  TemporaryFolder const folder;
  write_small(folder / "a.records", 10);
  return file_bytes(folder / "a.records");
}

Fault fault_of(std::vector<std::byte> const& bytes) {
  try {
    RecordFile const file = RecordFile::parse(bytes, "x.records");
    for (std::uint64_t i = 0; i < file.size(); ++i) static_cast<void>(file.record(i));
  } catch (DataError const& error) {
    CHECK(error.fault().where.starts_with("x.records"));
    CHECK_FALSE(error.fault().fix.empty());
    return error.fault();
  }
  FAIL("not refused");
  return {};
}

std::size_t data_at(std::vector<std::byte> const& bytes) {
  std::uint32_t json = 0;
  std::memcpy(&json, bytes.data() + 12, sizeof json);
  return (24 + json + 63) / 64 * 64;
}

TEST_CASE("records come back as they were written, in place and aligned") {
  TemporaryFolder const folder;
  write_small(folder / "a.records", 10);
  RecordFile const file(folder / "a.records");
  REQUIRE(file.size() == 10);
  CHECK(file.layout() == small_layout());
  CHECK(file.data_bytes() == 160);
  for (std::int64_t i = 9; i >= 0; --i) {
    auto const record = file.record(static_cast<std::uint64_t>(i));
    CHECK(std::ranges::equal(record, small_record(i)));
    CHECK(reinterpret_cast<std::uintptr_t>(record.data()) % 8 == 0);
  }
  CHECK(file.records(2, 5).size() == 80);
  CHECK(file.records(2, 5).data() == file.record(2).data());
}

TEST_CASE("records of any bytes have their lengths, empty ones too") {
  TemporaryFolder const folder;
  std::vector<std::string> const texts{"one", "", "a long record that fills blocks", "", "x"};
  RecordWriter writer(folder / "a.records", {}, 8);
  for (std::string const& text : texts) writer.add(bytes_of(text));
  auto const written = writer.close();
  CHECK(written.records == 5);
  CHECK(written.bytes == std::filesystem::file_size(folder / "a.records"));
  RecordFile const file(folder / "a.records", Verify::AtOpen);
  CHECK(file.hash() == written.hash);
  REQUIRE(file.size() == 5);
  for (std::size_t i = 0; i < texts.size(); ++i) CHECK(text_of(file.record(i)) == texts[i]);
}

TEST_CASE("a file without records is one") {
  for (bool const fixed : {true, false}) {
    TemporaryFolder const folder;
    RecordWriter writer(folder / "a.records", fixed ? small_layout() : frugal::RecordLayout());
    static_cast<void>(writer.close());
    CHECK(RecordFile(folder / "a.records", Verify::AtOpen).size() == 0);
  }
}

TEST_CASE("every cut is refused, wherever it is") {
  auto const whole = small_file();
  for (std::size_t size = 0; size < whole.size(); ++size) {
    CAPTURE(size);
    auto const fault = fault_of({whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(size)});
    CHECK(fault.what == (size == 0 ? "the file is empty" : "the file is cut off"));
  }
}

TEST_CASE("every changed byte is found, but for padding") {
  auto const whole = small_file();
  std::uint32_t json = 0;
  std::memcpy(&json, whole.data() + 12, sizeof json);
  std::size_t const data = data_at(whole);
  for (std::size_t at = 0; at < whole.size(); ++at) {
    bool const padding = (at >= 24 + json && at < data) || (at >= data + 160 && at < data + 192);
    if (padding) continue;
    CAPTURE(at);
    auto bytes = whole;
    bytes[at] ^= std::byte{0x10};
    CHECK_FALSE(fault_of(bytes).what.empty());
  }
}

TEST_CASE("other formats and newer versions are named") {
  auto bytes = small_file();
  CHECK(fault_of({bytes.begin() + 1, bytes.end()}).what == "this is no record file of frugal");
  bytes[8] = std::byte{2};
  auto const fault = fault_of(bytes);
  CHECK(fault.what == "a newer frugal wrote the file");
  CHECK(fault.why == "its version is 2, and this frugal reads up to 1");
}

TEST_CASE("a damaged block names file, byte, block and record") {
  auto bytes = small_file();
  std::size_t const data = data_at(bytes);
  bytes[data + 85] ^= std::byte{1};  // in block 2, bytes 80 to 119: records 5, 6 and half of 7
  RecordFile const file = RecordFile::parse(bytes, "x.records");
  CHECK(std::ranges::equal(file.record(4), small_record(4)));
  for (int again = 0; again < 2; ++again) {
    try {
      static_cast<void>(file.record(7));
      FAIL("not refused");
    } catch (DataError const& error) {
      CHECK(error.fault().what == "a block of records is damaged");
      CHECK(error.fault().where ==
            "x.records, byte " + std::to_string(data + 80) + ", block 2, record 7");
    }
  }
  CHECK(std::ranges::equal(file.record(8), small_record(8)));
  CHECK_THROWS_AS(RecordFile::parse(bytes, "x", Verify::AtOpen), DataError);
  CHECK(RecordFile::parse(bytes, "x", Verify::Never).record(7).size() == 16);
}

TEST_CASE("a block is hashed at its first touch and not again") {
  auto bytes = small_file();
  std::size_t const data = data_at(bytes);
  RecordFile const file = RecordFile::parse(bytes, "x.records");
  static_cast<void>(file.record(0));
  bytes[data + 1] ^= std::byte{1};  // behind its back, in the block that was checked
  CHECK(file.record(0)[1] == bytes[data + 1]);
  bytes[data + 125] ^= std::byte{1};  // in one that was not
  CHECK_THROWS_AS(static_cast<void>(file.record(8)), DataError);
}

TEST_CASE("claims that overflow are refused") {
  auto const whole = small_file();
  std::size_t const footer = whole.size() - 64;
  for (std::size_t field = 0; field < 4; ++field) {
    for (std::uint64_t const claim :
         {~std::uint64_t{0}, ~std::uint64_t{0} - 63, std::uint64_t{1} << 63, std::uint64_t{0}}) {
      CAPTURE(field);
      CAPTURE(claim);
      auto bytes = whole;
      std::memcpy(bytes.data() + footer + 8 * field, &claim, 8);
      std::uint64_t const hash = frugal::Hash::of(std::span(bytes).subspan(footer, 48));
      std::memcpy(bytes.data() + footer + 48, &hash, 8);
      CHECK(fault_of(bytes).what == "the index is damaged");
    }
  }
}

/// A file whose header is this JSON and whose hash is right.
std::vector<std::byte> with_header(std::string const& json) {
  std::vector<std::byte> bytes;
  frugal::detail::append_text(bytes, frugal::detail::record_magic);
  frugal::detail::append_le(bytes, frugal::detail::record_version);
  frugal::detail::append_le(bytes, static_cast<std::uint32_t>(json.size()));
  frugal::detail::append_le(bytes, frugal::Hash::of(bytes_of(json)));
  frugal::detail::append_text(bytes, json);
  bytes.resize(frugal::detail::record_aligned(bytes.size()) + 64);
  return bytes;
}

TEST_CASE("a hostile header is refused, although its hash is right") {
  std::string const begin = R"({"format":"frugal records","block_bytes":64,"fields":[)";
  for (std::string const& json :
       {std::string("{"), std::string("[]"), std::string(R"({"format":"other"})"),
        std::string(R"({"format":"frugal records","block_bytes":0,"fields":[]})"),
        std::string(R"({"format":"frugal records","block_bytes":2147483648,"fields":[]})"),
        std::string(R"({"format":"frugal records","block_bytes":64,"fields":[],"more":1})"),
        begin + R"({"name":"a","dtype":"U9","shape":[]}]})",
        begin + R"({"name":"a","dtype":"U8","shape":[-1]}]})",
        begin + R"({"name":"a","dtype":"U8","shape":[9223372036854775807,9]}]})",
        begin + R"({"name":"a","dtype":"U8","shape":[0]}]})",
        begin +
            R"({"name":"a","dtype":"U8","shape":[1]},{"name":"a","dtype":"U8","shape":[1]}]})"}) {
    CAPTURE(json);
    CHECK(fault_of(with_header(json)).what == "the header is damaged");
  }
  auto large = with_header("{}");
  std::uint32_t const claim = 0xffffffff;
  std::memcpy(large.data() + 12, &claim, 4);
  CHECK(fault_of(large).what == "the header is too large");
}

TEST_CASE("a file that is not there, or a folder, is a StoreError") {
  TemporaryFolder const folder;
  CHECK_THROWS_AS(RecordFile(folder / "none"), frugal::StoreError);
  CHECK_THROWS_AS(RecordFile(folder.path()), frugal::StoreError);
}

TEST_CASE("several threads read one file") {
  TemporaryFolder const folder;
  write_small(folder / "a.records", 500);
  RecordFile const file(folder / "a.records");
  std::vector<int> right(4);
  std::vector<std::thread> threads;
  for (std::size_t t = 0; t < right.size(); ++t) {
    threads.emplace_back([&, t] {
      for (std::int64_t i = 0; i < 500; ++i) {
        auto const at = static_cast<std::uint64_t>(t % 2 == 0 ? i : 499 - i);
        right[t] +=
            std::ranges::equal(file.record(at), small_record(static_cast<std::int64_t>(at)));
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(right == std::vector<int>{500, 500, 500, 500});
}

}  // namespace frugal_test::data_shards_record_file
