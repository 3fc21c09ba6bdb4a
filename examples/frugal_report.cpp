// SPDX-License-Identifier: Apache-2.0
// torch-free
// Writes the report of a run, or of several compared, as one HTML page:
//
//   frugal_report runs/demo                              runs/demo/report.html
//   frugal_report runs/plain runs/bf16 -o compare.html   one page for both
#include <frugal/report/html/comparison_page.hpp>
#include <frugal/report/html/run_page.hpp>

#include <CLI/CLI.hpp>

#include <cstdlib>
#include <exception>
#include <filesystem>
#include <iostream>
#include <string>
#include <vector>

int main(int argc, char** argv) {
  std::vector<std::filesystem::path> runs;
  std::filesystem::path out;
  CLI::App app("Writes the report of a run, or of several compared, as one HTML page.");
  app.add_option("RUN", runs, "run directories, which have a metrics.jsonl")->required();
  app.add_option("-o,--output", out,
                 "file; default: report.html in the run, comparison.html here for several");
  CLI11_PARSE(app, argc, argv);
  try {
    if (runs.size() == 1) {
      if (out.empty()) out = runs.front() / "report.html";
      frugal::write_run_report(out, runs.front());
    } else {
      if (out.empty()) out = "comparison.html";
      frugal::write_comparison_report(out, runs);
    }
    std::cout << out.string() << '\n';
    return EXIT_SUCCESS;
  } catch (std::exception const& error) {
    std::cerr << error.what() << '\n';
    return EXIT_FAILURE;
  }
}
