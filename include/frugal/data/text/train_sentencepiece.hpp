// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/base/number_text.hpp>
#include <frugal/data/text/sentencepiece.hpp>
#include <frugal/error.hpp>

#include <sentencepiece_trainer.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <ranges>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

namespace frugal {

/// How a vocabulary is chosen.
enum class Pieces {
  Unigram,  ///< Kudo, "Subword regularization" (ACL 2018)
  BytePair  ///< Sennrich, Haddow, Birch, "Neural machine translation of rare words" (ACL 2016)
};

/// The settings of a training; the defaults are those of SentencePiece, unless it says otherwise.
struct SentencePieceTraining {
  Pieces pieces = Pieces::Unigram;
  std::int32_t size = 8000;    ///< pieces, special tokens included
  double coverage = 0.9995;    ///< share of the texts' characters that become pieces
  bool byte_fallback = false;  ///< characters that are none become their bytes, not unknown
  bool split_digits = false;   ///< each digit is a piece
  std::string normalisation = "nmt_nfkc";  ///< or "nfkc", "nmt_nfkc_cf", "nfkc_cf", "identity"
  std::vector<std::string> symbols{};      ///< pieces of their own, wherever they stand in a text
  std::int32_t unknown = 0;                ///< ids of the special tokens; -1: none
  std::int32_t start = 1;
  std::int32_t end = 2;
  std::int32_t padding = -1;
  std::uint64_t most_texts = 0;  ///< a sample of so many texts is used; 0: all
  std::uint32_t seed = 0;        ///< of that sample
  /// The threads of a unigram training add up in another order, so its result may depend on their
  /// number, and on nothing else. SentencePiece's default is 16.
  int threads = 1;
};

namespace detail {

/// Texts, one after the other, as SentencePiece reads them.
template <class Texts>
class TextIterator : public ::sentencepiece::SentenceIterator {
 public:
  explicit TextIterator(Texts const& texts)
      : at_(std::ranges::begin(texts)), end_(std::ranges::end(texts)) {
    load();
  }
  bool done() const override { return at_ == end_; }
  void Next() override {
    ++at_;
    load();
  }
  std::string const& value() const override { return text_; }
  ::sentencepiece::util::Status status() const override { return {}; }

 private:
  void load() {
    if (at_ != end_) text_ = std::string_view(*at_);
  }
  std::ranges::iterator_t<Texts const> at_;
  std::ranges::sentinel_t<Texts const> end_;
  std::string text_;
};

/// A list as SentencePiece parses it: CSV.
inline std::string comma_separated(std::vector<std::string> const& words) {
  std::string text;
  for (std::string const& word : words) {
    if (!text.empty()) text += ',';
    text += '"';
    for (char const c : word) text += c == '"' ? std::string("\"\"") : std::string(1, c);
    text += '"';
  }
  return text;
}

}  // namespace detail

/// Trains a vocabulary on texts, each of which is a sentence or a paragraph. The result is a
/// function of the texts and of the settings. Texts of up to 2^30 bytes are read, unlike by
/// SentencePiece itself, which skips those of more than 4192 by default.
///
/// Errors  SettingsError with what the library says, for a size that the texts do not allow among
///         others; EmptySourceError without texts.
template <std::ranges::forward_range Texts>
SentencePiece train_sentencepiece(Texts const& texts, SentencePieceTraining const& training = {},
                                  SentencePieceSettings settings = {}) {
  std::size_t longest = 0;
  for (auto const& text : texts) longest = std::max(longest, std::string_view(text).size());
  if (longest == 0) {
    throw EmptySourceError({.what = "there is no text to train on",
                            .where = "train_sentencepiece",
                            .why = "",
                            .fix = "Give at least one that is not empty."});
  }
  auto const flag = [](bool on) { return std::string(on ? "true" : "false"); };
  std::unordered_map<std::string, std::string> const arguments{
      {"model_type", training.pieces == Pieces::Unigram ? "unigram" : "bpe"},
      {"vocab_size", std::to_string(training.size)},
      // The library reads it by the program's locale.
      {"character_coverage", detail::without_point(training.coverage)},
      {"byte_fallback", flag(training.byte_fallback)},
      {"split_digits", flag(training.split_digits)},
      {"normalization_rule_name", training.normalisation},
      {"user_defined_symbols", detail::comma_separated(training.symbols)},
      {"unk_id", std::to_string(training.unknown)},
      {"bos_id", std::to_string(training.start)},
      {"eos_id", std::to_string(training.end)},
      {"pad_id", std::to_string(training.padding)},
      {"input_sentence_size", std::to_string(training.most_texts)},
      {"num_threads", std::to_string(training.threads)},
      // The library takes 10 to 2^30 bytes, and skips what is longer.
      {"max_sentence_length", std::to_string(std::clamp<std::size_t>(longest, 4192, 1U << 30))},
      {"minloglevel", "2"}};
  sentencepiece::SetRandomGeneratorSeed(training.seed);
  detail::TextIterator<Texts> iterator(texts);
  std::string model;
  auto const status = sentencepiece::SentencePieceTrainer::Train(arguments, &iterator, &model);
  if (!status.ok()) {
    throw SettingsError({.what = "the vocabulary cannot be trained",
                         .where = "train_sentencepiece",
                         .why = status.ToString(),
                         .fix = "Change the setting that is named, or give more text."});
  }
  return SentencePiece::parse(model, settings, "trained model");
}

}  // namespace frugal
