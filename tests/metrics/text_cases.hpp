// SPDX-License-Identifier: Apache-2.0
// Texts of tests/reference/text_scores.json, as words and as ids.
#pragma once

#include "cases.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace frugal_test::metrics {

using Words = std::vector<std::string>;

struct Texts {
  explicit Texts(Json const& which)
      : hypotheses(which.at("hypotheses").get<std::vector<Words>>()),
        references(which.at("references").get<std::vector<std::vector<Words>>>()) {}

  std::vector<Words> hypotheses;
  std::vector<std::vector<Words>> references;

  /// Adds the texts from `begin` on.
  template <class M>
  void add_to(M& metric, std::size_t begin, std::size_t end) const {
    for (std::size_t i = begin; i < end; ++i) {
      if (references[i].size() == 1) {
        metric.add(hypotheses[i], references[i][0]);
      } else {
        metric.add_multi(hypotheses[i], references[i]);
      }
    }
  }
};

/// A number for each word: its letters.
inline std::vector<std::int32_t> ids_of(Words const& words) {
  std::vector<std::int32_t> ids;
  for (std::string const& word : words) {
    std::int32_t id = 0;
    for (char const letter : word) id = id * 31 + letter;
    ids.push_back(id);
  }
  return ids;
}

/// A metric over all texts; across a resume; of two processes; of ids; with the references in reverse.
template <class M>
std::vector<M> every_text_way(Texts const& texts) {
  std::size_t const count = texts.hypotheses.size(), middle = count / 2;
  M whole, first, second, ids, reversed;
  texts.add_to(whole, 0, count);
  texts.add_to(first, 0, middle);
  texts.add_to(second, middle, count);
  M continued = resumed(first);
  texts.add_to(continued, middle, count);
  for (std::size_t i = 0; i < count; ++i) {
    std::vector<std::vector<std::int32_t>> references;
    for (Words const& each : texts.references[i]) references.push_back(ids_of(each));
    ids.add_multi(ids_of(texts.hypotheses[i]), references);
    auto backwards = texts.references[i];
    std::reverse(backwards.begin(), backwards.end());
    reversed.add_multi(texts.hypotheses[i], backwards);
  }
  return {whole, continued, together(first, second), ids, reversed};
}

}  // namespace frugal_test::metrics
