// SPDX-License-Identifier: Apache-2.0
// needs: arrow
#include <frugal/data/arrow/column_tensor.hpp>

#include <arrow/api.h>
#include <doctest/doctest.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

using frugal::column_tensor;

namespace {

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

}  // namespace

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
