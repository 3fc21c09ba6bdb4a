// SPDX-License-Identifier: Apache-2.0
// torch-free
// The pages for tests/interop/report.py:
//
//  run FOLDER FILE          the report of a run
//  compare FILE FOLDER...   that of several
//  duplicates FILE          a report of duplicates
//  search FILE              the page of a search
//  curation FILE            that of two removed samples
#include <frugal/data/curate/curation_page.hpp>
#include <frugal/report/html/comparison_page.hpp>
#include <frugal/report/html/run_page.hpp>
#include <frugal/search/results/page.hpp>

#include "../report/html/run_files.hpp"
#include "../support/search_synthetic.hpp"

#include <cstdint>
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
    } else if (words.size() == 2 && words[0] == "search") {
      frugal::write_search_page(words[1], frugal_test::synthetic::search(64), "search");
    } else if (words.size() == 2 && words[0] == "curation") {
      frugal::Curation found{.name = "<b>set</b>", .identity = "", .method = "by hand"};
      found.samples = 3;
      found.removed = {{.index = 1, .similarity = 1, .copy = true},
                       {.index = 2, .similarity = 0.9, .through = 1, .through_similarity = 0.95}};
      frugal::write_curation_page(
          words[1], found,
          {.name = [](std::uint64_t index) { return "doc " + std::to_string(index); },
           .text =
               [](std::uint64_t index) {
                 return "</script><script>document.title='run'</script>\"'"
                        "<img src=x onerror=document.title='run'> " +
                        std::to_string(index);
               }});
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
