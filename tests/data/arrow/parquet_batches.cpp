// SPDX-License-Identifier: Apache-2.0
// needs: arrow
#include <frugal/data/arrow/parquet_batches.hpp>

#include <support/files.hpp>

#include <doctest/doctest.h>

#include <frugal/core/source/source.hpp>
#include <frugal/data/arrow/parquet_writer.hpp>
#include <frugal/data/sampling/order.hpp>

#include <arrow/api.h>
#include <arrow/io/file.h>
#include <arrow/util/float16.h>
#include <parquet/arrow/writer.h>

#include <algorithm>
#include <concepts>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <memory>
#include <string>
#include <tuple>
#include <vector>

namespace frugal_test::arrow_column_tensor {

using frugal::column_tensor;

template <class Builder, class T>
std::shared_ptr<arrow::Array> array(std::vector<T> const& values) {
  Builder builder;
  for (T const& value : values) REQUIRE(builder.Append(value).ok());
  return *builder.Finish();
}

/// Lists of these lengths over 0, 1, 2, ...
std::shared_ptr<arrow::Array> lists(std::vector<std::int64_t> const& lengths) {
  auto items = std::make_shared<arrow::Int32Builder>();
  arrow::ListBuilder builder(arrow::default_memory_pool(), items);
  std::int32_t next = 0;
  for (std::int64_t const length : lengths) {
    REQUIRE(builder.Append().ok());
    for (std::int64_t i = 0; i < length; ++i) REQUIRE(items->Append(next++).ok());
  }
  return *builder.Finish();
}

bool same(at::Tensor const& a, at::Tensor const& b) {
  return a.scalar_type() == b.scalar_type() && at::equal(a, b);
}

TEST_CASE("a column of numbers is a view of Arrow's memory") {
  auto const column = array<arrow::FloatBuilder>(std::vector<float>{0.5F, 1.5F, 2.5F});
  at::Tensor const tensor = column_tensor(*column, "x");
  CHECK(same(tensor, at::tensor({0.5F, 1.5F, 2.5F})));
  CHECK(tensor.const_data_ptr() == column->data()->buffers[1]->data());
}

TEST_CASE("a tensor keeps the memory that it views") {
  at::Tensor tensor;
  {
    auto const column = array<arrow::Int64Builder>(std::vector<std::int64_t>(10000, 7));
    tensor = column_tensor(*column, "x");
  }
  CHECK(tensor.sum().item<std::int64_t>() == 70000);
}

TEST_CASE("a slice of a column begins where it should") {
  CHECK(same(
      column_tensor(*array<arrow::Int16Builder>(std::vector<std::int16_t>{1, 2, 3, 4})->Slice(1, 2),
                    "x"),
      at::tensor({2, 3}, at::kShort)));
  CHECK(same(
      column_tensor(
          *array<arrow::BooleanBuilder>(std::vector<bool>{true, false, false, true})->Slice(2, 2),
          "x"),
      at::tensor({0, 1}).to(at::kBool)));
  CHECK(same(
      column_tensor(
          *array<arrow::UInt16Builder>(std::vector<std::uint16_t>{1, 65535, 3})->Slice(1, 2), "x"),
      at::tensor({65535, 3}, at::kInt)));
  CHECK(same(
      column_tensor(
          *array<arrow::StringBuilder>(std::vector<std::string>{"ab", "cd", "ef"})->Slice(1, 2),
          "x"),
      at::tensor({'c', 'd', 'e', 'f'}, at::kByte).view({2, 2})));
  CHECK(same(column_tensor(*lists({2, 2, 2})->Slice(1, 2), "x"),
             at::tensor({2, 3, 4, 5}, at::kInt).view({2, 2})));
}

TEST_CASE("fixed sizes are matrices, also when sliced") {
  auto items = std::make_shared<arrow::UInt8Builder>();
  arrow::FixedSizeListBuilder builder(arrow::default_memory_pool(), items, 2);
  for (std::uint8_t i = 0; i < 3; ++i) {
    REQUIRE(builder.Append().ok());
    REQUIRE(items->Append(i).ok());
    REQUIRE(items->Append(static_cast<std::uint8_t>(10 + i)).ok());
  }
  CHECK(same(column_tensor(*(*builder.Finish())->Slice(1, 2), "x"),
             at::tensor({1, 11, 2, 12}, at::kByte).view({2, 2})));
  arrow::FixedSizeBinaryBuilder bytes(arrow::fixed_size_binary(3));
  for (char const* each : {"abc", "def"}) REQUIRE(bytes.Append(each).ok());
  CHECK(same(column_tensor(*(*bytes.Finish())->Slice(1, 1), "x"),
             at::tensor({'d', 'e', 'f'}, at::kByte).view({1, 3})));
}

TEST_CASE("no rows are a tensor without rows") {
  CHECK(same(column_tensor(*array<arrow::DoubleBuilder>(std::vector<double>{}), "x"),
             at::empty({0}, at::kDouble)));
  CHECK(column_tensor(*lists({}), "x").size(0) == 0);
}

TEST_CASE("nulls, texts of unlike length and ragged lists are no tensor") {
  arrow::Int64Builder builder;
  REQUIRE(builder.Append(1).ok());
  REQUIRE(builder.AppendNull().ok());
  auto const null = *builder.Finish();
  CHECK_THROWS_WITH_AS(column_tensor(*null, "column x"), doctest::Contains("has nulls (column x)"),
                       frugal::DataError);
  CHECK_NOTHROW(column_tensor(*null->Slice(0, 1), "x"));
  CHECK_THROWS_WITH_AS(column_tensor(*lists({2, 1}), "x"),
                       doctest::Contains("row 1 of its row group has 1"), frugal::DataError);
  CHECK_THROWS_AS(
      column_tensor(*array<arrow::StringBuilder>(std::vector<std::string>{"a", "bc"}), "x"),
      frugal::DataError);
}

}  // namespace frugal_test::arrow_column_tensor

namespace fs = std::filesystem;
using frugal::BatchColumns;
using frugal::Cell;
using frugal::Numbers;
using frugal::ParquetBatches;
using frugal::ParquetSet;
using frugal::Pass;
using frugal::Row;
using frugal_test::support::TemporaryFolder;

namespace frugal_test::arrow_parquet_batches {

static_assert(frugal::SizedSource<ParquetBatches<>>);
static_assert(frugal::SizedSource<ParquetBatches<Pass>>);

std::string bytes_of(std::int64_t i) {
  return {static_cast<char>(i), static_cast<char>(2 * i), static_cast<char>(3 * i)};
}

Numbers floats(std::int64_t i) {
  std::string bytes(8, '\0');
  float const values[2] = {static_cast<float>(i), 0.5F};
  std::memcpy(bytes.data(), values, 8);
  return {.dtype = frugal::Dtype::f32, .bytes = bytes};
}

fs::path write(fs::path path, std::int64_t first, std::int64_t count, std::uint64_t per_group) {
  frugal::ParquetWriter writer(path, {.rows_per_group = per_group, .binary = {"pixels"}});
  for (std::int64_t i = first; i < first + count; ++i) {
    writer.add(
        Row({{"label", Cell(i)},
             {"pixels", Cell(bytes_of(i))},
             {"pair", Cell(floats(i))},
             {"x", Cell(static_cast<double>(i) / 4)},
             {"odd", Cell(i % 2 == 1)},
             {"ragged", Cell(Numbers{.dtype = frugal::Dtype::u8,
                                     .bytes = std::string(static_cast<std::size_t>(i % 3), 'x')})},
             {"some", i % 5 == 4 ? Cell() : Cell(i)}}));
  }
  writer.close();
  return path;
}

std::vector<std::int64_t> labels(auto& batches, frugal::Cursor const& cursor) {
  std::vector<std::int64_t> all;
  batches.seek(cursor);
  while (auto const batch = batches.next()) {
    for (std::int64_t i = 0; i < batch->target.size(0); ++i) {
      all.push_back(batch->target[i].template item<std::int64_t>());
    }
  }
  return all;
}

TEST_CASE("batches are whole columns, in the order of the files when not shuffled") {
  TemporaryFolder const folder;
  write(folder / "a.parquet", 0, 10, 4);
  write(folder / "b.parquet", 10, 5, 4);
  ParquetBatches batches({folder.path()}, {.data = {"pixels"}, .target = "label"},
                         {.batch = 6, .shuffle = false});
  CHECK(batches.samples() == 15);
  CHECK(batches.batches() == 3);
  std::int64_t i = 0;
  while (auto const batch = batches.next()) {
    CHECK((batch->data.scalar_type() == at::kByte));
    CHECK((batch->target.scalar_type() == at::kLong));
    CHECK(batch->data.size(1) == 3);
    for (std::int64_t row = 0; row < batch->target.size(0); ++row, ++i) {
      CHECK(batch->target[row].item<std::int64_t>() == i);
      CHECK(batch->data[row][2].item<int>() == 3 * i);
    }
  }
  CHECK(i == 15);
  CHECK(batches.decoded() == 5);
}

TEST_CASE(
    "a shuffled epoch has every row once, decodes each row group once, and may be entered "
    "anywhere") {
  TemporaryFolder const folder;
  write(folder / "a.parquet", 0, 50, 8);
  ParquetBatches batches({folder / "a.parquet"}, {.data = {"x"}, .target = "label"}, {.batch = 6},
                         {.cache_bytes = 1}, frugal::ShuffleWindow{.shards = 1});
  auto const order = labels(batches, {.seed = 1, .epoch = 3});
  CHECK(batches.decoded() == 7);
  auto sorted = order;
  std::sort(sorted.begin(), sorted.end());
  CHECK(sorted.size() == 50);
  CHECK(std::adjacent_find(sorted.begin(), sorted.end()) == sorted.end());
  CHECK(sorted != order);
  for (std::uint64_t const position : {1U, 7U, 8U, 30U, 49U, 50U}) {
    auto const tail = labels(batches, {.seed = 1, .epoch = 3, .position = position});
    CHECK(std::equal(tail.begin(), tail.end(),
                     order.begin() + static_cast<std::ptrdiff_t>(position), order.end()));
  }
  // Data and target stay together.
  batches.seek({.seed = 1, .epoch = 4});
  while (auto const batch = batches.next()) {
    CHECK(at::equal(batch->data * 4, batch->target.to(at::kFloat)));
  }
}

TEST_CASE("another order reads the same rows") {
  TemporaryFolder const folder;
  ParquetSet const set(write(folder / "a.parquet", 0, 20, 4));
  ParquetBatches batches(set, {.data = {"x"}, .target = "label"}, Pass(20, {.batch = 7}, "rows"));
  auto const read = labels(batches, {.seed = 5});
  std::vector<std::int64_t> wanted(20);
  frugal::Permutation(5, 0, 20).fill(0, wanted);
  CHECK(read == wanted);
}

TEST_CASE("ranks that share an order resume at the global position, and miss or repeat no row") {
  TemporaryFolder const folder;
  ParquetSet const set(write(folder / "a.parquet", 0, 50, 8));
  auto const of_rank = [&](int rank) {
    return ParquetBatches(
        set, {.data = {"x"}, .target = "label"},
        frugal::Shared(frugal::ShardOrder(set, {.batch = 10}), {.rank = rank, .world = 2}));
  };
  static_assert(frugal::ConsumingSource<decltype(of_rank(0))>);
  static_assert(std::same_as<frugal::order_type_of<decltype(of_rank(0))>, frugal::ShardOrder>);
  std::vector<std::int64_t> before;
  std::vector<std::int64_t> after;
  for (int const rank : {0, 1}) {
    auto batches = of_rank(rank);
    batches.seek({.seed = 3});
    for (int k = 1; k <= 2; ++k) {
      auto const batch = batches.next();
      REQUIRE(batch);
      CHECK(batches.consumed() == static_cast<std::uint64_t>(10 * k));
      for (std::int64_t i = 0; i < batch->target.size(0); ++i) {
        before.push_back(batch->target[i].item<std::int64_t>());
      }
    }
    auto resumed = of_rank(rank);
    for (std::int64_t const each : labels(resumed, {.seed = 3, .position = 20})) {
      after.push_back(each);
    }
  }
  CHECK(before.size() == 20);
  CHECK(after.size() == 30);
  before.insert(before.end(), after.begin(), after.end());
  std::ranges::sort(before);
  for (std::int64_t i = 0; i < 50; ++i) CHECK(before[static_cast<std::size_t>(i)] == i);
}

TEST_CASE("ranks do not share a set that has left out damaged shards") {
  TemporaryFolder const folder;
  write(folder / "a.parquet", 0, 20, 4);
  fs::path const damaged = write(folder / "b.parquet", 20, 20, 4);
  fs::resize_file(damaged, fs::file_size(damaged) / 2);
  ParquetSet const set({folder / "a.parquet", damaged}, {.on_damage = frugal::OnDamage::Skip});
  auto const of_world = [&](int world) {
    return ParquetBatches(
        set, {.data = {"x"}, .target = "label"},
        frugal::Shared(frugal::ShardOrder(set, {.batch = 4}), {.rank = 0, .world = world}));
  };
  CHECK_NOTHROW(of_world(1));
  CHECK_THROWS_WITH_AS(of_world(2),
                       doctest::Contains("processes share a set that has left out damaged shards"),
                       frugal::DataError);
}

TEST_CASE("columns of numbers lie side by side as float32") {
  TemporaryFolder const folder;
  auto const path = write(folder / "a.parquet", 0, 6, 4);
  ParquetBatches batches({path}, {.data = {"x", "label", "odd"}, .target = "odd"},
                         {.batch = 6, .shuffle = false});
  auto const batch = batches.next();
  REQUIRE(batch);
  CHECK((batch->data.scalar_type() == at::kFloat));
  CHECK(batch->data.sizes() == at::IntArrayRef{6, 3});
  CHECK(at::equal(batch->data[3], at::tensor({0.75F, 3.0F, 1.0F})));
  CHECK((batch->target.scalar_type() == at::kLong));
  CHECK(batch->target[3].item<std::int64_t>() == 1);
}

TEST_CASE("lists of one length are a matrix, and a batch may have no target") {
  TemporaryFolder const folder;
  auto const path = write(folder / "a.parquet", 0, 6, 4);
  ParquetBatches batches({path}, {.data = {"pair"}}, {.batch = 6, .shuffle = false});
  auto const batch = batches.next();
  REQUIRE(batch);
  CHECK(at::equal(batch->data[5], at::tensor({5.0F, 0.5F})));
  CHECK_FALSE(batch->target.defined());
}

TEST_CASE("a shuffled batch of a sorted table has rows of several row groups") {
  TemporaryFolder const folder;
  // Row group g has the labels 10 g to 10 g + 9, as a table sorted by class.
  write(folder / "a.parquet", 0, 200, 10);
  auto const groups_of_first = [&](auto... window) {
    ParquetBatches batches({folder / "a.parquet"}, {.data = {"x"}, .target = "label"},
                           {.batch = 10}, {}, window...);
    batches.seek({.seed = 1});
    auto const batch = batches.next();
    CHECK(at::equal(batch->data * 4, batch->target.to(at::kFloat)));
    auto const label = batch->target.div(10, "floor");
    return std::get<0>(at::_unique(label)).numel();
  };
  CHECK(groups_of_first(frugal::ShuffleWindow{.shards = 1}) == 1);
  CHECK(groups_of_first(frugal::ShuffleWindow{.shards = 2}) == 2);
  // 10 of 160 rows of 16 groups: one or two groups alone would be a miracle.
  CHECK(groups_of_first() > 4);
  // Each row comes once, each row group is decoded once, and any place may be sought.
  ParquetBatches batches({folder / "a.parquet"}, {.data = {"x"}, .target = "label"}, {.batch = 7});
  auto const order = labels(batches, {.seed = 1});
  CHECK(batches.decoded() == 20);
  CHECK(batches.warning().empty());
  auto sorted = order;
  std::sort(sorted.begin(), sorted.end());
  for (std::int64_t i = 0; i < 200; ++i) CHECK(sorted[static_cast<std::size_t>(i)] == i);
  auto const tail = labels(batches, {.seed = 1, .position = 101});
  CHECK(std::equal(tail.begin(), tail.end(), order.begin() + 101, order.end()));
}

TEST_CASE("a cache that holds fewer row groups than the window is advised against") {
  TemporaryFolder const folder;
  write(folder / "a.parquet", 0, 200, 10);
  ParquetBatches batches({folder / "a.parquet"}, {.data = {"x"}, .target = "label"}, {.batch = 10},
                         {.cache_bytes = 100}, frugal::ShuffleWindow{.shards = 4});
  CHECK(batches.warning().empty());
  static_cast<void>(labels(batches, {.seed = 1}));
  CHECK(batches.decoded() > 20);
  CHECK(batches.warning().find("reads from 4 groups of rows at a time") != std::string::npos);
}

TEST_CASE("after an error next() tries the same batch again, and leaves none out") {
  TemporaryFolder const folder;
  frugal::ParquetWriter writer(folder / "a.parquet", {.rows_per_group = 4});
  for (std::int64_t i = 0; i < 12; ++i) {
    Numbers const list{.dtype = frugal::Dtype::u8,
                       .bytes = std::string(i / 4 == 1 ? 3 : 2, static_cast<char>(i))};
    writer.add(Row({{"list", Cell(list)}}));
  }
  writer.close();
  ParquetBatches batches({folder / "a.parquet"}, {.data = {"list"}},
                         {.batch = 4, .shuffle = false});
  CHECK(batches.next()->data[0][0].item<int>() == 0);
  CHECK_THROWS_AS(batches.next(), frugal::DataError);
  CHECK_THROWS_AS(batches.next(), frugal::DataError);
  batches.seek({.position = 8});
  CHECK(batches.next()->data[0][0].item<int>() == 8);
  CHECK_FALSE(batches.next());
}

TEST_CASE("row groups whose lists differ in length are refused, in one batch and in several") {
  TemporaryFolder const folder;
  frugal::ParquetWriter writer(folder / "a.parquet", {.rows_per_group = 4});
  for (std::int64_t i = 0; i < 8; ++i) {
    Numbers const list{.dtype = frugal::Dtype::u8, .bytes = std::string(i < 4 ? 2 : 3, 'x')};
    writer.add(Row({{"list", Cell(list)}}));
  }
  writer.close();
  for (std::int64_t const batch : {4, 8}) {
    CAPTURE(batch);
    ParquetBatches batches({folder / "a.parquet"}, {.data = {"list"}},
                           {.batch = batch, .shuffle = false});
    if (batch == 4) CHECK(batches.next()->data.sizes() == at::IntArrayRef{4, 2});
    CHECK_THROWS_WITH_AS(batches.next(), doctest::Contains("a row is [3], and was [2]"),
                         frugal::DataError);
  }
}

TEST_CASE("rows collate to the batch that the columns make") {
  TemporaryFolder const folder;
  auto const path = write(folder / "a.parquet", 0, 8, 4);
  ParquetSet const set(path);
  std::vector<Row> rows;
  for (std::uint64_t i = 0; i < 8; ++i) rows.push_back(set.get(i));
  for (BatchColumns const& columns : {BatchColumns{.data = {"pixels"}, .target = "label"},
                                      BatchColumns{.data = {"pair"}, .target = "x"},
                                      BatchColumns{.data = {"x", "label"}, .target = "odd"}}) {
    frugal::Batch const collated = columns(rows);
    auto const batch = ParquetBatches({path}, columns, {.batch = 8, .shuffle = false}).next();
    CHECK(at::equal(collated.data, batch->data));
    CHECK((collated.data.scalar_type() == batch->data.scalar_type()));
    CHECK(at::equal(collated.target, batch->target));
  }
}

TEST_CASE("an integer of more bits than float32 has is refused among several columns") {
  TemporaryFolder const folder;
  {
    frugal::ParquetWriter writer(folder / "a.parquet");
    for (std::int64_t i = 0; i < 4; ++i) {
      writer.add(Row({{"id", Cell(std::int64_t{16777215} + i)}, {"x", Cell(0.5)}}));
    }
    writer.close();
  }
  auto const batches = [&](std::vector<std::string> data) {
    return ParquetBatches({folder / "a.parquet"}, {.data = std::move(data)}, {.batch = 4});
  };
  CHECK_THROWS_WITH_AS(batches({"x", "id"}).next(),
                       doctest::Contains("from row 0 on, column id): it is 16777218"),
                       frugal::DataError);
  CHECK((batches({"id"}).next()->data.scalar_type() == at::kLong));
}

TEST_CASE("rows collate to the types of whole columns") {
  TemporaryFolder const folder;
  {
    auto const table = arrow::Table::Make(
        arrow::schema({arrow::field("i8", arrow::int8()), arrow::field("u16", arrow::uint16()),
                       arrow::field("i32", arrow::int32()), arrow::field("f16", arrow::float16()),
                       arrow::field("u8", arrow::uint8()), arrow::field("f64", arrow::float64())}),
        {*arrow::MakeArrayFromScalar(arrow::Int8Scalar(-3), 4),
         *arrow::MakeArrayFromScalar(arrow::UInt16Scalar(65535), 4),
         *arrow::MakeArrayFromScalar(arrow::Int32Scalar(7), 4),
         *arrow::MakeArrayFromScalar(arrow::HalfFloatScalar(arrow::util::Float16::FromBits(0x3800)),
                                     4),
         *arrow::MakeArrayFromScalar(arrow::UInt8Scalar(200), 4),
         *arrow::MakeArrayFromScalar(arrow::DoubleScalar(0.25), 4)});
    auto const out = *arrow::io::FileOutputStream::Open((folder / "a.parquet").string());
    REQUIRE(parquet::arrow::WriteTable(*table, arrow::default_memory_pool(), out).ok());
    REQUIRE(out->Close().ok());
  }
  ParquetSet const set(folder / "a.parquet");
  std::vector<Row> rows;
  for (std::uint64_t i = 0; i < 4; ++i) rows.push_back(set.get(i));
  auto const check = [&](char const* column, at::Tensor const& wanted) {
    CAPTURE(column);
    BatchColumns const columns{.data = {column}};
    auto const whole = ParquetBatches({folder / "a.parquet"}, columns, {.batch = 4}).next()->data;
    auto const collated = columns(rows).data;
    CHECK((whole.scalar_type() == wanted.scalar_type()));
    CHECK((collated.scalar_type() == wanted.scalar_type()));
    CHECK(at::equal(whole, wanted));
    CHECK(at::equal(collated, wanted));
  };
  check("i8", at::full({4}, -3, at::kChar));
  check("u16", at::full({4}, 65535, at::kInt));
  check("i32", at::full({4}, 7, at::kInt));
  check("f16", at::full({4}, 0.5, at::kHalf));
  check("u8", at::full({4}, 200, at::kByte));
  check("f64", at::full({4}, 0.25, at::kFloat));
}

TEST_CASE("a batch outlives the set that it views") {
  TemporaryFolder const folder;
  std::optional<frugal::Batch> batch;
  {
    ParquetBatches batches({write(folder / "a.parquet", 0, 6, 6)},
                           {.data = {"pixels"}, .target = "label"}, {.batch = 6, .shuffle = false},
                           {.cache_bytes = 1});
    batch = batches.next();
  }
  CHECK(batch->data[5][1].item<int>() == 10);
}

TEST_CASE("what is no tensor says so") {
  TemporaryFolder const folder;
  auto const path = write(folder / "a.parquet", 0, 8, 4);
  auto const first = [&](BatchColumns columns) {
    return ParquetBatches({path}, std::move(columns), {.batch = 4}).next();
  };
  CHECK_THROWS_WITH_AS(first({.data = {"ragged"}}), doctest::Contains("differ in length"),
                       frugal::DataError);
  CHECK_THROWS_WITH_AS(ParquetBatches({path}, {.data = {"some"}}, {.batch = 8}).next(),
                       doctest::Contains("a column has nulls"), frugal::DataError);
  CHECK_THROWS_AS(first({.data = {"x", "pair"}}), frugal::ShapeError);
  CHECK_THROWS_AS(first({}), frugal::SettingsError);
  CHECK_THROWS_AS(first({.data = {"y"}}), frugal::SettingsError);
  ParquetBatches other(ParquetSet(path, {.columns = {"x"}}), {.data = {"label"}},
                       Pass(8, {.batch = 8}, "rows"));
  CHECK_THROWS_AS(other.next(), frugal::SettingsError);
}

}  // namespace frugal_test::arrow_parquet_batches
