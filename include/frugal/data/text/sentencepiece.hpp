// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/base/file.hpp>
#include <frugal/base/folder.hpp>
#include <frugal/base/hash.hpp>
#include <frugal/base/number_text.hpp>
#include <frugal/data/text/tokenise.hpp>
#include <frugal/error.hpp>

#include <sentencepiece_processor.h>
#include <sentencepiece_trainer.h>

#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <ranges>
#include <span>
#include <string>
#include <string_view>
#include <system_error>
#include <unordered_map>
#include <utility>
#include <vector>

namespace frugal {

/// The settings of a SentencePiece tokenizer.
struct SentencePieceSettings {
  bool start = false;  ///< encode() begins with the model's `<s>`
  bool end = false;    ///< and ends with its `</s>`
};

/// A byte-pair or unigram vocabulary of SentencePiece, with its model file. Const, safe to call
/// from several threads; copies share the model.
///
/// Errors  DataError for a file that is no model, with what the library says; StoreError for one
///         that cannot be read; SettingsError for a special token that the model does not have.
/// Source  Kudo and Richardson, "SentencePiece" (EMNLP 2018 demonstrations); the library is
///         Debian's libsentencepiece.
class SentencePiece {
 public:
  static SentencePiece read(std::filesystem::path const& path,
                            SentencePieceSettings settings = {}) {
    MappedFile const file(path);
    std::span<std::byte const> const bytes = file.bytes();
    return parse({reinterpret_cast<char const*>(bytes.data()), bytes.size()}, settings,
                 path.string());
  }

  /// Parses a model file's bytes; errors call them `name`.
  static SentencePiece parse(std::string_view bytes, SentencePieceSettings settings = {},
                             std::string const& name = "SentencePiece model") {
    auto model = std::make_shared<Model>();
    auto const status = bytes.empty() ? sentencepiece::util::Status()
                                      : model->processor.LoadFromSerializedProto(bytes);
    if (bytes.empty() || !status.ok() || model->processor.GetPieceSize() == 0) {
      throw DataError({.what = "the file is no SentencePiece model",
                       .where = name,
                       .why = bytes.empty() ? "it is empty" : status.ToString(),
                       .fix = "Give the .model file that the training wrote, whole."});
    }
    model->bytes = bytes;
    SentencePiece made(std::move(model), settings);
    if (settings.start) need(made.start(), "<s>");
    if (settings.end) need(made.end(), "</s>");
    return made;
  }

  /// Appends the ids of a text, without special tokens around it.
  void append_ids(std::string_view text, std::vector<std::int32_t>& ids) const {
    std::vector<int> found;
    check(processor().Encode(text, &found));
    ids.insert(ids.end(), found.begin(), found.end());
  }
  std::vector<std::int32_t> ids(std::string_view text) const {
    std::vector<std::int32_t> all;
    append_ids(text, all);
    return all;
  }

  /// A text with the special tokens of the settings, and the bytes that each token comes from.
  /// Longer than `most` tokens, it is cut at the end. Throws SettingsError if `most` does not even
  /// hold the special tokens.
  Encoded encode(std::string_view text, std::size_t most = detail::no_token_limit) const {
    std::size_t const special = (settings_.start ? 1U : 0U) + (settings_.end ? 1U : 0U);
    if (most < special) {
      throw SettingsError({.what = "at most " + std::to_string(most) + " tokens",
                           .where = "SentencePiece::encode",
                           .why = "the special tokens alone are " + std::to_string(special),
                           .fix = "Give a higher limit."});
    }
    sentencepiece::ImmutableSentencePieceText pieces;
    check(processor().Encode(text, pieces.mutable_proto()));
    Encoded made;
    if (settings_.start) made.push(*start(), 0, {});
    for (std::size_t i = 0; i < pieces.pieces_size(); ++i) {
      auto const piece = pieces.pieces(static_cast<int>(i));
      made.push(static_cast<std::int32_t>(piece.id()), 0, {piece.begin(), piece.end()});
    }
    made.resize(std::min(made.size(), most - (settings_.end ? 1 : 0)));
    if (settings_.end) made.push(*end(), 0, {});
    return made;
  }

  /// The text of ids. Throws DataError for an id that the model does not have.
  std::string decode(std::span<std::int32_t const> ids) const {
    for (std::int32_t const id : ids) static_cast<void>(piece(id));
    std::string text;
    check(processor().Decode(std::vector<int>(ids.begin(), ids.end()), &text));
    return text;
  }

  /// Pieces; ids are below it.
  std::int32_t size() const { return processor().GetPieceSize(); }
  /// The piece of an id. Throws DataError for an id that the model does not have.
  std::string const& piece(std::int64_t id) const {
    if (id >= 0 && id < size()) return processor().IdToPiece(static_cast<int>(id));
    throw DataError({.what = "no piece has the id " + std::to_string(id),
                     .where = "a model of " + std::to_string(size()) + " pieces",
                     .why = "",
                     .fix = "Give ids from 0 to " + std::to_string(size() - 1) + "."});
  }

  /// The ids of the special tokens, where the model has them.
  std::int32_t unknown() const { return processor().unk_id(); }
  std::optional<std::int32_t> start() const { return known(processor().bos_id()); }
  std::optional<std::int32_t> end() const { return known(processor().eos_id()); }
  std::optional<std::int32_t> padding() const { return known(processor().pad_id()); }

  /// Writes the model file, whole or not at all; a file of that name is replaced.
  void write(std::filesystem::path const& path) const {
    auto const partial = path.parent_path() / ("." + path.filename().string() + "-" +
                                               std::to_string(::getpid()) + ".partial");
    std::error_code ignored;
    std::filesystem::remove(partial, ignored);  // of a crashed process with this number
    try {
      File file = File::create(partial);
      file.write(std::as_bytes(std::span(bytes())));
      file.sync();
      file.close();
      rename_path(partial, path);
    } catch (...) {
      std::filesystem::remove(partial, ignored);
      throw;
    }
    sync_folder(path.has_parent_path() ? path.parent_path() : ".");
  }

  /// The model file, as `read` takes it.
  std::string const& bytes() const { return model_->bytes; }

  /// A hash of the model file, and the settings.
  std::string identity() const {
    return "sentencepiece 1, " + hex_of(Hash::of(std::as_bytes(std::span(bytes())))) + ", start " +
           (settings_.start ? "1" : "0") + ", end " + (settings_.end ? "1" : "0");
  }

 private:
  struct Model {
    sentencepiece::SentencePieceProcessor processor;
    std::string bytes;
  };

  SentencePiece(std::shared_ptr<Model const> model, SentencePieceSettings settings)
      : model_(std::move(model)), settings_(settings) {}

  sentencepiece::SentencePieceProcessor const& processor() const { return model_->processor; }

  static std::optional<std::int32_t> known(int id) {
    return id < 0 ? std::nullopt : std::optional<std::int32_t>(id);
  }
  static void need(std::optional<std::int32_t> id, std::string const& name) {
    if (id) return;
    throw SettingsError({.what = "the model has no token " + name,
                         .where = "SentencePieceSettings",
                         .why = "it was trained without it",
                         .fix = "Leave `start` and `end` off, or train it with the token."});
  }
  static void check(sentencepiece::util::Status const& status) {
    if (status.ok()) return;
    throw DataError({.what = "SentencePiece cannot do this",
                     .where = "SentencePiece",
                     .why = status.ToString(),
                     .fix = "Check the model file and the text."});
  }

  std::shared_ptr<Model const> model_;
  SentencePieceSettings settings_;
};

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
  std::string normalization = "nmt_nfkc";  ///< or "nfkc", "nmt_nfkc_cf", "nfkc_cf", "identity"
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
      {"normalization_rule_name", training.normalization},
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
