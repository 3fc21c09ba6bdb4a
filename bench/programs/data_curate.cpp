// SPDX-License-Identifier: Apache-2.0
// torch-free
// frugal's side of bench/data_curate.py: deduplicates entries of a dictionary in dictd's format,
// and prints the time of that alone, without the reading of the dictionary.
#include <frugal/data/curate/deduplicate.hpp>

#include <CLI/CLI.hpp>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <iostream>
#include <string_view>

#include "../../examples/dictd.hpp"

namespace {

/// The first samples of a set.
struct First {
  std::uint64_t size() const { return std::min(set.size(), samples); }
  std::string_view get(std::uint64_t index) const { return set.get(index); }
  dictd::Dictionary const& set;
  std::uint64_t samples;
};

}  // namespace

int main(int argc, char** argv) {
  std::filesystem::path index;
  std::uint64_t samples = 20'000;
  frugal::Deduplicate settings;
  settings.shingles.of = frugal::ShingleOf::characters;
  CLI::App app("Deduplicates the entries of a dictionary, once.");
  app.add_option("index", index, "the .index of a dictionary")->required();
  app.add_option("--samples", samples, "the first so many entries");
  app.add_option("--threads", settings.threads);
  app.add_option("--memory", settings.memory, "bytes");
  CLI11_PARSE(app, argc, argv);
  try {
    dictd::Dictionary const set(index);
    First const first{set, samples};
    auto const start = std::chrono::steady_clock::now();
    std::clock_t const cpu = std::clock();
    frugal::Curation const found = frugal::deduplicate(first, settings);
    std::chrono::duration<double> const time = std::chrono::steady_clock::now() - start;
    double const cpu_time = static_cast<double>(std::clock() - cpu) / CLOCKS_PER_SEC;
    std::cout << "{\"seconds\": " << time.count() << ", \"cpu_seconds\": " << cpu_time
              << ", \"samples\": " << found.samples << ", \"bytes\": " << found.bytes
              << ", \"candidates\": " << found.candidates
              << ", \"removed\": " << found.removed.size() << ", \"runs\": " << found.spilled
              << "}\n";
  } catch (frugal::Error const& error) {
    std::cerr << error.what() << '\n';
    return EXIT_FAILURE;
  }
}
