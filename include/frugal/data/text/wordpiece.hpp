// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/base/utf8.hpp>
#include <frugal/data/text/bert_words.hpp>
#include <frugal/data/text/tokenise.hpp>
#include <frugal/data/text/vocabulary.hpp>
#include <frugal/error.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace frugal {

/// A token that is found in a text as it is, whatever is around it, as Python's `tokenizers` adds them
/// to a model.
struct AddedToken {
  std::string text;
  bool normalized = false;  ///< found in the text as BertText has changed it, and changed likewise
  bool special = false;     ///< decode() leaves it out
};

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
  std::vector<AddedToken> added{};  ///< the vocabulary has them
  /// Ids below it are of pieces of words; the others are of added tokens.
  std::int32_t pieces = std::numeric_limits<std::int32_t>::max();
  std::size_t most = detail::no_token_limit;  ///< of encode(), which may give a lower limit
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
    most = std::min(most, settings().most);
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
    most = std::min(most, settings().most);
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
    text += ", longest " + std::to_string(s.longest_word) + ", special " +
            (s.special_in_text ? "1" : "0");
    for (AddedToken const& each : s.added) {
      text += ", added " + std::to_string(each.text.size()) + ":" + each.text;
      text += each.normalized ? " normalized" : "";
    }
    // Only where they are given: caches that were made before there were these settings are valid.
    if (s.pieces < vocabulary().size()) text += ", pieces " + std::to_string(s.pieces);
    if (s.most != no_limit) text += ", most " + std::to_string(s.most);
    return text;
  }

  static constexpr std::size_t no_limit = detail::no_token_limit;

 private:
  /// Texts that are tokens wherever they stand.
  class Texts {
   public:
    void add(std::string text, std::int32_t id) {
      if (text.empty()) return;
      begins_[static_cast<unsigned char>(text.front())] = true;
      all_.emplace_back(std::move(text), id);
    }
    bool empty() const { return all_.empty(); }

    /// Calls `between(begin, end)` and `token(id, begin, end)` in turns: the first token from the
    /// left, and the longest there.
    template <class Between, class Token>
    void split(std::string_view text, Between&& between, Token&& token) const {
      std::size_t begin = 0;
      for (std::size_t at = 0; !all_.empty() && at < text.size();) {
        auto const* const found = longest_at(text.substr(at));
        if (found == nullptr) {
          ++at;
          continue;
        }
        std::size_t const end = at + found->first.size();
        if (at != begin) between(begin, at);
        token(found->second, at, end);
        begin = at = end;
      }
      if (begin != text.size()) between(begin, text.size());
    }

   private:
    std::pair<std::string, std::int32_t> const* longest_at(std::string_view text) const {
      if (!begins_[static_cast<unsigned char>(text.front())]) return nullptr;
      std::pair<std::string, std::int32_t> const* found = nullptr;
      for (auto const& each : all_) {
        bool const longer = found == nullptr || each.first.size() > found->first.size();
        if (longer && text.starts_with(each.first)) found = &each;
      }
      return found;
    }

    std::vector<std::pair<std::string, std::int32_t>> all_;
    std::array<bool, 256> begins_{};
  };

  struct State {
    State(Vocabulary v, WordpieceSettings s)
        : vocabulary(std::move(v)),
          settings(std::move(s)),
          words(settings.text),
          trie(vocabulary, settings.prefix, settings.longest_word, settings.pieces) {
      std::array<std::string const*, 5> const names{&settings.unknown, &settings.start,
                                                    &settings.separator, &settings.padding,
                                                    &settings.mask};
      for (std::size_t i = 0; i < names.size(); ++i) {
        special[i] = vocabulary.id(*names[i]);
        hidden.push_back(special[i]);
        if (settings.special_in_text) as_they_are.add(*names[i], special[i]);
      }
      for (AddedToken const& each : settings.added) {
        std::int32_t const id = vocabulary.id(each.text);
        if (each.special) hidden.push_back(id);
        if (!each.normalized) {
          as_they_are.add(each.text, id);
        } else {
          words.normalize(
              each.text, [&](BertWord const& word) { normalized.add(std::string(word.text), id); });
        }
      }
    }

    bool is_special(std::int32_t id) const {
      return std::find(hidden.begin(), hidden.end(), id) != hidden.end();
    }

    Vocabulary vocabulary;
    WordpieceSettings settings;
    BertWords words;
    /// Cuts a text that is normalized already.
    BertWords cut{
        {.lower_case = false, .strip_accents = false, .clean = false, .space_chinese = false}};
    detail::WordpieceTrie trie;
    std::array<std::int32_t, 5> special{};
    std::vector<std::int32_t> hidden;
    Texts as_they_are;
    Texts normalized;
  };

  void append(std::string_view text, std::int32_t type, Encoded& made) const {
    tokens_of(text, [&](std::int32_t id, TextSpan span) { made.push(id, type, span); }, made);
  }

  /// Calls `f(id, span)` for each token; `out` is what f appends to, and loses what was appended
  /// for a word that turns out unknown.
  template <class F, class Out>
  void tokens_of(std::string_view text, F&& f, Out& out) const {
    state_->as_they_are.split(
        text, [&](std::size_t begin, std::size_t end) { around(text, begin, end, f, out); },
        [&](std::int32_t id, std::size_t begin, std::size_t end) { f(id, TextSpan{begin, end}); });
  }

  /// A part of a text between tokens that stand there as they are.
  template <class F, class Out>
  void around(std::string_view text, std::size_t begin, std::size_t end, F& f, Out& out) const {
    std::string_view const part = text.substr(begin, end - begin);
    if (state_->normalized.empty()) {
      return pieces_of(state_->words, part, f, out, [begin](TextSpan first, TextSpan last) {
        return TextSpan{begin + first.begin, begin + last.end};
      });
    }
    state_->words.normalize(part, [&](BertWord const& whole) {
      auto const span = [&](std::size_t from, std::size_t to) {
        return TextSpan{begin + whole.from[from].begin, begin + whole.from[to - 1].end};
      };
      state_->normalized.split(
          whole.text,
          [&](std::size_t from, std::size_t to) {
            pieces_of(state_->cut, whole.text.substr(from, to - from), f, out,
                      [&](TextSpan first, TextSpan last) {
                        return span(from + first.begin, from + last.end);
                      });
          },
          [&](std::int32_t id, std::size_t from, std::size_t to) { f(id, span(from, to)); });
    });
  }

  /// The pieces of the words of a text; `span` gives the place of bytes by those of the words.
  template <class F, class Out, class Span>
  void pieces_of(BertWords const& words, std::string_view text, F& f, Out& out,
                 Span const& span) const {
    words(text, [&](BertWord const& word) {
      std::size_t const before = out.size();
      std::size_t at = 0;
      bool const known = (word.text.size() <= state_->settings.longest_word ||
                          detail::count_code_points(word.text) <= state_->settings.longest_word) &&
                         state_->trie.match(word.text, [&](std::int32_t id, std::uint32_t bytes) {
                           f(id, span(word.from[at], word.from[at + bytes - 1]));
                           at += bytes;
                         });
      if (known) return;
      out.resize(before);
      f(unknown(), span(word.from.front(), word.from.back()));
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
