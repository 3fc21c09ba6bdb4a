// SPDX-License-Identifier: Apache-2.0
// torch-free
// needs: arrow
// The file operations for tests/interop/csv_jsonl.py:
//
//  csv FILE WHAT, jsonl FILE   prints the rows; WHAT is "plain", "semicolons" or "text"
//  convert FILE PARQUET        writes a .csv or .jsonl file as Parquet
#include <frugal/data/arrow/csv.hpp>
#include <frugal/data/arrow/jsonl.hpp>

#include "support/rows.hpp"

#include <cstdint>
#include <exception>
#include <iostream>
#include <string>
#include <vector>

namespace {

void print(frugal::TableSet const& set) {
  for (std::uint64_t i = 0; i < set.size(); ++i) std::cout << frugal_test::row_lines(set.get(i));
}

frugal::CsvSettings settings(std::string const& what) {
  if (what == "semicolons") return {.delimiter = ';', .quote = '\'', .newlines_in_values = true};
  if (what == "text") return {.types = {{"integer", frugal::ColumnType::text}}};
  return {};
}

}  // namespace

int main(int count, char** arguments) {
  std::vector<std::string> const words(arguments + 1, arguments + count);
  try {
    if (words.size() == 3 && words[0] == "csv") {
      print(frugal::read_csv(words[1], settings(words[2])));
    } else if (words.size() == 2 && words[0] == "jsonl") {
      print(frugal::read_jsonl(words[1]));
    } else if (words.size() == 3 && words[0] == "convert" && words[1].ends_with(".csv")) {
      std::cout << frugal::csv_to_parquet(words[1], words[2]) << '\n';
    } else if (words.size() == 3 && words[0] == "convert") {
      std::cout << frugal::jsonl_to_parquet(words[1], words[2]) << '\n';
    } else {
      std::cerr << "csv FILE WHAT, jsonl FILE or convert FILE PARQUET\n";
      return 2;
    }
  } catch (std::exception const& error) {
    std::cerr << error.what() << '\n';
    return 1;
  }
  return 0;
}
