// SPDX-License-Identifier: Apache-2.0
// expect: frugal: tokenise takes texts: a vector of strings or another range of them that is read by index, or a SampleSet whose get(index) is a string.
#include <frugal/data/text/tokenise.hpp>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

struct BytesOf {
  void append_ids(std::string_view text, std::vector<std::int32_t>& ids) const {
    ids.insert(ids.end(), text.begin(), text.end());
  }
  std::string identity() const { return "bytes"; }
};

#ifdef FRUGAL_REJECT
using TextsOf = std::vector<std::vector<int>>;
#else
using TextsOf = std::vector<std::string>;
#endif

inline frugal::Documents tokens_of(TextsOf const& texts) {
  return frugal::tokenise(texts, BytesOf{});
}
