// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/base/file.hpp>
#include <frugal/base/hash.hpp>
#include <frugal/base/utf8.hpp>
#include <frugal/error.hpp>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

namespace frugal {

/// A vocabulary as the BERT family stores it (`vocab.txt`): one token a line in UTF-8, whose number
/// is its id, from 0. Copies share it.
///
/// Errors  DataError with file, line and byte for a vocabulary that is empty or longer than 2^31
///         lines, for bytes that are no UTF-8, an empty line, a byte order mark, and a token that
///         stands twice; StoreError for a file that cannot be read.
class Vocabulary {
 public:
  static Vocabulary read(std::filesystem::path const& path) {
    MappedFile const file(path);
    std::span<std::byte const> const bytes = file.bytes();
    return parse({reinterpret_cast<char const*>(bytes.data()), bytes.size()}, path.string());
  }

  /// Parses a file's bytes; errors call them `name`. Lines end in LF or CR LF, the last may end
  /// with the text.
  static Vocabulary parse(std::string_view text, std::string const& name = "vocabulary") {
    auto made = std::make_shared<Tokens>();
    made->text = text;
    text = made->text;
    if (text.empty()) {
      throw fault("the vocabulary is empty", name, 1, 0, "", "Give a file with one token a line.");
    }
    if (text.starts_with("\xef\xbb\xbf")) {
      throw fault("the vocabulary begins with a byte order mark", name, 1, 0, "",
                  "Save the file as UTF-8 without one; it would be part of the first token.");
    }
    if (std::size_t const wrong = detail::first_invalid_utf8(text); wrong != text.size()) {
      std::size_t line = 1;
      for (char const byte : text.substr(0, wrong)) line += byte == '\n' ? 1 : 0;
      throw fault("the vocabulary is not UTF-8", name, line, wrong, "",
                  "Convert the file to UTF-8.");
    }
    for (std::size_t begin = 0; begin < text.size();) {
      std::size_t const end = std::min(text.find('\n', begin), text.size());
      std::string_view token = text.substr(begin, end - begin);
      if (token.ends_with('\r')) token.remove_suffix(1);
      made->add(token, name, begin);
      begin = end + 1;
    }
    return Vocabulary(std::move(made));
  }

  /// Of tokens in the order of their ids; errors call them `name`, and a place in them a line.
  static Vocabulary of(std::vector<std::string> const& tokens,
                       std::string const& name = "vocabulary") {
    auto made = std::make_shared<Tokens>();
    for (std::string const& token : tokens) made->text += token;
    std::size_t begin = 0;
    for (std::string const& token : tokens) {
      made->add(std::string_view(made->text).substr(begin, token.size()), name, begin);
      begin += token.size();
    }
    return Vocabulary(std::move(made));
  }

  /// Tokens; ids are below it.
  std::int32_t size() const { return static_cast<std::int32_t>(tokens_->places.size()); }

  /// The id of a token, if it is one.
  std::optional<std::int32_t> find(std::string_view token) const {
    auto const found = tokens_->ids.find(token);
    if (found == tokens_->ids.end()) return std::nullopt;
    return found->second;
  }

  /// The id of a token that must be there. Throws DataError otherwise.
  std::int32_t id(std::string_view token) const {
    if (auto const found = find(token)) return *found;
    throw DataError({.what = "the vocabulary has no token '" + std::string(token) + "'",
                     .where = "a vocabulary of " + std::to_string(size()) + " tokens",
                     .why = "",
                     .fix = "Take the vocabulary that belongs to the model, or name the special "
                            "tokens that it has."});
  }

  /// The token of an id. Throws DataError for an id that the vocabulary does not have.
  std::string_view token(std::int64_t id) const {
    if (id >= 0 && id < size()) return tokens_->places[static_cast<std::size_t>(id)];
    throw DataError({.what = "no token has the id " + std::to_string(id),
                     .where = "a vocabulary of " + std::to_string(size()) + " tokens",
                     .why = "",
                     .fix = "Give ids from 0 to " + std::to_string(size() - 1) + "."});
  }

  /// A hash of the tokens and their order.
  std::string identity() const {
    Hash hash;
    for (std::string_view const token : tokens_->places) {
      hash.update(std::as_bytes(std::span(token)));
      hash.update(std::as_bytes(std::span("\n", 1)));
    }
    return "vocabulary " + hex_of(hash.digest());
  }

 private:
  /// The file's text, and views of its tokens.
  struct Tokens {
    std::string text;
    std::vector<std::string_view> places;
    std::unordered_map<std::string_view, std::int32_t> ids;

    void add(std::string_view token, std::string const& name, std::size_t at) {
      std::size_t const line = places.size() + 1;
      if (token.empty()) {
        throw fault("a line of the vocabulary is empty", name, line, at, "",
                    "Remove the line, or give it a token such as [unused1]: ids are line numbers.");
      }
      if (places.size() == std::numeric_limits<std::int32_t>::max()) {
        throw fault("the vocabulary is absurdly large", name, line, at, "ids end at 2^31 - 1",
                    "Give a vocabulary file.");
      }
      auto const [found, added] = ids.emplace(token, static_cast<std::int32_t>(places.size()));
      if (!added) {
        throw fault("a token stands twice in the vocabulary", name, line, at,
                    "line " + std::to_string(found->second + 1) + " has '" + std::string(token) +
                        "' as well",
                    "Remove one of the two; a token has one id.");
      }
      places.push_back(token);
    }
  };

  explicit Vocabulary(std::shared_ptr<Tokens const> tokens) : tokens_(std::move(tokens)) {}

  static DataError fault(std::string what, std::string const& name, std::size_t line,
                         std::size_t byte, std::string why, std::string fix) {
    return DataError(
        {.what = std::move(what),
         .where = name + ", line " + std::to_string(line) + ", byte " + std::to_string(byte),
         .why = std::move(why),
         .fix = std::move(fix)});
  }

  std::shared_ptr<Tokens const> tokens_;
};

}  // namespace frugal
