// SPDX-License-Identifier: Apache-2.0
// torch-free
// needs: arrow
#include <frugal/data/arrow/table.hpp>

#include <doctest/doctest.h>

#include <arrow/api.h>

#include <memory>
#include <string>
#include <vector>

using frugal::Cell;
using frugal::detail::whole_column;

namespace frugal_test::arrow_table {

template <class Builder>
std::shared_ptr<arrow::Array> texts(std::vector<char const*> const& values) {
  Builder builder;
  for (char const* const value : values) {
    REQUIRE((value ? builder.Append(value) : builder.AppendNull()).ok());
  }
  return *builder.Finish();
}

TEST_CASE("texts beyond the range of 32 bits get offsets of 64, and stay what they are") {
  arrow::ChunkedArray const chunks({texts<arrow::StringBuilder>({"ab", nullptr, ""}),
                                    texts<arrow::StringBuilder>({"cde", "f"})->Slice(0, 1)});
  // The bound is 2 GiB but for this test; the chunks have five bytes.
  auto const narrow = whole_column(chunks, "x", 5);
  auto const wide = whole_column(chunks, "x", 4);
  CHECK(narrow->type_id() == arrow::Type::STRING);
  CHECK(wide->type_id() == arrow::Type::LARGE_STRING);
  frugal::RowHead const head{.source = "a", .columns = {"x"}};
  std::vector<Cell> const wanted{Cell(std::string("ab")), Cell(), Cell(std::string()),
                                 Cell(std::string("cde"))};
  for (std::int64_t i = 0; i < 4; ++i) {
    frugal::detail::CellPlace const place{.head = head, .column = 0, .row = 0};
    CHECK(frugal::detail::arrow_cell(*narrow, i, place) == wanted[static_cast<std::size_t>(i)]);
    CHECK(frugal::detail::arrow_cell(*wide, i, place) == wanted[static_cast<std::size_t>(i)]);
  }
  arrow::ChunkedArray const bytes(
      {texts<arrow::BinaryBuilder>({"\xff"}), texts<arrow::BinaryBuilder>({"b"})});
  CHECK(whole_column(bytes, "x", 1)->type_id() == arrow::Type::LARGE_BINARY);
}

}  // namespace frugal_test::arrow_table
