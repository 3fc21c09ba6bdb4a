// SPDX-License-Identifier: Apache-2.0
// needs: arrow
#pragma once

#include <frugal/data/arrow/cells.hpp>
#include <frugal/data/arrow/parquet_writer.hpp>
#include <frugal/data/arrow/sink.hpp>
#include <frugal/data/arrow/status.hpp>
#include <frugal/data/arrow/table_set.hpp>
#include <frugal/error.hpp>

#include <arrow/memory_pool.h>
#include <arrow/record_batch.h>
#include <arrow/table.h>
#include <parquet/arrow/writer.h>
#include <parquet/properties.h>

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

namespace frugal::detail {

/// Writes what a reader gives, batch by batch, as a Parquet file. Returns the rows.
inline std::uint64_t to_parquet(::arrow::RecordBatchReader& reader,
                                std::vector<std::string> const& columns, std::string const& where,
                                char const* what, std::filesystem::path const& to,
                                ParquetWriterSettings const& settings) {
  require_free(to);
  auto const properties = parquet_properties(settings, to.string());
  auto const sink = std::make_shared<ArrowSink>(to);
  auto const written = [&](::arrow::Status const& status) {
    sink->rethrow();
    check_arrow(status, to.string(), "the file cannot be written");
  };
  std::unique_ptr<::parquet::arrow::FileWriter> writer;
  std::uint64_t rows = 0;
  while (auto const batch = arrow_value(reader.Next(), where, what)) {
    auto table = arrow_value(::arrow::Table::FromRecordBatches({batch}), where, what);
    table = chosen(flat(std::move(table), where), columns, where);
    if (!writer) {
      for (auto const& field : table->schema()->fields()) require_cells(*field, where);
      auto made = ::parquet::arrow::FileWriter::Open(
          *table->schema(), ::arrow::default_memory_pool(), sink, properties,
          ::parquet::ArrowWriterProperties::Builder().store_schema()->build());
      written(made.status());
      writer = std::move(*made);
    }
    auto const whole = arrow_value(table->CombineChunksToBatch(), where, what);
    written(writer->WriteRecordBatch(*whole));
    rows += static_cast<std::uint64_t>(table->num_rows());
  }
  if (rows == 0) {
    throw EmptySourceError({.what = "the file has no rows",
                            .where = where,
                            .why = "",
                            .fix = "Give at least one row."});
  }
  written(writer->Close());
  sink->publish();
  return rows;
}

}  // namespace frugal::detail
