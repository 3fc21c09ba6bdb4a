// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <initializer_list>
#include <ranges>
#include <string_view>
#include <vector>

#include <frugal/metrics/token_numbers.hpp>

namespace frugal {

namespace detail {

/// What a corpus BLEU is made of.
class NgramCounts {
 public:
  static constexpr std::size_t orders = 4;

  /// Adds a sentence and its references, of which there is one at least.
  void add(TokenNumbers::Ids const& hypothesis, std::vector<TokenNumbers::Ids> const& references);
  double bleu() const;

  template <class Sum>
  void reduce(Sum&& sum) {
    each([&](char const*, double& value) { value = sum(value); });
  }
  template <class Archive>
  void persist(Archive& archive) {
    each([&](char const* name, double& value) { archive(name, value); });
  }

 private:
  template <class F>
  void each(F&& f) {
    constexpr char const* of_right[] = {"right1", "right2", "right3", "right4"};
    constexpr char const* of_all[] = {"all1", "all2", "all3", "all4"};
    for (std::size_t n = 0; n < orders; ++n) {
      f(of_right[n], right_[n]);
      f(of_all[n], all_[n]);
    }
    f("length", length_);
    f("reference", reference_);
    f("sentences", sentences_);
  }

  // Whole numbers, exact up to 2^53.
  std::array<double, orders> right_{}, all_{};  ///< n-grams of each order that match, and all
  double length_ = 0;                           ///< tokens of the hypotheses
  double reference_ = 0;                        ///< tokens of the references, the closest of each
  double sentences_ = 0;
};

}  // namespace detail

/// Corpus BLEU of texts in tokens, from 0 to 100: sacrebleu's score with tokenize="none", n-grams up to 4, and
/// exponential smoothing, whatever the tokens are.
///
///     Bleu bleu;
///     bleu.add(hypothesis, reference);                 // std::vector<std::string>, or ids
///     bleu.add_multi(hypothesis, {first, second});     // several references of one text
///     bleu.result();
///
/// Counts are added up over all texts. NaN without a text; 0 if no n-gram of any order matches, and if all hypotheses
/// together have no n-gram of an order, as sacrebleu has it. An empty hypothesis or reference is allowed.
/// `reduce(sum)` adds up processes, `persist(archive)` saves, so that a metric of Validate can have it as a member.
class Bleu {
 public:
  static constexpr std::string_view name = "bleu";
  static constexpr bool whole_numbers = true;  // counts: exact in any order

  template <TokenSequence Text>
  void add(Text const& hypothesis, Text const& reference) {
    detail::TokenNumbers ids;
    detail::TokenNumbers::Ids const own = ids(hypothesis);
    counts_.add(own, {ids(reference)});
  }
  /// MetricError without a reference.
  template <TokenSequence Text>
  void add_multi(Text const& hypothesis, std::vector<Text> const& references) {
    detail::TokenNumbers ids;
    detail::TokenNumbers::Ids const own = ids(hypothesis);
    std::vector<detail::TokenNumbers::Ids> all;
    for (Text const& each : references) all.push_back(ids(each));
    counts_.add(own, all);
  }
  template <class Sum>
  void reduce(Sum&& sum) {
    counts_.reduce(sum);
  }
  double result() const { return counts_.bleu(); }
  template <class Archive>
  void persist(Archive& archive) {
    counts_.persist(archive);
  }

 private:
  detail::NgramCounts counts_;
};

}  // namespace frugal

#ifndef FRUGAL_COMPILED
#include <frugal/metrics/bleu.ipp>
#endif
