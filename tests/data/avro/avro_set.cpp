// SPDX-License-Identifier: Apache-2.0
// torch-free
// needs: avro
#include <frugal/data/avro/avro_set.hpp>

#include <support/files.hpp>
#include <support/no_more_files.hpp>

#include <doctest/doctest.h>

#include <frugal/core/source/sample_set.hpp>
#include <frugal/data/avro/avro_writer.hpp>

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

namespace fs = std::filesystem;
using frugal::AvroCodec;
using frugal::AvroSet;
using frugal::AvroWriter;
using frugal::Cell;
using frugal::Numbers;
using frugal::Row;
using frugal_test::support::TemporaryFolder;

namespace frugal_test::avro_set {

static_assert(frugal::IdentifiedSet<AvroSet>);

char const* const schema = R"({"type": "record", "name": "sample", "fields": [
  {"name": "label", "type": "long"},
  {"name": "small", "type": "int"},
  {"name": "weight", "type": ["null", "double"]},
  {"name": "score", "type": "float"},
  {"name": "odd", "type": "boolean"},
  {"name": "word", "type": "string"},
  {"name": "pixels", "type": "bytes"},
  {"name": "key", "type": {"type": "fixed", "name": "key", "size": 3}},
  {"name": "color", "type": {"type": "enum", "name": "color", "symbols": ["red", "green"]}},
  {"name": "ids", "type": {"type": "array", "items": "int"}},
  {"name": "tags", "type": {"type": "array", "items": "string"}},
  {"name": "box", "type": {"type": "record", "name": "box", "fields": [
    {"name": "width", "type": "long"}, {"name": "again", "type": "color"}]}}]})";

Row row(std::int64_t i) {
  std::string ids;
  for (std::int32_t k = 0; k < i % 4; ++k) ids.append(reinterpret_cast<char const*>(&k), 4);
  return Row({{"label", Cell(i * 1000000007 - 50000000000)},
              {"small", Cell(-i)},
              {"weight", i % 3 == 2 ? Cell() : Cell(static_cast<double>(i) / 7)},
              {"score", Cell(static_cast<double>(i) / 4)},
              {"odd", Cell(i % 2 == 1)},
              {"word", Cell("w\xc3\xa9" + std::to_string(i))},
              {"pixels", Cell(std::string(static_cast<std::size_t>(i % 9), static_cast<char>(i)))},
              {"key", Cell(std::string("k\0y", 3))},
              {"color", Cell(std::string(i % 2 == 0 ? "red" : "green"))},
              {"ids", Cell(Numbers{.dtype = frugal::Dtype::i32, .bytes = ids})},
              {"tags", Cell(std::vector<std::string>(static_cast<std::size_t>(i % 3), "tag"))},
              {"box.width", Cell(i)},
              {"box.again", Cell(std::string("green"))}});
}

fs::path write(fs::path path, std::int64_t first, std::int64_t count,
               AvroCodec codec = AvroCodec::deflate) {
  AvroWriter writer(path, schema, {.codec = codec, .block_bytes = 200});
  for (std::int64_t i = first; i < first + count; ++i) writer.add(row(i));
  writer.close();
  return path;
}

void damage(fs::path const& from, fs::path const& to, std::size_t size,
            std::size_t flipped = SIZE_MAX) {
  std::string bytes = frugal_test::support::text_of(from);
  bytes.resize(std::min(size, bytes.size()));
  if (flipped < bytes.size()) bytes[flipped] = static_cast<char>(bytes[flipped] ^ 0x20);
  std::ofstream(to, std::ios::binary) << bytes;
}

TEST_CASE("a block above the limit is refused before memory is allocated for it") {
  TemporaryFolder const folder;
  // A file with a hole: a block that claims a tebibyte, and has it.
  frugal::detail::AvroEncoder head;
  head.raw("Obj\1");
  head.integer(1);
  head.bytes("avro.schema");
  head.bytes(R"("bytes")");
  head.integer(0);
  std::string const sync(16, 's');
  head.raw(sync);
  head.integer(1);
  std::int64_t const bytes = std::int64_t{1} << 40;
  head.integer(bytes);
  fs::path const path = folder / "hole.avro";
  std::ofstream(path, std::ios::binary) << head.text();
  fs::resize_file(path, head.text().size() + static_cast<std::uint64_t>(bytes));
  std::ofstream(path, std::ios::binary | std::ios::app) << sync;
  AvroSet const set(path);
  CHECK_THROWS_WITH_AS(set.get(0), doctest::Contains("a block is too large"), frugal::DataError);
}

TEST_CASE("rows come back as they were written, in any order, over several files and blocks") {
  for (AvroCodec const codec : {AvroCodec::null, AvroCodec::deflate, AvroCodec::zstandard}) {
    TemporaryFolder const folder;
    write(folder / "b.avro", 10, 7, codec);
    write(folder / "a.avro", 0, 10, codec);
    AvroSet const set(folder.path());
    REQUIRE(set.size() == 17);
    CHECK(set.shard_sizes().size() == 4);
    for (std::uint64_t k = 0; k < 17; ++k) {
      std::uint64_t const i = (5 * k + 3) % 17;
      CHECK(set.get(i).columns() == row(0).columns());
      CHECK(set.get(i).cells() == row(static_cast<std::int64_t>(i)).cells());
    }
    CHECK(set.decoded() == set.shard_sizes().size());
    CHECK(frugal::sample_name(set, 12) == (folder / "b.avro").string() + ", row 2");
    CHECK(set.get(12).where() == frugal::sample_name(set, 12));
  }
}

TEST_CASE("columns are read by name, in the order asked for") {
  TemporaryFolder const folder;
  auto const path = write(folder / "a.avro", 0, 5);
  AvroSet const set(path, {.columns = {"box.width", "word"}});
  CHECK(set.get(3).cells() == std::vector<Cell>{Cell(std::int64_t{3}), row(3).cell("word")});
  CHECK_THROWS_WITH_AS(AvroSet(path, {.columns = {"width"}}), doctest::Contains("box.width"),
                       frugal::SettingsError);
  CHECK_THROWS_AS(AvroSet(path, {.columns = {"word", "word"}}), frugal::SettingsError);
  CHECK(set.identity() != AvroSet(path).identity());
}

TEST_CASE("a map may be in a file, but is no column") {
  TemporaryFolder const folder;
  std::string const with_map = R"({"type": "record", "name": "r", "fields": [
    {"name": "m", "type": {"type": "map", "values": "long"}}, {"name": "x", "type": "long"}]})";
  frugal::detail::AvroEncoder out;
  out.raw("Obj\1");
  out.integer(1);
  out.bytes("avro.schema");
  out.bytes(with_map);
  out.integer(0);
  out.raw("0123456789abcdef");
  frugal::detail::AvroEncoder rows;
  for (std::int64_t i = 0; i < 3; ++i) {
    rows.integer(-1);  // a block of one item with its size
    rows.integer(3);
    rows.bytes("k");
    rows.integer(1);
    rows.integer(0);
    rows.integer(i);
  }
  out.integer(3);
  out.bytes(rows.text());
  out.raw("0123456789abcdef");
  std::ofstream(folder / "a.avro", std::ios::binary) << out.text();
  CHECK(AvroSet(folder / "a.avro", {.columns = {"x"}}).get(2).integer("x") == 2);
  CHECK_THROWS_WITH_AS(AvroSet(folder / "a.avro"), doctest::Contains("column m"),
                       frugal::SettingsError);
}

TEST_CASE("a missing, empty or foreign file is named") {
  TemporaryFolder const folder;
  CHECK_THROWS_WITH_AS(AvroSet(folder / "none.avro"), doctest::Contains("none.avro"),
                       frugal::DataError);
  std::ofstream(folder / "empty.avro") << "";
  CHECK_THROWS_WITH_AS(AvroSet(folder / "empty.avro"), doctest::Contains("it is empty"),
                       frugal::DataError);
  std::ofstream(folder / "text.avro") << "a,b\n1,2\n3,4\n";
  CHECK_THROWS_AS(AvroSet(folder / "text.avro"), frugal::DataError);
}

TEST_CASE(
    "a file that cannot be read now is an error and not skipped, and so is one that changes") {
  TemporaryFolder const folder;
  auto const path = write(folder / "a.avro", 0, 40);
  auto const before = frugal_test::support::entries("/proc/self/fd");
  CHECK(frugal_test::support::throws_without_files<frugal::IoError>(
      [&] { return AvroSet(path, {.on_damage = frugal::OnDamage::Skip}); }));
  std::vector<fs::path> many;
  for (int i = 0; i < 300; ++i) {
    many.push_back(folder / (std::to_string(i) + ".avro"));
    fs::copy_file(path, many.back());
  }
  AvroSet const set(many, {.on_damage = frugal::OnDamage::Skip});
  REQUIRE(set.size() == 12'000);
  CHECK(set.get(11'999).cells() == row(39).cells());
  CHECK(frugal_test::support::entries("/proc/self/fd") <= before + 256);
  CHECK_THROWS_AS(set.get(12'000), frugal::DataError);
  fs::resize_file(many[0], 100);
  CHECK_THROWS_AS(set.get(0), frugal::ChangedError);
}

TEST_CASE("a file that is cut off is a DataError, or gives the blocks before the cut") {
  TemporaryFolder const folder;
  auto const whole = write(folder / "whole.avro", 0, 40);
  std::size_t const size = fs::file_size(whole);
  std::uint64_t before = 0;
  for (std::size_t part = 1; part < 7; ++part) {
    auto const cut = folder / "cut.avro";
    damage(whole, cut, size * part / 7 + 1);
    CHECK_THROWS_AS(AvroSet{cut}, frugal::DataError);
    AvroSet const set(std::vector{cut, write(folder / "other.avro", 100, 2)},
                      {.on_damage = frugal::OnDamage::Skip});
    std::uint64_t const kept = set.size() - 2;
    CHECK(set.damage().count() == 1);
    CHECK(kept >= before);
    CHECK(kept < 40);
    for (std::uint64_t i = 0; i < kept; ++i) {
      CHECK(set.get(i).cells() == row(static_cast<std::int64_t>(i)).cells());
    }
    CHECK(set.get(kept).cells() == row(100).cells());
    fs::remove(folder / "other.avro");
    before = kept;
  }
  CHECK(before > 20);
}

TEST_CASE("no flipped bit of a compressed file crashes, and what is damaged is named") {
  TemporaryFolder const folder;
  for (AvroCodec const codec : {AvroCodec::null, AvroCodec::deflate, AvroCodec::zstandard}) {
    auto const whole =
        write(folder / (std::string("whole") + frugal::detail::codec_name(codec)), 0, 12, codec);
    std::size_t const size = fs::file_size(whole);
    std::size_t found = 0;
    for (std::size_t at = 0; at < size; at += 3) {
      damage(whole, folder / "flipped", size, at);
      try {
        AvroSet const set(folder / "flipped");
        for (std::uint64_t i = 0; i < set.size(); ++i) static_cast<void>(set.get(i));
      } catch (frugal::DataError const& error) {
        CHECK(error.fault().where.find("flipped") != std::string::npos);
        ++found;
      }
    }
    CHECK(found > 10);
  }
}

TEST_CASE("files of two schemas do not make one set") {
  TemporaryFolder const folder;
  auto const a = write(folder / "a.avro", 0, 3);
  AvroWriter writer(folder / "b.avro", R"("long")");
  writer.add(Row({{"value", Cell(std::int64_t{7})}}));
  writer.close();
  CHECK_THROWS_AS(AvroSet(std::vector{a, folder / "b.avro"}), frugal::DataError);
  AvroSet const set(std::vector{a, folder / "b.avro"}, {.on_damage = frugal::OnDamage::Skip});
  CHECK(set.size() == 3);
  CHECK(set.damage().count() == 1);
  CHECK(AvroSet(folder / "b.avro").get(0).integer("value") == 7);
}

TEST_CASE("threads read one set") {
  TemporaryFolder const folder;
  AvroSet const set(write(folder / "a.avro", 0, 100), {.cache_bytes = 2000});
  std::atomic<int> wrong{0};
  std::vector<std::thread> threads;
  for (std::uint64_t t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (std::uint64_t k = 0; k < 100; ++k) {
        std::uint64_t const i = (k * 77 + t * 13) % 100;
        if (set.get(i).cells() != row(static_cast<std::int64_t>(i)).cells()) ++wrong;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(wrong == 0);
}

TEST_CASE("a block that grows beyond the limit is refused before it has the memory") {
  TemporaryFolder const folder;
  AvroWriter writer(folder / "a.avro", R"("bytes")");
  writer.add(Row({{"value", Cell(std::string(5 << 20, '\0'))}}));
  writer.close();
  CHECK(fs::file_size(folder / "a.avro") < 10000);
  AvroSet const set(folder / "a.avro", {.most_block_bytes = 1 << 20});
  CHECK_THROWS_WITH_AS(static_cast<void>(set.get(0)), doctest::Contains("too large"),
                       frugal::DataError);
}

}  // namespace frugal_test::avro_set
