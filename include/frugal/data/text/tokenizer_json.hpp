// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/base/file.hpp>
#include <frugal/base/json.hpp>
#include <frugal/data/text/vocabulary.hpp>
#include <frugal/data/text/wordpiece.hpp>
#include <frugal/error.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

namespace frugal {
namespace detail {

/// Reads the parts of a tokenizer.json. What Wordpiece does not do is refused by its name: with
/// another normalizer, say, the ids would be those of another text.
class TokenizerJson {
 public:
  TokenizerJson(Json const& all, std::string name) : all_(all), name_(std::move(name)) {}

  Wordpiece tokenizer() {
    WordpieceSettings settings;
    Json const& model = part(all_, "model");
    require_type(
        model, "model", "WordPiece",
        "Take a model of the BERT family, or read a SentencePiece model with SentencePiece.");
    settings.unknown = text(part(model, "unk_token"), "model.unk_token");
    settings.prefix = text(part(model, "continuing_subword_prefix"), "model.");
    settings.longest_word = count(part(model, "max_input_chars_per_word"), "model.");
    read_vocabulary(part(model, "vocab"));
    settings.pieces = static_cast<std::int32_t>(tokens_.size());
    read_added(settings);
    read_text(settings.text);
    read_template(settings);
    read_truncation(settings);
    Vocabulary vocabulary = Vocabulary::of(tokens_, name_);
    // Python's tokenizers know no mask, and padding only if they pad.
    if (Json const* const padding = find(all_, "padding")) {
      settings.padding = text(part(*padding, "pad_token"), "padding.pad_token");
    } else {
      settings.padding = named(vocabulary, {"[PAD]", "<pad>"}, "padding");
    }
    settings.mask = named(vocabulary, {"[MASK]", "<mask>"}, "mask");
    return Wordpiece(std::move(vocabulary), std::move(settings));
  }

 private:
  using Kind = Json::Kind;

  [[noreturn]] void refuse(std::string where, std::string why, std::string fix) const {
    throw DataError({.what = "the tokenizer cannot be used",
                     .where = name_ + (where.empty() ? "" : ", " + where),
                     .why = std::move(why),
                     .fix = std::move(fix)});
  }
  [[noreturn]] void refuse(std::string where, std::string why) const {
    refuse(std::move(where), std::move(why),
           "Encode the texts in Python, and store the ids, or use a tokenizer without it.");
  }
  [[noreturn]] void damaged(std::string where, std::string why) const {
    refuse(std::move(where), std::move(why), "Take the tokenizer.json of the model again.");
  }

  /// A member; null if it is missing, or null.
  static Json const* find(Json const& parent, std::string_view name) {
    Json const* const found = parent.find(name);
    return found == nullptr || found->is(Kind::null) ? nullptr : found;
  }
  Json const& part(Json const& parent, std::string_view name) const {
    if (Json const* const found = find(parent, name)) return *found;
    damaged(std::string(name), "it is missing");
  }
  /// A part that a tokenizer may do without; then it is of no type.
  Json const& part_or_nothing(std::string_view name) const {
    static Json const nothing;
    Json const* const found = find(all_, name);
    return found == nullptr ? nothing : *found;
  }
  std::string const& text(Json const& value, std::string const& where) const {
    if (!value.is(Kind::text)) damaged(where, "\"" + value.name() + "\" is not a text");
    return value.text();
  }
  std::size_t count(Json const& value, std::string const& where) const {
    auto const found = value.as_unsigned();
    if (!found) damaged(where + value.name(), "it is not a number");
    return *found;
  }
  static bool truth(Json const& parent, std::string_view name) {
    Json const* const value = find(parent, name);
    return value != nullptr && value->is(Kind::boolean) && value->truth();
  }
  void require_type(Json const& value, std::string const& where, std::string_view wanted,
                    std::string fix) const {
    Json const* const type = find(value, "type");
    std::string const found = type == nullptr ? "missing" : type->text();
    if (found == wanted) return;
    refuse(where, "it is " + found + ", and only " + std::string(wanted) + " is known",
           std::move(fix));
  }

  void read_vocabulary(Json const& vocab) {
    if (!vocab.is(Kind::object)) damaged("model.vocab", "it is not an object");
    tokens_.resize(vocab.items().size());
    for (Json const& each : vocab.items()) {
      auto const id = each.as_unsigned();
      if (!id || *id >= tokens_.size()) {
        refuse("model.vocab", "'" + each.name() + "' has the id " + each.text() +
                                  ", and the ids of " + std::to_string(tokens_.size()) +
                                  " tokens end before");
      }
      if (!tokens_[*id].empty())
        damaged("model.vocab", "the id " + each.text() + " is there twice");
      tokens_[*id] = each.name();
    }
  }

  void read_added(WordpieceSettings& settings) {
    Json const* const added = find(all_, "added_tokens");
    if (added == nullptr) return;
    std::vector<std::pair<std::size_t, std::string>> more;
    for (Json const& each : added->items()) {
      AddedToken const token{.text = text(part(each, "content"), "added_tokens"),
                             .normalized = truth(each, "normalized"),
                             .special = truth(each, "special")};
      if (truth(each, "single_word")) {
        refuse("added_tokens", "'" + token.text + "' is only a token as a word of its own");
      }
      std::size_t const id = count(part(each, "id"), "added_tokens.");
      if (id >= tokens_.size()) {
        more.emplace_back(id, token.text);
      } else if (tokens_[id] != token.text) {
        damaged("added_tokens", "'" + token.text + "' has the id of '" + tokens_[id] + "'");
      }
      settings.added.push_back(token);
    }
    std::sort(more.begin(), more.end());
    for (auto& [id, content] : more) {
      if (id != tokens_.size()) {
        refuse("added_tokens", "no token has the id " + std::to_string(tokens_.size()));
      }
      tokens_.push_back(std::move(content));
    }
  }

  void read_text(BertText& to) const {
    Json const& normalizer = part_or_nothing("normalizer");
    std::string const fix =
        "Encode the texts in Python, and store the ids, or take a tokenizer of the BERT family.";
    require_type(normalizer, "normalizer", "BertNormalizer", fix);
    to.clean = truth(normalizer, "clean_text");
    to.space_chinese = truth(normalizer, "handle_chinese_chars");
    to.lower_case = truth(normalizer, "lowercase");
    if (find(normalizer, "strip_accents") != nullptr) {
      to.strip_accents = truth(normalizer, "strip_accents");
    }
    require_type(part_or_nothing("pre_tokenizer"), "pre_tokenizer", "BertPreTokenizer", fix);
  }

  /// [CLS] A [SEP], and [CLS] A [SEP] B [SEP]: the tokens may have other names.
  void read_template(WordpieceSettings& settings) const {
    Json const& post = part_or_nothing("post_processor");
    Json const* const type = find(post, "type");
    if (type != nullptr && type->text() == "BertProcessing") {
      settings.separator = first_of(part(post, "sep"));
      settings.start = first_of(part(post, "cls"));
      return;
    }
    require_type(post, "post_processor", "TemplateProcessing",
                 "Encode the texts in Python, and store the ids.");
    auto const single = pieces_of(part(post, "single"));
    auto const pair = pieces_of(part(post, "pair"));
    bool const usual = single.size() == 3 && single[1] == "A 0" && pair.size() == 5 &&
                       pair[0] == single[0] && pair[1] == "A 0" && pair[2] == single[2] &&
                       pair[3] == "B 1" && single[0].ends_with(" 0") && single[2].ends_with(" 0") &&
                       pair[4] == single[2].substr(0, single[2].size() - 1) + "1";
    if (!usual) refuse("post_processor", "its template is not that of BERT");
    settings.start = token_of(post, single[0]);
    settings.separator = token_of(post, single[2]);
  }
  std::string first_of(Json const& pair) const {
    if (pair.items().empty()) damaged("post_processor", "a token has no name");
    return text(pair.items()[0], "post_processor");
  }
  /// "A 0", "[CLS] 0": the ids and types of a template.
  std::vector<std::string> pieces_of(Json const& sequence) const {
    std::vector<std::string> pieces;
    for (Json const& each : sequence.items()) {
      if (each.items().empty()) damaged("post_processor", "a part of its template is empty");
      Json const& piece = each.items()[0];  // "Sequence" or "SpecialToken"
      pieces.push_back(text(part(piece, "id"), "post_processor") + " " +
                       std::to_string(count(part(piece, "type_id"), "post_processor.")));
    }
    return pieces;
  }
  /// The one token that a special token of a template stands for.
  std::string token_of(Json const& post, std::string const& piece) const {
    Json const& special = part(part(post, "special_tokens"), piece.substr(0, piece.size() - 2));
    auto const& tokens = part(special, "tokens").items();
    if (tokens.size() != 1) refuse("post_processor", "a special token stands for several");
    return text(tokens[0], "post_processor");
  }

  void read_truncation(WordpieceSettings& settings) const {
    Json const* const truncation = find(all_, "truncation");
    if (truncation == nullptr) return;
    settings.most = count(part(*truncation, "max_length"), "truncation.");
    if (text(part(*truncation, "strategy"), "truncation") != "LongestFirst") {
      refuse("truncation", "its strategy is not LongestFirst");
    }
    Json const* const direction = find(*truncation, "direction");
    if (direction != nullptr && direction->text() != "Right") {
      refuse("truncation", "texts are not cut at their end");
    }
  }

  std::string named(Vocabulary const& vocabulary, std::initializer_list<char const*> names,
                    std::string const& what) const {
    for (char const* const name : names) {
      if (vocabulary.find(name)) return name;
    }
    refuse("model.vocab", "no token is for " + what);
  }

  Json const& all_;
  std::string name_;
  std::vector<std::string> tokens_;
};

}  // namespace detail

/// A WordPiece tokenizer from a file of Python's `tokenizers`, or from tokenizer.json in a folder:
/// vocabulary, added and special tokens, the changes to a text, truncation. Its ids are those of
/// Python, also of special tokens that stand in a text. It does not pad: PadTo and packing do.
///
/// Errors  DataError that names what Wordpiece does not do: another model than WordPiece, another
///         normalizer, added tokens that are found as whole words only, truncation from the left;
///         StoreError for a file that cannot be read.
inline Wordpiece read_tokenizer(std::filesystem::path path) {
  std::error_code ignored;
  if (std::filesystem::is_directory(path, ignored)) path /= "tokenizer.json";
  detail::JsonError error;
  std::optional<detail::Json> const all =
      detail::Json::parse(detail::read_whole_file(path), &error);
  if (!all || !all->is(detail::Json::Kind::object)) {
    throw DataError({.what = "the file is not a tokenizer",
                     .where = path.string() + (all ? "" : ", byte " + std::to_string(error.at)),
                     .why = all ? "it is not a JSON object" : error.why,
                     .fix = "Give the tokenizer.json of a model."});
  }
  return detail::TokenizerJson(*all, path.string()).tokenizer();
}

}  // namespace frugal
