// SPDX-License-Identifier: Apache-2.0
// torch-free
// needs: text
// Encodes the lines of a file with WordPiece, in rounds; prints one JSON line for each way.
// bench/data_text.py runs it beside Python's tokenizers.
#include <frugal/data/text/tokenise.hpp>
#include <frugal/data/text/wordpiece.hpp>

#include <CLI/CLI.hpp>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <fstream>
#include <string>
#include <vector>

namespace {

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

/// Median seconds of a round, and what a round returned, printed.
template <class Round>
void measure(char const* name, std::size_t rounds, Round&& round) {
  std::vector<double> seconds;
  std::uint64_t tokens = 0;
  for (std::size_t r = 0; r < rounds; ++r) {
    auto const begin = std::chrono::steady_clock::now();
    tokens = round();
    std::chrono::duration<double> const took = std::chrono::steady_clock::now() - begin;
    seconds.push_back(took.count());
  }
  std::printf("{\"way\": \"%s\", \"seconds\": %.6g, \"tokens\": %llu}\n", name, median(seconds),
              static_cast<unsigned long long>(tokens));
  std::fflush(stdout);
}

}  // namespace

int main(int count, char** arguments) {
  CLI::App app{"Encodes the lines of a file with WordPiece"};
  std::string vocabulary, text;
  std::size_t rounds = 5;
  app.add_option("vocabulary", vocabulary, "vocab.txt")->required();
  app.add_option("text", text, "lines of UTF-8")->required();
  app.add_option("--rounds", rounds, "the median of so many is printed");
  CLI11_PARSE(app, count, arguments);

  std::vector<std::string> lines;
  std::ifstream file(text);
  for (std::string line; std::getline(file, line);) lines.push_back(line);
  frugal::Wordpiece const tokenizer(frugal::Vocabulary::read(vocabulary));

  measure("encode", rounds, [&] {
    std::vector<frugal::Encoded> all;
    all.reserve(lines.size());
    std::uint64_t tokens = 0;
    for (std::string const& line : lines) tokens += all.emplace_back(tokenizer.encode(line)).size();
    return tokens;
  });
  for (std::size_t const threads : {1U, 2U}) {
    measure(threads == 1 ? "ids" : "ids, 2 threads", rounds, [&] {
      return frugal::tokenise(lines, tokenizer, threads).tokens() + 2 * lines.size();
    });
  }
}
