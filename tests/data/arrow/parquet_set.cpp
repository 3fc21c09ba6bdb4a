// SPDX-License-Identifier: Apache-2.0
// torch-free
// needs: arrow
#include <frugal/core/source/sample_set.hpp>
#include <frugal/data/arrow/parquet_set.hpp>
#include <frugal/data/arrow/parquet_writer.hpp>

#include <support/files.hpp>
#include <support/no_more_files.hpp>

#include <arrow/api.h>
#include <arrow/io/file.h>
#include <doctest/doctest.h>
#include <parquet/arrow/writer.h>
#include <parquet/properties.h>

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace fs = std::filesystem;
using frugal::Cell;
using frugal::Numbers;
using frugal::ParquetSet;
using frugal::Row;
using frugal_test::support::TemporaryFolder;

namespace frugal_test::arrow_parquet_set {

static_assert(frugal::IdentifiedSet<ParquetSet>);

std::string pixels(std::int64_t i) {
  std::string bytes(8, '\0');
  for (std::size_t b = 0; b < bytes.size(); ++b)
    bytes[b] = static_cast<char>(31 * i + 7 * static_cast<int>(b));
  return bytes;
}

Row row(std::int64_t i) {
  return Row({{"label", Cell(i)},
              {"pixels", Cell(pixels(i))},
              {"weight", i % 3 == 2 ? Cell() : Cell(static_cast<double>(i) / 4)},
              {"ids", Cell(Numbers{.dtype = frugal::Dtype::i32,
                                   .bytes = std::string(static_cast<std::size_t>(4 * (i % 3)),
                                                        static_cast<char>(i))})},
              {"word", Cell("w" + std::to_string(i))},
              {"odd", Cell(i % 2 == 1)},
              {"tags", Cell(std::vector<std::string>{"a", std::to_string(i)})}});
}

void write(fs::path const& path, std::int64_t first, std::int64_t count,
           std::uint64_t per_group = 4, std::string compression = "zstd") {
  frugal::ParquetWriter writer(
      path,
      {.rows_per_group = per_group, .compression = std::move(compression), .binary = {"pixels"}});
  for (std::int64_t i = first; i < first + count; ++i) writer.add(row(i));
  writer.close();
}

void damage(fs::path const& from, fs::path const& to, std::size_t size,
            std::size_t flipped = SIZE_MAX) {
  std::string bytes = frugal_test::support::text_of(from);
  bytes.resize(std::min(size, bytes.size()));
  if (flipped < bytes.size()) bytes[flipped] = static_cast<char>(bytes[flipped] ^ 0x40);
  std::ofstream(to, std::ios::binary) << bytes;
}

TEST_CASE("rows come back as they were written, in any order, over several files and row groups") {
  TemporaryFolder const folder;
  for (std::string const compression : {"none", "snappy", "gzip", "zstd", "lz4", "brotli"}) {
    CAPTURE(compression);
    fs::path const in = folder / compression;
    fs::create_directory(in);
    write(in / "b.parquet", 10, 7, 4, compression);
    write(in / "a.parquet", 0, 10, 4, compression);
    ParquetSet const set(in);
    REQUIRE(set.size() == 17);
    CHECK(set.shard_sizes() == std::vector<std::uint64_t>{4, 4, 2, 4, 3});
    for (std::uint64_t k = 0; k < 17; ++k) {
      std::uint64_t const i = (5 * k + 3) % 17;
      Row const read = set.get(i);
      Row const wrote = row(static_cast<std::int64_t>(i));
      CHECK(read.columns() == wrote.columns());
      CHECK(read.cells() == wrote.cells());
    }
    CHECK(set.decoded() == 5);  // the cache holds all
  }
}

TEST_CASE("columns are read by name, in the order asked for") {
  TemporaryFolder const folder;
  write(folder / "a.parquet", 0, 5);
  ParquetSet const set(folder / "a.parquet", {.columns = {"word", "label"}});
  CHECK(set.columns() == std::vector<std::string>{"word", "label"});
  CHECK(set.get(3).cells() == std::vector<Cell>{Cell(std::string("w3")), Cell(std::int64_t{3})});
  CHECK_THROWS_WITH_AS(ParquetSet(folder / "a.parquet", {.columns = {"labels"}}),
                       doctest::Contains("the columns are label, pixels, weight, ids"),
                       frugal::SettingsError);
}

TEST_CASE("a sample has the name of its file and row, and the set an identity") {
  TemporaryFolder const folder;
  write(folder / "a.parquet", 0, 5);
  write(folder / "b.parquet", 5, 5);
  std::vector const both{folder / "a.parquet", folder / "b.parquet"};
  ParquetSet const set(both);
  CHECK(frugal::sample_name(set, 7) == (folder / "b.parquet").string() + ", row 2");
  CHECK(set.get(7).where() == (folder / "b.parquet").string() + ", row 2");
  CHECK(ParquetSet(both).identity() == set.identity());
  CHECK(ParquetSet(both, {.columns = {"label"}}).identity() != set.identity());
  fs::last_write_time(both[1], fs::last_write_time(both[1]) + std::chrono::seconds(1));
  CHECK(ParquetSet(both).identity() != set.identity());
}

TEST_CASE("a cache below one row group decodes it again when the order leaves it") {
  TemporaryFolder const folder;
  write(folder / "a.parquet", 0, 8);
  ParquetSet const set(folder / "a.parquet", {.columns = {"label"}, .cache_bytes = 1});
  for (std::uint64_t i = 0; i < 8; ++i) {
    CHECK(set.get(i).integer("label") == static_cast<std::int64_t>(i));
  }
  CHECK(set.decoded() == 2);
  for (std::uint64_t const i : {0U, 4U, 1U, 5U}) static_cast<void>(set.get(i));
  CHECK(set.decoded() == 6);
}

TEST_CASE("threads read one set") {
  TemporaryFolder const folder;
  write(folder / "a.parquet", 0, 200, 7);
  ParquetSet const set(folder / "a.parquet", {.columns = {"label", "pixels"}, .cache_bytes = 2000});
  std::atomic<int> wrong{0};
  std::vector<std::thread> threads;
  for (std::uint64_t t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (std::uint64_t k = 0; k < 200; ++k) {
        std::uint64_t const i = (k * 77 + t * 13) % 200;
        Row const read = set.get(i);
        if (read.integer("label") != static_cast<std::int64_t>(i) ||
            read.text("pixels") != pixels(static_cast<std::int64_t>(i)))
          ++wrong;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(wrong == 0);
}

TEST_CASE("a missing, empty or foreign file is named") {
  TemporaryFolder const folder;
  CHECK_THROWS_WITH_AS(ParquetSet(folder / "none.parquet"), doctest::Contains("none.parquet"),
                       frugal::DataError);
  std::ofstream(folder / "empty.parquet") << "";
  CHECK_THROWS_AS(ParquetSet(folder / "empty.parquet"), frugal::DataError);
  std::ofstream(folder / "text.parquet") << "a,b\n1,2\n3,4\n";
  CHECK_THROWS_AS(ParquetSet(folder / "text.parquet"), frugal::DataError);
}

TEST_CASE(
    "a file that cannot be read now is an error and not skipped, and so is one that changes") {
  TemporaryFolder const folder;
  write(folder / "a.parquet", 0, 20);
  write(folder / "b.parquet", 20, 20);
  std::vector<fs::path> const paths{folder / "a.parquet", folder / "b.parquet"};
  CHECK(frugal_test::support::throws_without_files<frugal::IoError>(
      [&] { return ParquetSet(paths, {.on_damage = frugal::OnDamage::Skip}); }));
  ParquetSet const set(paths, {.on_damage = frugal::OnDamage::Skip});
  CHECK(set.size() == 40);
  CHECK(set.get(3).integer("label") == 3);
  fs::resize_file(paths[1], 100);
  CHECK_THROWS_AS(set.get(39), frugal::ChangedError);
}

TEST_CASE("files of a set are not all open at once") {
  TemporaryFolder const folder;
  write(folder / "000.parquet", 0, 4);
  for (int i = 1; i < 300; ++i) {
    std::string const number = std::to_string(i);
    fs::copy_file(folder / "000.parquet",
                  folder / (std::string(3 - number.size(), '0') + number + ".parquet"));
  }
  auto const before = frugal_test::support::entries("/proc/self/fd");
  ParquetSet const set(folder.path());
  REQUIRE(set.size() == 1200);
  CHECK(set.get(1199).integer("label") == 3);
  CHECK(set.get(0).integer("label") == 0);
  CHECK(frugal_test::support::entries("/proc/self/fd") <= before + 256);
  CHECK_THROWS_AS(set.get(1200), frugal::DataError);
}

TEST_CASE("a file that is cut off anywhere is a DataError, or is skipped and counted") {
  TemporaryFolder const folder;
  write(folder / "whole.parquet", 0, 20);
  std::size_t const size = fs::file_size(folder / "whole.parquet");
  for (std::size_t part = 1; part < 7; ++part) {
    damage(folder / "whole.parquet", folder / "cut.parquet", size * part / 7);
    CHECK_THROWS_AS(ParquetSet(folder / "cut.parquet"), frugal::DataError);
  }
  ParquetSet const set({folder / "cut.parquet", folder / "whole.parquet", folder / "gone.parquet"},
                       {.on_damage = frugal::OnDamage::Skip});
  CHECK(set.size() == 20);
  CHECK(set.damage().count() == 2);
  CHECK(set.damage().names() ==
        std::vector{(folder / "cut.parquet").string(), (folder / "gone.parquet").string()});
  CHECK(set.get(7).integer("label") == 7);
  CHECK_THROWS_AS(ParquetSet(folder / "cut.parquet", {.on_damage = frugal::OnDamage::Skip}),
                  frugal::EmptySourceError);
}

TEST_CASE("a flipped bit in a page is found by its checksum, and the other row groups are read") {
  TemporaryFolder const folder;
  write(folder / "whole.parquet", 0, 8);
  std::size_t found = 0;
  std::size_t read = 0;
  std::size_t wrong = 0;
  std::size_t const size = fs::file_size(folder / "whole.parquet");
  for (std::size_t at = 4; at < size; at += 11) {
    damage(folder / "whole.parquet", folder / "flipped.parquet", size, at);
    try {
      ParquetSet const set(folder / "flipped.parquet");
      for (std::uint64_t i = 0; i < set.size(); ++i) {
        try {
          if (set.get(i).cells() != row(static_cast<std::int64_t>(i)).cells()) ++wrong;
          ++read;
        } catch (frugal::DataError const& error) {
          CHECK(error.fault().where.find("flipped.parquet, row group") != std::string::npos);
          ++found;
        }
      }
    } catch (frugal::DataError const&) {
      ++found;
    } catch (frugal::SettingsError const&) {
      ++found;
    }
  }
  CHECK(found > 0);
  CHECK(read > 0);
  CHECK(wrong == 0);
}

/// A file of the old INT96 times, these microseconds since 1970; a null for INT64_MIN.
void write_int96(fs::path const& path, std::vector<std::int64_t> const& microseconds) {
  arrow::TimestampBuilder builder(arrow::timestamp(arrow::TimeUnit::MICRO),
                                  arrow::default_memory_pool());
  for (std::int64_t const value : microseconds) {
    REQUIRE((value == INT64_MIN ? builder.AppendNull() : builder.Append(value)).ok());
  }
  auto const table = arrow::Table::Make(arrow::schema({arrow::field("when", builder.type())}),
                                        {*builder.Finish()});
  auto const out = *arrow::io::FileOutputStream::Open(path.string());
  parquet::ArrowWriterProperties::Builder how;
  how.enable_deprecated_int96_timestamps();
  REQUIRE(parquet::arrow::WriteTable(*table, arrow::default_memory_pool(), out, 1000,
                                     parquet::default_writer_properties(), how.build())
              .ok());
  REQUIRE(out->Close().ok());
}

TEST_CASE("INT96 times are read exactly in their unit, or refused") {
  TemporaryFolder const folder;
  // 2300-01-01 is day 120529.
  std::int64_t const late = std::int64_t{120529} * 86400000000;
  write_int96(folder / "a.parquet", {1500000, INT64_MIN, -1000000, late});
  ParquetSet const set(folder / "a.parquet");
  CHECK((set.unit("when") == frugal::TimeUnit::nanosecond));
  CHECK_THROWS_WITH_AS(static_cast<void>(set.get(0)),
                       doctest::Contains("row group 0, row 3 of the row group, column when"),
                       frugal::DataError);
  ParquetSet const micro(folder / "a.parquet", {.int96_unit = frugal::TimeUnit::microsecond});
  CHECK((micro.get(0).unit("when") == frugal::TimeUnit::microsecond));
  CHECK(micro.get(0).integer("when") == 1500000);
  CHECK(micro.get(1).is_null("when"));
  CHECK(micro.get(2).integer("when") == -1000000);
  CHECK(micro.get(3).integer("when") == late);
  ParquetSet const seconds(folder / "a.parquet", {.int96_unit = frugal::TimeUnit::second});
  CHECK_THROWS_WITH_AS(static_cast<void>(seconds.get(0)), doctest::Contains("no whole number"),
                       frugal::DataError);
  CHECK_THROWS_AS(ParquetSet(folder / "a.parquet", {.int96_unit = frugal::TimeUnit::day}),
                  frugal::SettingsError);
  write_int96(folder / "b.parquet", {1500000, -1000000});
  CHECK(ParquetSet(folder / "b.parquet").get(1).integer("when") == -1000000000);
}

TEST_CASE("what no cell holds is refused with its row and column, and can be left out") {
  TemporaryFolder const folder;
  arrow::UInt64Builder numbers;
  REQUIRE(numbers.AppendValues({7, std::uint64_t{1} << 63}).ok());
  arrow::ListBuilder words(arrow::default_memory_pool(), std::make_shared<arrow::StringBuilder>());
  auto& items = static_cast<arrow::StringBuilder&>(*words.value_builder());
  for (bool const null : {false, true}) {
    REQUIRE(words.Append().ok());
    REQUIRE(items.Append("a").ok());
    REQUIRE((null ? items.AppendNull() : items.Append("")).ok());
  }
  auto const table = arrow::Table::Make(
      arrow::schema({arrow::field("n", arrow::uint64()), arrow::field("w", words.type())}),
      {*numbers.Finish(), *words.Finish()});
  auto const out = *arrow::io::FileOutputStream::Open((folder / "a.parquet").string());
  REQUIRE(parquet::arrow::WriteTable(*table, arrow::default_memory_pool(), out).ok());
  REQUIRE(out->Close().ok());
  ParquetSet const n(folder / "a.parquet", {.columns = {"n"}});
  CHECK(n.get(0).integer("n") == 7);
  CHECK_THROWS_WITH_AS(static_cast<void>(n.get(1)),
                       doctest::Contains("a.parquet, row 1, column n): it is 9223372036854775808"),
                       frugal::DataError);
  ParquetSet const w(folder / "a.parquet", {.columns = {"w"}});
  CHECK(w.get(0).texts("w") == std::vector<std::string>{"a", ""});
  CHECK_THROWS_WITH_AS(static_cast<void>(w.get(1)),
                       doctest::Contains("a.parquet, row 1, column w): item 1 of 2"),
                       frugal::DataError);
}

TEST_CASE("a cache that holds fewer row groups than are read at a time is advised against") {
  TemporaryFolder const folder;
  write(folder / "a.parquet", 0, 40);
  ParquetSet const small(folder / "a.parquet", {.columns = {"label"}, .cache_bytes = 1});
  ParquetSet const large(folder / "a.parquet", {.columns = {"label"}});
  for (std::uint64_t i = 0; i < 40; ++i) {
    static_cast<void>(small.get(i * 7 % 40));
    static_cast<void>(large.get(i * 7 % 40));
  }
  CHECK(small.decoded() > small.groups());
  CHECK(small.group_warning(10).find("raise cache_bytes to 1 MiB") != std::string::npos);
  CHECK(small.group_warning(1).empty());
  CHECK(large.group_warning(10).empty());
}

TEST_CASE("files of other columns do not make one set") {
  TemporaryFolder const folder;
  write(folder / "a.parquet", 0, 5);
  frugal::ParquetWriter writer(folder / "b.parquet");
  writer.add(Row({{"label", Cell(std::string("five"))}}));
  writer.close();
  std::vector const both{folder / "a.parquet", folder / "b.parquet"};
  CHECK_THROWS_AS(ParquetSet(both, {.columns = {"label"}}), frugal::DataError);
  ParquetSet const set(both, {.columns = {"label"}, .on_damage = frugal::OnDamage::Skip});
  CHECK(set.size() == 5);
  CHECK(set.damage().names() == std::vector{both[1].string()});
  // A column that the first file has and the second one lacks is the fault of that file.
  CHECK_THROWS_WITH_AS(ParquetSet(both, {.columns = {"label", "word"}}),
                       doctest::Contains("there is no column word"), frugal::DataError);
  CHECK(ParquetSet(both, {.on_damage = frugal::OnDamage::Skip}).size() == 5);
  CHECK_THROWS_AS(ParquetSet(both, {.columns = {"words"}}), frugal::SettingsError);
}

}  // namespace frugal_test::arrow_parquet_set
