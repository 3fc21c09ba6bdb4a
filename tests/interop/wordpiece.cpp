// SPDX-License-Identifier: Apache-2.0
// torch-free
// needs: text
// What wordpiece.py asks of frugal's WordPiece: reads lines of JSON, each a setting or a text, and
// answers each text with a line of JSON.
#include <frugal/data/text/wordpiece.hpp>

#include <nlohmann/json.hpp>

#include <cstddef>
#include <exception>
#include <iostream>
#include <optional>
#include <string>
#include <vector>

namespace {

using Json = nlohmann::json;
using frugal::Encoded;
using frugal::Wordpiece;

frugal::WordpieceSettings settings_of(Json const& asked) {
  frugal::WordpieceSettings made;
  made.text.lower_case = asked.at("lower");
  if (!asked.at("strip").is_null()) made.text.strip_accents = asked.at("strip").get<bool>();
  made.text.clean = asked.at("clean");
  made.text.space_chinese = asked.at("chinese");
  made.special_in_text = asked.at("special");
  return made;
}

/// A text's bytes are hexadecimal: JSON holds no invalid UTF-8.
std::string bytes_of(std::string const& hex) {
  std::string bytes;
  for (std::size_t i = 0; i + 1 < hex.size(); i += 2) {
    bytes.push_back(static_cast<char>(std::stoi(hex.substr(i, 2), nullptr, 16)));
  }
  return bytes;
}

Json answer(Encoded const& encoded) {
  std::vector<std::vector<std::size_t>> spans;
  for (frugal::TextSpan const span : encoded.spans) spans.push_back({span.begin, span.end});
  return {{"ids", encoded.ids}, {"types", encoded.types}, {"spans", spans}};
}

}  // namespace

int main(int count, char** arguments) try {
  if (count != 2) {
    std::cerr << "usage: interop_wordpiece VOCABULARY < questions\n";
    return 2;
  }
  auto const vocabulary = frugal::Vocabulary::read(arguments[1]);
  std::optional<Wordpiece> tokenizer;
  for (std::string line; std::getline(std::cin, line);) {
    Json const asked = Json::parse(line);
    if (asked.contains("lower")) {
      tokenizer.emplace(vocabulary, settings_of(asked));
      continue;
    }
    std::size_t const most = asked.value("most", Wordpiece::no_limit);
    std::string const first = bytes_of(asked.at("text"));
    std::cout << (asked.contains("second")
                      ? answer(tokenizer->encode(first, bytes_of(asked["second"]), most))
                      : answer(tokenizer->encode(first, most)))
                     .dump()
              << '\n';
  }
} catch (std::exception const& error) {
  std::cerr << error.what() << '\n';
  return 1;
}
