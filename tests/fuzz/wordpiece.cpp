// SPDX-License-Identifier: Apache-2.0
// needs: text
// libFuzzer: any bytes are encoded, with every setting that the first byte chooses. Ids are those
// of the vocabulary; spans lie in the text, in its order; a part of the text between two white
// spaces has the tokens that it has in the whole; ids decode. Everything else ends the program.
#include <frugal/data/text/wordpiece.hpp>

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "demand.hpp"

namespace {

using frugal::Encoded;
using frugal::Wordpiece;

using frugal_fuzz::demand;

Wordpiece made(unsigned bits) {
  frugal::WordpieceSettings settings;
  settings.text.lower_case = (bits & 1) != 0;
  if ((bits & 2) != 0) settings.text.strip_accents = (bits & 4) != 0;
  settings.text.clean = (bits & 8) != 0;
  settings.text.space_chinese = (bits & 16) != 0;
  settings.special_in_text = (bits & 32) != 0;
  settings.longest_word = 20;
  return Wordpiece(
      frugal::Vocabulary::parse("[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\na\nb\nE\nun\n##a\n"
                                "##b\n##aff\n##able\ni\n##\u0307\n\u00e9\n##\u00e9\n"
                                "\u4f60\n##\u4f60\n!\n\u1112\n##\u1161\n\ufffd\n"),
      settings);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(std::uint8_t const* data, std::size_t size) {
  static std::vector<Wordpiece> const tokenizers = [] {
    std::vector<Wordpiece> all;
    for (unsigned bits = 0; bits < 64; ++bits) all.push_back(made(bits));
    return all;
  }();
  if (size == 0) return 0;
  Wordpiece const& tokenizer = tokenizers[data[0] % 64];
  std::string_view const text(reinterpret_cast<char const*>(data) + 1, size - 1);
  Encoded const encoded = tokenizer.encode(text);
  demand(encoded.size() >= 2, "special tokens are around a text");
  demand(encoded.spans.size() == encoded.size() && encoded.types.size() == encoded.size(),
         "each token has a span and a type");
  std::size_t before = 0;
  for (std::size_t i = 1; i + 1 < encoded.size(); ++i) {
    frugal::TextSpan const span = encoded.spans[i];
    demand(span.begin < span.end && span.end <= text.size(), "a span lies in the text");
    demand(span.begin >= before, "spans are in the order of the text");
    before = span.begin;
  }
  static_cast<void>(tokenizer.decode(encoded.ids));  // which refuses an id that there is not
  std::vector<std::int32_t> parts;
  std::size_t const space = text.find('\n');
  tokenizer.append_ids(text.substr(0, space), parts);
  if (space != text.npos) tokenizer.append_ids(text.substr(space), parts);
  demand(parts == tokenizer.ids(text), "a text cut at a white space has the tokens of the whole");
  demand(tokenizer.encode(text, text, 9).size() <= 9, "a pair is cut to the limit");
  return 0;
}
