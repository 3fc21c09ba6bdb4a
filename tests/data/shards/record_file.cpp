// SPDX-License-Identifier: Apache-2.0
// torch-free
#include <frugal/data/shards/record_file.hpp>

#include "data/shards/records.hpp"
#include "support/files.hpp"

#include <doctest/doctest.h>

#include <frugal/core/source/sample_set.hpp>
#include <frugal/data/shards/shard_order.hpp>

#include <algorithm>
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
using frugal::OnDamage;
using frugal::RecordFile;
using frugal::RecordFolder;
using frugal::ShardList;
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

static_assert(frugal::IdentifiedSet<RecordFolder>);

/// Shards of these many records, numbered through.
void write_shards(std::filesystem::path const& folder, std::vector<std::int64_t> const& sizes) {
  std::vector<std::uint64_t> const none{0}, no_rows{0, 3};
  ShardList list;
  std::int64_t first = 0;
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    auto const name = ShardList::shard_name(i);
    if (sizes[i] == 0) {  // as another program may write it
      auto const bytes = file_of(
          {{"data", frugal::Dtype::u8, no_rows, {}}, {"target", frugal::Dtype::i64, none, {}}});
      put_bytes(folder / name, bytes);
      list.shards.push_back({.name = name, .hash = frugal::Hash::of(bytes)});
      continue;
    }
    list.shards.push_back(write_small(folder / name, sizes[i], first));
    list.shards.back().name = name;
    first += sizes[i];
  }
  list.write(folder);
}

void check_all(RecordFolder const& set, std::vector<std::int64_t> const& expected) {
  REQUIRE(set.size() == expected.size());
  for (std::size_t i = 0; i < expected.size(); ++i) {
    CHECK(is_small(set, i, expected[i]));
  }
}

std::vector<std::int64_t> range(std::int64_t begin, std::int64_t end) {
  std::vector<std::int64_t> all;
  for (std::int64_t i = begin; i < end; ++i) all.push_back(i);
  return all;
}

TEST_CASE("records are numbered through the shards, whatever their sizes") {
  for (auto const& sizes : std::vector<std::vector<std::int64_t>>{
           {10}, {4, 4, 4}, {4, 4, 1}, {1, 4, 2}, {4, 4, 9}, {0, 3, 0, 2}, {3, 3, 0}}) {
    TemporaryFolder const folder;
    write_shards(folder.path(), sizes);
    RecordFolder const set(folder.path());
    std::int64_t total = 0;
    for (std::int64_t const size : sizes) total += size;
    check_all(set, range(0, total));
    CHECK(set.damage().count() == 0);
    CHECK(set.shard_sizes() == std::vector<std::uint64_t>(sizes.begin(), sizes.end()));
  }
}

TEST_CASE("an order reads it shard by shard, each record once") {
  TemporaryFolder const folder;
  write_shards(folder.path(), {3, 4, 2, 5});
  RecordFolder const set(folder.path());
  frugal::ShardOrder order(set, {.batch = 14}, {.shards = 1});
  std::vector<std::uint64_t> indices(14);
  auto const slice = order.advance();
  REQUIRE(slice.count == 14);
  order.indices(slice, std::span(indices));
  std::vector<std::size_t> shards;  // in the order in which they are read
  for (std::uint64_t const index : indices) shards.push_back(set.place(index).shard);
  CHECK(std::unique(shards.begin(), shards.end()) == shards.begin() + 4);
  std::sort(indices.begin(), indices.end());
  for (std::uint64_t i = 0; i < 14; ++i) CHECK(indices[i] == i);
}

TEST_CASE("a path that cannot be followed is a StoreError") {
  TemporaryFolder const folder;
  std::filesystem::create_symlink("loop", folder / "loop");
  CHECK_THROWS_AS(RecordFolder(folder / "loop"), frugal::StoreError);
}

TEST_CASE("one file is a set, too") {
  TemporaryFolder const folder;
  write_small(folder / "a.safetensors", 5);
  RecordFolder const set(folder / "a.safetensors");
  check_all(set, range(0, 5));
  CHECK(set.name(3) == (folder / "a.safetensors").string() + ", record 3");
}

TEST_CASE("a missing, cut or foreign shard fails, or is skipped, counted and named") {
  for (std::string const damage : {"missing", "cut", "foreign", "empty"}) {
    CAPTURE(damage);
    TemporaryFolder const folder;
    write_shards(folder.path(), {4, 4, 4});
    auto const victim = folder / ShardList::shard_name(1);
    if (damage == "cut") {
      std::filesystem::resize_file(victim, std::filesystem::file_size(victim) - 1);
    } else {
      std::filesystem::remove(victim);
    }
    if (damage == "foreign") write_small(victim, 4, 100);
    if (damage == "empty") put_bytes(victim, {});
    CHECK_THROWS_AS(RecordFolder(folder.path()), frugal::Error);
    RecordFolder const set(folder.path(), {.on_damage = OnDamage::Skip});
    auto expected = range(0, 4);
    for (auto const i : range(8, 12)) expected.push_back(i);
    check_all(set, expected);
    CHECK(set.damage().names() == std::vector<std::string>{victim.string()});
  }
}

TEST_CASE("a list without sizes still has the hashes of its shards") {
  TemporaryFolder const folder;
  write_small(folder / "a.safetensors", 3);
  ShardList{.shards = {{.name = "a.safetensors"}}}.write(folder.path());
  CHECK_THROWS_WITH_AS(RecordFolder(folder.path()),
                       doctest::Contains("the shard is not the one that was written"), DataError);
}

TEST_CASE("a damaged block is found when it is read, or at once") {
  TemporaryFolder const folder;
  write_shards(folder.path(), {4, 4});
  auto const victim = folder / ShardList::shard_name(0);
  auto bytes = file_bytes(victim);
  bytes.back() ^= std::byte{1};
  put_bytes(victim, bytes);
  RecordFolder const late(folder.path(), {.on_damage = OnDamage::Skip});
  CHECK(late.size() == 8);
  CHECK(is_small(late, 4, 4));
  CHECK_THROWS_AS(static_cast<void>(late.get(3)), DataError);
  RecordFolder const early(folder.path(), {.on_damage = OnDamage::Skip, .verify = Verify::AtOpen});
  check_all(early, range(4, 8));
  CHECK(early.damage().count() == 1);
}

TEST_CASE("of an unfinished folder the complete shards can be taken") {
  TemporaryFolder const folder;
  write_shards(folder.path(), {4, 4});
  std::filesystem::remove(folder / ShardList::file_name);
  put_bytes(folder / ".shard-000002.safetensors-1.partial", bytes_of("half of a shard"));
  CHECK_THROWS_AS(RecordFolder(folder.path()), DataError);
  RecordFolder const set(folder.path(), {.on_damage = OnDamage::Skip});
  check_all(set, range(0, 8));
  CHECK(set.damage().names() == std::vector<std::string>{(folder / ShardList::file_name).string()});
}

TEST_CASE("without a shard there is no set") {
  TemporaryFolder const folder;
  CHECK_THROWS_AS(RecordFolder(folder.path(), {.on_damage = OnDamage::Skip}),
                  frugal::EmptySourceError);
}

TEST_CASE("the identity follows the content and the order of the shards") {
  TemporaryFolder const one, same, other, less;
  write_shards(one.path(), {4, 4});
  write_shards(same.path(), {4, 4});
  write_shards(other.path(), {3, 5});
  write_shards(less.path(), {4});
  std::string const identity = RecordFolder(one.path()).identity();
  CHECK(identity == RecordFolder(same.path()).identity());
  CHECK(identity != RecordFolder(other.path()).identity());
  CHECK(identity != RecordFolder(less.path()).identity());
}

TEST_CASE("a copy keeps the files alive") {
  TemporaryFolder const folder;
  write_shards(folder.path(), {4, 4});
  std::span<std::byte const> record;
  RecordFolder const copy = [&] {
    RecordFolder const set(folder.path());
    record = set.get(5);
    return set;
  }();
  CHECK(text_of(record) == "555");
}

TEST_CASE("a list may have a file of another program, by the hash of all its bytes") {
  TemporaryFolder const folder;
  std::vector<std::uint64_t> const shape{4};
  auto const bytes = file_of(
      {{.name = "a", .dtype = frugal::Dtype::u8, .shape = shape, .bytes = bytes_of("abcd")}});
  put_bytes(folder / "a.safetensors", bytes);
  ShardList{.shards = {{.name = "a.safetensors", .hash = frugal::Hash::of(bytes)}}}.write(
      folder.path());
  CHECK(text_of(RecordFolder(folder.path()).get(2)) == "c");
  CHECK_THROWS_AS(RecordFolder(folder.path(), {.verify = Verify::AtOpen}), DataError);
}

TEST_CASE("a shard with another layout than the first names both") {
  TemporaryFolder const folder;
  auto first = write_small(folder / "a.safetensors", 2);
  auto second = write_file(folder / "b.safetensors", {}, 16,
                           [](frugal::ShardFiles& files) { add_bytes(files, "text"); });
  first.name = "a.safetensors";
  second.name = "b.safetensors";
  ShardList{.shards = {first, second}}.write(folder.path());
  CHECK_THROWS_WITH_AS(RecordFolder(folder.path()),
                       doctest::Contains("they are bytes, and those of "), DataError);
  CHECK(RecordFolder(folder.path(), {.on_damage = OnDamage::Skip}).size() == 2);
}

}  // namespace frugal_test::data_shards_record_file
