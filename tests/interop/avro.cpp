// SPDX-License-Identifier: Apache-2.0
// torch-free
// needs: avro
// The file operations for tests/interop/avro.py:
//
//  rows FILE [COLUMN...]   prints the rows
//  rewrite IN OUT CODEC    reads a file and writes its rows again, with its schema
//  judge FOLDER            reads every row of each file, and prints "ok" or "refused"
#include <frugal/data/avro/avro_set.hpp>
#include <frugal/data/avro/avro_writer.hpp>

#include "support/rows.hpp"

#include <algorithm>
#include <cstdint>
#include <exception>
#include <filesystem>
#include <iostream>
#include <string>
#include <vector>

namespace {

void rows(std::filesystem::path const& path, std::vector<std::string> columns) {
  frugal::AvroSet const set(path, {.columns = std::move(columns)});
  for (std::uint64_t i = 0; i < set.size(); ++i) std::cout << frugal_test::row_lines(set.get(i));
}

void rewrite(std::string const& from, std::string const& to, std::string const& codec) {
  frugal::AvroSet const set{std::filesystem::path(from)};
  frugal::AvroWriter writer(to, set.schema(),
                            {.codec = *frugal::detail::codec_of(codec), .block_bytes = 700});
  for (std::uint64_t i = 0; i < set.size(); ++i) writer.add(set.get(i));
  writer.close();
}

void judge(std::filesystem::path const& folder) {
  std::vector<std::filesystem::path> files;
  for (auto const& entry : std::filesystem::directory_iterator(folder)) files.push_back(entry);
  std::sort(files.begin(), files.end());
  for (auto const& path : files) {
    std::cout << path.filename().string() << ' ';
    try {
      frugal::AvroSet const set(path);
      for (std::uint64_t i = 0; i < set.size(); ++i) static_cast<void>(set.get(i));
      std::cout << "ok\n";
    } catch (frugal::DataError const&) {
      std::cout << "refused\n";
    } catch (frugal::SettingsError const&) {
      std::cout << "refused\n";
    }
  }
}

}  // namespace

int main(int count, char** arguments) {
  std::vector<std::string> const words(arguments + 1, arguments + count);
  try {
    if (words.size() >= 2 && words[0] == "rows") {
      rows(words[1], {words.begin() + 2, words.end()});
    } else if (words.size() == 4 && words[0] == "rewrite") {
      rewrite(words[1], words[2], words[3]);
    } else if (words.size() == 2 && words[0] == "judge") {
      judge(words[1]);
    } else {
      std::cerr << "rows FILE, rewrite IN OUT CODEC or judge FOLDER\n";
      return 2;
    }
  } catch (std::exception const& error) {
    std::cerr << error.what() << '\n';
    return 1;
  }
  return 0;
}
