// SPDX-License-Identifier: Apache-2.0
// needs: arrow
// frugal's side of bench/data_tables.py: reads Parquet files, and prints the time of each way.
//
//   data_tables columns FILE            every column of every row group as a tensor
//   data_tables batches FILE --data A B --target C    an epoch of batches, unshuffled
#include <frugal/data/arrow/parquet_batches.hpp>
#include <frugal/data/arrow/parquet_set.hpp>

#include <ATen/Parallel.h>
#include <CLI/CLI.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <string>
#include <vector>

namespace {

class Clock {
 public:
  double seconds() const {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
  }

 private:
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

void answer(double seconds, std::uint64_t rows) {
  std::cout << "{\"seconds\": " << seconds << ", \"rows\": " << rows << "}\n";
}

void columns(std::filesystem::path const& path) {
  Clock const clock;
  frugal::ParquetSet const set(path);
  std::uint64_t rows = 0;
  for (std::size_t group = 0; group < set.shard_sizes().size(); ++group) {
    auto const table = set.decode(group);
    for (std::size_t i = 0; i < set.columns().size(); ++i) {
      at::Tensor const column = frugal::column_tensor(*table.column(i), set.columns()[i]);
      if (i == 0) rows += static_cast<std::uint64_t>(column.size(0));
    }
  }
  answer(clock.seconds(), rows);
}

void batches(std::filesystem::path const& path, frugal::BatchColumns const& columns) {
  Clock const clock;
  frugal::ParquetBatches source({path}, columns, {.batch = 256, .shuffle = false},
                                {.cache_bytes = 1});
  std::uint64_t rows = 0;
  while (auto const batch = source.next()) rows += static_cast<std::uint64_t>(batch->data.size(0));
  answer(clock.seconds(), rows);
}

}  // namespace

int main(int argc, char** argv) {
  std::string what, path;
  frugal::BatchColumns chosen;
  CLI::App app("Times reading a Parquet file.");
  app.add_option("what", what)->required()->check(CLI::IsMember({"columns", "batches"}));
  app.add_option("file", path)->required()->check(CLI::ExistingFile);
  app.add_option("--data", chosen.data, "the columns of a batch's data");
  app.add_option("--target", chosen.target, "the column of its target");
  CLI11_PARSE(app, argc, argv);
  at::set_num_threads(1);
  try {
    what == "columns" ? columns(path) : batches(path, chosen);
  } catch (frugal::Error const& error) {
    std::cerr << error.what() << '\n';
    return EXIT_FAILURE;
  }
}
