// SPDX-License-Identifier: Apache-2.0
// torch-free
#include <frugal/data/shards/record_file.hpp>

#include "data/shards/records.hpp"
#include "support/files.hpp"

#include <doctest/doctest.h>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

namespace frugal_test::data_shards_record_file {

using namespace frugal_test::records;
using frugal::DataError;
using frugal::Dtype;
using frugal::Fault;
using frugal::RecordFile;
using frugal::TensorView;
using frugal::Verify;
using frugal_test::support::TemporaryFolder;

/// Ten small records: 80 bytes of numbers in 5 blocks, then 30 bytes of "data" in 2 blocks.
std::vector<std::byte> small_file() {
  TemporaryFolder const folder;
  write_small(folder / "a", 10);
  return file_bytes(folder / "a");
}

Fault fault_of(std::vector<std::byte> const& bytes, Verify verify = Verify::FirstTouch) {
  try {
    RecordFile const file = RecordFile::parse(bytes, "x", verify);
    for (std::uint64_t i = 0; i < file.size(); ++i) {
      static_cast<void>(file.get(i));
      for (std::size_t k = 1; k < file.layout().fields().size(); ++k) {
        static_cast<void>(file.get(i, k));
      }
    }
  } catch (DataError const& error) {
    CHECK(error.fault().where.starts_with("x"));
    CHECK_FALSE(error.fault().fix.empty());
    return error.fault();
  }
  FAIL("not refused");
  return {};
}

TEST_CASE("records come back as they were written, in place and aligned") {
  TemporaryFolder const folder;
  write_small(folder / "a", 10);
  RecordFile const file(folder / "a");
  REQUIRE(file.size() == 10);
  CHECK(file.layout() == small_layout());
  for (std::int64_t i = 9; i >= 0; --i) {
    auto const record = static_cast<std::uint64_t>(i);
    CHECK(is_small(file, record, i));
    CHECK(reinterpret_cast<std::uintptr_t>(file.get(record, 1).data()) % 8 == 0);
    CHECK(file.get(record).data() == file.get(0).data() + 3 * i);
  }
}

TEST_CASE("records of any bytes have their lengths, empty ones too") {
  TemporaryFolder const folder;
  std::vector<std::string> const texts{"one", "", "a long record that fills blocks", "", "x"};
  auto const written = write_file(folder / "a", {}, 8, [&](frugal::ShardFiles& files) {
    for (std::string const& text : texts) add_bytes(files, text);
  });
  CHECK(written.records == 5);
  CHECK(written.bytes == std::filesystem::file_size(folder / "a"));
  RecordFile const file(folder / "a", Verify::AtOpen);
  CHECK(file.hash() == written.hash);
  REQUIRE(file.size() == 5);
  for (std::size_t i = 0; i < texts.size(); ++i) CHECK(text_of(file.get(i)) == texts[i]);
}

TEST_CASE("a file without records is one") {
  std::vector<std::uint64_t> const none{0}, one{1}, rows{0, 3};
  std::vector<std::byte> const zero(8);
  for (auto const& tensors : std::vector<std::vector<TensorView>>{
           {{"data", Dtype::u8, rows, {}}},
           {{"bytes", Dtype::u8, none, {}}, {"bytes.offsets", Dtype::i64, one, zero}}}) {
    CHECK(RecordFile::parse(file_of(tensors), "x").size() == 0);
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

TEST_CASE("every changed byte is found, in the header and the hashes as well") {
  auto const whole = small_file();
  for (std::size_t at = 0; at < whole.size(); ++at) {
    for (auto const bit : {std::byte{0x01}, std::byte{0x20}}) {
      CAPTURE(at);
      auto bytes = whole;
      bytes[at] ^= bit;
      CHECK_FALSE(fault_of(bytes).what.empty());
    }
  }
}

TEST_CASE("other formats and newer versions are named") {
  auto bytes = small_file();
  CHECK(fault_of({bytes.begin() + 8, bytes.end()}).what.starts_with("this is not a safetensors"));
  std::string_view const version = R"(\"version\":1)";
  bytes[text_of(bytes).find(version) + version.size() - 1] = std::byte{'2'};
  auto const fault = fault_of(bytes);
  CHECK(fault.what == "a newer frugal wrote the file");
  CHECK(fault.why == "its version is 2, and this frugal reads up to 1");
}

TEST_CASE("a damaged block names file, tensor, byte, block and record") {
  auto bytes = small_file();
  std::size_t const data = bytes.size() - 30;
  bytes[data + 20] ^= std::byte{1};  // in block 1, bytes 16 to 29: half of record 5, and 6 to 9
  RecordFile const file = RecordFile::parse(bytes, "x");
  CHECK(is_small(file, 4, 4));
  for (int again = 0; again < 2; ++again) {
    try {
      static_cast<void>(file.get(7));
      FAIL("not refused");
    } catch (DataError const& error) {
      CHECK(error.fault().what == "a block of records is damaged");
      CHECK(error.fault().where ==
            "x, tensor \"data\", byte " + std::to_string(data + 16) + ", block 1, record 7");
    }
  }
  CHECK(file.get(7, 1).size() == 8);  // the block of another field
  CHECK_THROWS_AS(static_cast<void>(file.get(5)), DataError);
  CHECK_THROWS_AS(RecordFile::parse(bytes, "x", Verify::AtOpen), DataError);
  CHECK(is_small(RecordFile::parse(bytes, "x", Verify::Never), 7, 7));
}

TEST_CASE("a block is hashed at its first touch and not again") {
  auto bytes = small_file();
  std::size_t const data = bytes.size() - 30;
  RecordFile const file = RecordFile::parse(bytes, "x");
  static_cast<void>(file.get(0));
  bytes[data + 1] ^= std::byte{1};  // behind its back, in the block that was checked
  CHECK(file.get(0)[1] == bytes[data + 1]);
  bytes[data + 25] ^= std::byte{1};  // in one that was not
  CHECK_THROWS_AS(static_cast<void>(file.get(8)), DataError);
}

using Metadata = frugal::SafetensorsWriter::Metadata;
using Shape = std::vector<std::uint64_t>;

std::vector<std::byte> const zeros(64);
std::span<std::byte const> zero(std::size_t count) { return std::span(zeros).first(count); }

/// Two bytes of "a" in blocks of 16, with a hash that is right.
std::vector<std::byte> with_metadata(std::string const& fields) {
  Shape const two{2};
  std::uint64_t const hashes[] = {frugal::Hash::of(zero(2)), 0};
  return file_of({{"a", Dtype::u8, two, zero(2)},
                  {"frugal.block_hashes", Dtype::u64, two, std::as_bytes(std::span(hashes))}},
                 {{"frugal.records", R"({"format":"frugal records","version":1,)" + fields + "}"}});
}

TEST_CASE("hostile metadata is refused, although its hash is right") {
  CHECK(RecordFile::parse(with_metadata(R"("block_bytes":16,"fields":["a"])"), "x").size() == 2);
  for (std::string const fields :
       {R"("block_bytes":16)", R"("block_bytes":0,"fields":["a"])", R"("fields":["a"])",
        R"("block_bytes":16,"fields":["a"],"more":1)", R"("block_bytes":-1,"fields":["a"])"}) {
    CAPTURE(fields);
    CHECK(fault_of(with_metadata(fields)).what == "the metadata of the records is damaged");
  }
  for (std::string const fields :
       {R"("block_bytes":16,"fields":["b"])", R"("block_bytes":16,"fields":[])",
        R"("block_bytes":16,"fields":["a","a"])", R"("block_bytes":1,"fields":["a"])",
        R"("block_bytes":16,"fields":["a","frugal.block_hashes"])"}) {
    CAPTURE(fields);
    CHECK_FALSE(fault_of(with_metadata(fields)).what.empty());
  }
}

TEST_CASE("hashes without their metadata are refused, and metadata without its hashes") {
  Shape const two{2};
  TensorView const a{"a", Dtype::u8, two, zero(2)};
  TensorView const hashes{"frugal.block_hashes", Dtype::u64, two, zero(16)};
  CHECK(fault_of(file_of({a, hashes})).why ==
        "a shard has a tensor or metadata named \"frugal.block_hashes\" itself");
  Metadata const metadata{
      {"frugal.records",
       R"({"format":"frugal records","version":1,"block_bytes":16,"fields":["a"]})"}};
  CHECK(fault_of(file_of({a}, metadata)).what == "the file does not have the tensor");
  TensorView const signed_ones{"frugal.block_hashes", Dtype::i64, two, zero(16)};
  CHECK(fault_of(file_of({a, signed_ones}, metadata)).why == "it is not U64 [2]");
  CHECK(fault_of(file_of({{"a", Dtype::f4, two, zero(1)}, hashes}, metadata)).why ==
        "the field \"a\" ends within a byte");
}

TEST_CASE("a file of another program is read: fields by name, and nothing to verify") {
  Shape const images{2, 3}, labels{2};
  std::int64_t const numbers[] = {7, -8};
  auto bytes = file_of({{"image", Dtype::u8, images, bytes_of("abcdef")},
                        {"class", Dtype::i64, labels, std::as_bytes(std::span(numbers))}},
                       {{"format", "np"}});
  RecordFile const file = RecordFile::parse(bytes, "x");
  REQUIRE(file.size() == 2);
  CHECK(file.layout().text() == "class I64 [], image U8 [3]");
  CHECK(text_of(file.get(1, 1)) == "def");
  CHECK(frugal::detail::load_le<std::int64_t>(file.get(1), 0) == -8);
  CHECK(RecordFile::parse(bytes, "x", Verify::Never).size() == 2);
  CHECK(fault_of(bytes, Verify::AtOpen).what == "the file has no hashes to verify");
  std::uint64_t const before = file.hash();
  CHECK(before == frugal::Hash::of(bytes));
  bytes.back() ^= std::byte{1};
  CHECK(RecordFile::parse(bytes, "x").hash() != before);
}

TEST_CASE("tensors that are no records are refused") {
  Shape const two{2}, three{3}, scalar{}, none{2, 0};
  CHECK(fault_of(file_of({{"a", Dtype::u8, two, zero(2)}, {"b", Dtype::u8, three, zero(3)}})).why ==
        "it has 3 rows, and tensor \"a\" has 2");
  CHECK(fault_of(file_of({{"a", Dtype::u8, scalar, zero(1)}})).why ==
        "it is a number: it has no row for each record");
  CHECK(fault_of(file_of({{"a", Dtype::u8, none, {}}})).why == "a record has no bytes");
  CHECK(fault_of(file_of({})).why == "a record has 1 to 256 fields, and this one 0");
  // As a writer that does not align would leave it.
  std::string const header = R"({"a":{"dtype":"I64","shape":[1],"data_offsets":[0,8]}} )";
  std::vector<std::byte> odd;
  frugal::detail::append_le(odd, std::uint64_t{header.size()});
  frugal::detail::append_text(odd, header);
  frugal::detail::append_bytes(odd, zero(8));
  CHECK(fault_of(odd).why == "it is not aligned for its type");
}

/// Records of any bytes: "abcdef" with these offsets.
std::vector<std::byte> with_offsets(std::vector<std::int64_t> const& offsets) {
  Shape const six{6}, count{offsets.size()};
  return file_of({{"bytes", Dtype::u8, six, bytes_of("abcdef")},
                  {"bytes.offsets", Dtype::i64, count, std::as_bytes(std::span(offsets))}});
}

TEST_CASE("offsets that fall, leave the bytes, or leave some of them over are refused") {
  auto const bytes = with_offsets({0, 1, 1, 6});
  RecordFile const file = RecordFile::parse(bytes, "x");
  REQUIRE(file.size() == 3);
  CHECK(text_of(file.get(2)) == "bcdef");
  CHECK(fault_of(with_offsets({0, 3, 2, 6})).why ==
        "offset 2 of 3 is 2, the one before 3, and the records have 6 bytes");
  for (std::vector<std::int64_t> const& offsets :
       std::vector<std::vector<std::int64_t>>{{0, 7}, {0, -1, 6}, {0, 3}, {1, 6}, {0}, {0, 7, 6}}) {
    CHECK(fault_of(with_offsets(offsets)).why.starts_with("offset "));
  }
  Shape const six{6}, three{3}, none{0};
  TensorView const data{"bytes", Dtype::u8, six, bytes_of("abcdef")};
  for (std::vector<TensorView> const& tensors :
       std::vector<std::vector<TensorView>>{{data, {"bytes.offsets", Dtype::i64, none, {}}},
                                            {data, {"bytes.offsets", Dtype::u8, six, zero(6)}},
                                            {{"bytes.offsets", Dtype::i64, three, zero(24)}},
                                            {data,
                                             {"bytes.offsets", Dtype::i64, three, zero(24)},
                                             {"c", Dtype::u8, six, zero(6)}}}) {
    CHECK(fault_of(file_of(tensors)).why.starts_with("records of any bytes are "));
  }
}

TEST_CASE("a file that is not there, or a folder, is a StoreError") {
  TemporaryFolder const folder;
  CHECK_THROWS_AS(RecordFile(folder / "none"), frugal::StoreError);
  CHECK_THROWS_AS(RecordFile(folder.path()), frugal::StoreError);
}

TEST_CASE("several threads read one file") {
  TemporaryFolder const folder;
  write_small(folder / "a", 500);
  RecordFile const file(folder / "a");
  std::vector<int> right(4);
  std::vector<std::thread> threads;
  for (std::size_t t = 0; t < right.size(); ++t) {
    threads.emplace_back([&, t] {
      for (std::int64_t i = 0; i < 500; ++i) {
        auto const at = static_cast<std::uint64_t>(t % 2 == 0 ? i : 499 - i);
        right[t] += is_small(file, at, static_cast<std::int64_t>(at));
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(right == std::vector<int>{500, 500, 500, 500});
}

}  // namespace frugal_test::data_shards_record_file
