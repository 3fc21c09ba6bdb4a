// SPDX-License-Identifier: Apache-2.0
// needs: torch
// expect: frugal: TokenTransform needs a tokenizer with `Encoded encode(std::string_view text, std::size_t most) const`, as Wordpiece and SentencePiece have it.
#include <frugal/data/text/token_transform.hpp>

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

struct Characters {
  void append_ids(std::string_view text, std::vector<std::int32_t>& ids) const {
    ids.insert(ids.end(), text.begin(), text.end());
  }
#ifndef FRUGAL_REJECT
  frugal::Encoded encode(std::string_view, std::size_t) const { return {}; }
#endif
  std::string identity() const { return "characters"; }
};

inline frugal::TokenTransform<Characters> transform_of() {
  return frugal::TokenTransform(Characters{});
}
