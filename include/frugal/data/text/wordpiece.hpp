// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/base/utf8.hpp>
#include <frugal/data/text/bert_words.hpp>
#include <frugal/data/text/encoded.hpp>
#include <frugal/data/text/vocabulary.hpp>
#include <frugal/data/text/wordpiece_trie.hpp>
#include <frugal/error.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace frugal {

/// The settings of a WordPiece tokenizer; the defaults are those of bert-base-uncased.
struct WordpieceSettings {
  BertText text{};
  std::string unknown = "[UNK]";
  std::string start = "[CLS]";
  std::string separator = "[SEP]";
  std::string padding = "[PAD]";
  std::string mask = "[MASK]";
  std::string prefix = "##";       ///< of pieces within a word
  std::size_t longest_word = 100;  ///< code points; a longer word is unknown
  /// Special tokens that stand in a text are themselves, as in Python's `tokenizers`. Otherwise
  /// they are text like any other, so that nobody can put a [SEP] into a document.
  bool special_in_text = false;
};

/// WordPiece with a vocabulary file, for the BERT family: BertWords, and the longest pieces of each
/// word from the left. Const, safe to call from several threads; copies share the tables.
///
/// Cost    linear in the text; the tables take about 100 bytes for each byte of the vocabulary.
/// Errors  DataError for a vocabulary without one of the special tokens.
/// Source  as BertWords and WordpieceTrie; tests/interop/wordpiece.py compares ids and offsets with
///         Python's `tokenizers`.
class Wordpiece {
 public:
  explicit Wordpiece(Vocabulary vocabulary, WordpieceSettings settings = {})
      : state_(std::make_shared<State const>(std::move(vocabulary), std::move(settings))) {}

  /// Appends the ids of a text, without special tokens around it.
  void append_ids(std::string_view text, std::vector<std::int32_t>& ids) const {
    tokens_of(text, [&](std::int32_t id, TextSpan) { ids.push_back(id); }, ids);
  }
  std::vector<std::int32_t> ids(std::string_view text) const {
    std::vector<std::int32_t> all;
    append_ids(text, all);
    return all;
  }

  /// [CLS] text [SEP], or [CLS] first [SEP] second [SEP], with types and spans. Longer than `most`
  /// tokens, it is cut at the end; of a pair the longer text first, as Python's `tokenizers` does.
  /// Throws SettingsError if `most` does not even hold the special tokens.
  Encoded encode(std::string_view text, std::size_t most = no_limit) const {
    require_room(most, 2);
    Encoded made;
    made.push(start(), 0, {});
    append(text, 0, made);
    made.resize(std::min(made.ids.size(), most - 1));
    made.push(separator(), 0, {});
    return made;
  }
  Encoded encode(std::string_view first, std::string_view second,
                 std::size_t most = no_limit) const {
    require_room(most, 3);
    Encoded made, other;
    made.push(start(), 0, {});
    append(first, 0, made);
    append(second, 1, other);
    auto const [a, b] = detail::longest_first(made.ids.size() - 1, other.ids.size(), most - 3);
    made.resize(a + 1);
    other.resize(b);
    made.push(separator(), 0, {});
    made.append(other);
    made.push(separator(), 1, {});
    return made;
  }

  /// The text of ids, for reading: pieces joined to words, words with a space between them; special
  /// tokens are left out. Throws DataError for an id that the vocabulary does not have.
  std::string decode(std::span<std::int32_t const> ids) const {
    std::string text;
    for (std::int32_t const id : ids) {
      std::string_view token = vocabulary().token(id);
      if (state_->is_special(id)) continue;
      bool const within = !text.empty() && token.starts_with(state_->settings.prefix);
      if (within) token.remove_prefix(state_->settings.prefix.size());
      if (!text.empty() && !within) text += ' ';
      text += token;
    }
    return text;
  }

  std::int32_t unknown() const { return state_->special[0]; }
  std::int32_t start() const { return state_->special[1]; }
  std::int32_t separator() const { return state_->special[2]; }
  std::int32_t padding() const { return state_->special[3]; }
  std::int32_t mask() const { return state_->special[4]; }

  Vocabulary const& vocabulary() const { return state_->vocabulary; }
  WordpieceSettings const& settings() const { return state_->settings; }

  /// Changes with the vocabulary, with a setting, with this code, and with Unicode's tables.
  std::string identity() const {
    WordpieceSettings const& s = state_->settings;
    std::string text = "wordpiece 1, " + vocabulary().identity() + ", " + s.text.settings();
    for (std::string const* part :
         {&s.unknown, &s.start, &s.separator, &s.padding, &s.mask, &s.prefix}) {
      text += ", " + std::to_string(part->size()) + ":" + *part;
    }
    return text + ", longest " + std::to_string(s.longest_word) + ", special " +
           (s.special_in_text ? "1" : "0");
  }

  static constexpr std::size_t no_limit = detail::no_token_limit;

 private:
  struct State {
    State(Vocabulary v, WordpieceSettings s)
        : vocabulary(std::move(v)),
          settings(std::move(s)),
          words(settings.text),
          trie(vocabulary, settings.prefix, settings.longest_word),
          names{settings.unknown, settings.start, settings.separator, settings.padding,
                settings.mask} {
      std::transform(names.begin(), names.end(), special.begin(),
                     [this](std::string const& name) { return vocabulary.id(name); });
    }

    bool is_special(std::int32_t id) const {
      return std::find(special.begin(), special.end(), id) != special.end();
    }

    Vocabulary vocabulary;
    WordpieceSettings settings;
    BertWords words;
    detail::WordpieceTrie trie;
    std::array<std::string, 5> names;
    std::array<std::int32_t, 5> special{};
  };

  void append(std::string_view text, std::int32_t type, Encoded& made) const {
    tokens_of(text, [&](std::int32_t id, TextSpan span) { made.push(id, type, span); }, made);
  }

  /// Calls `f(id, span)` for each token; `out` is what f appends to, and loses what was appended
  /// for a word that turns out unknown.
  template <class F, class Out>
  void tokens_of(std::string_view text, F&& f, Out& out) const {
    if (!state_->settings.special_in_text) return plain(text, 0, f, out);
    std::size_t begin = 0;
    for (std::size_t at = 0; at < text.size();) {
      std::size_t const which = special_at(text.substr(at));
      if (which == state_->names.size()) {
        ++at;
        continue;
      }
      std::size_t const end = at + state_->names[which].size();
      plain(text.substr(begin, at - begin), begin, f, out);
      f(state_->special[which], TextSpan{at, end});
      begin = at = end;
    }
    plain(text.substr(begin), begin, f, out);
  }

  /// The longest special token that a text begins with; names.size() if there is none.
  std::size_t special_at(std::string_view text) const {
    std::size_t found = state_->names.size(), longest = 0;
    for (std::size_t i = 0; i < state_->names.size(); ++i) {
      std::string const& name = state_->names[i];
      if (name.size() > longest && text.starts_with(name)) {
        found = i;
        longest = name.size();
      }
    }
    return found;
  }

  template <class F, class Out>
  void plain(std::string_view text, std::size_t offset, F& f, Out& out) const {
    state_->words(text, [&](BertWord const& word) {
      std::size_t const before = out.size();
      auto const span = [&](std::size_t begin, std::size_t end) {
        return TextSpan{offset + word.from[begin].begin, offset + word.from[end - 1].end};
      };
      std::size_t at = 0;
      bool const known = (word.text.size() <= state_->settings.longest_word ||
                          detail::count_code_points(word.text) <= state_->settings.longest_word) &&
                         state_->trie.match(word.text, [&](std::int32_t id, std::uint32_t bytes) {
                           f(id, span(at, at + bytes));
                           at += bytes;
                         });
      if (known) return;
      out.resize(before);
      f(unknown(), span(0, word.text.size()));
    });
  }

  static void require_room(std::size_t most, std::size_t special) {
    if (most >= special) return;
    throw SettingsError({.what = "at most " + std::to_string(most) + " tokens",
                         .where = "Wordpiece::encode",
                         .why = "the special tokens alone are " + std::to_string(special),
                         .fix = "Give a higher limit."});
  }

  std::shared_ptr<State const> state_;
};

}  // namespace frugal
