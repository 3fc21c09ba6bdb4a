// SPDX-License-Identifier: Apache-2.0
// torch-free
// The pages for tests/interop/report.py:
//
//  run FOLDER FILE          the report of a run
//  compare FILE FOLDER...   that of several
//  duplicates FILE          a report of duplicates
#include <frugal/report/html/comparison_page.hpp>
#include <frugal/report/html/run_page.hpp>

#include "../report/html/run_files.hpp"

#include <cstdlib>
#include <exception>
#include <filesystem>
#include <iostream>
#include <string>
#include <vector>

int main(int argc, char** argv) {
  try {
    std::vector<std::string> const words(argv + 1, argv + argc);
    if (words.size() == 3 && words[0] == "run") {
      frugal::write_run_report(words[2], words[1]);
    } else if (words.size() > 2 && words[0] == "compare") {
      frugal::write_comparison_report(words[1], {words.begin() + 2, words.end()});
    } else if (words.size() == 2 && words[0] == "duplicates") {
      frugal_test::run_files::put_duplicates(words[1]);
    } else {
      std::cerr << "report: what?\n";
      return 2;
    }
    return EXIT_SUCCESS;
  } catch (std::exception const& error) {
    std::cerr << error.what() << '\n';
    return EXIT_FAILURE;
  }
}
