// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/base/file.hpp>
#include <frugal/base/hash.hpp>
#include <frugal/base/utf8.hpp>
#include <frugal/error.hpp>

#include <algorithm>
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

namespace frugal::detail {

/// The pieces of a vocabulary in a trie over bytes, matched greedily from the left, the longest
/// piece first, in time linear in the word. Valid UTF-8 makes bytes as good as code points: no
/// piece begins or ends within one.
///
/// Source  LinMaxMatch of Song, Salcianu, Song, Dopson, Zhou, "Fast WordPiece Tokenization" (EMNLP
///         2021), algorithms 1 and 2: failure links, with the pieces that a failure emits.
class WordpieceTrie {
 public:
  /// `prefix` marks pieces within a word; without one, all pieces may stand anywhere. A piece of
  /// more than `most` code points is left out: no word is as long.
  /// Only ids below `pieces` are of pieces; the others are of added tokens.
  WordpieceTrie(Vocabulary const& vocabulary, std::string_view prefix, std::size_t most,
                std::int32_t pieces = std::numeric_limits<std::int32_t>::max()) {
    nodes_.resize(2);  // word_start and within
    table_.resize(std::size_t{1} << 10);
    for (std::int32_t id = 0; id < std::min(pieces, vocabulary.size()); ++id) {
      std::string_view piece = vocabulary.token(id);
      bool const inner = piece.starts_with(prefix);
      if (inner) piece.remove_prefix(prefix.size());
      if (piece.empty() || count_code_points(piece) > most) continue;
      if (inner) insert(within, piece, id);
      if (!inner || prefix.empty()) insert(word_start, piece, id);
    }
    link();
  }

  /// Calls `emit(id, bytes)` for the pieces of a word in order; false if the word is not made of
  /// pieces, perhaps after some of them.
  template <class Emit>
  bool match(std::string_view word, Emit&& emit) const {
    std::uint32_t node = word_start;
    for (char const c : word) {
      auto const byte = static_cast<unsigned char>(c);
      std::uint32_t next = step(node, byte);
      while (next == none) {
        if (!fail(node, emit)) return false;
        next = step(node, byte);
      }
      node = next;
    }
    while (node != within) {
      if (!fail(node, emit)) return false;
    }
    return true;
  }

 private:
  static constexpr std::uint32_t none = std::numeric_limits<std::uint32_t>::max();
  static constexpr std::uint32_t word_start = 0;
  static constexpr std::uint32_t within = 1;

  struct Node {
    std::uint32_t parent = none;
    std::uint32_t fails_to = none;  ///< node at which matching continues if no child fits
    std::size_t pops = 0;           ///< the pieces that are emitted then, in `pops_`
    std::uint32_t popped = 0;
    std::uint32_t depth = 0;  ///< bytes
    std::int32_t id = -1;     ///< of the piece that ends here
    unsigned char byte = 0;   ///< that leads here
  };
  struct Pop {
    std::int32_t id = -1;
    std::uint32_t bytes = 0;
  };
  /// A transition; `child` is none in a free cell.
  struct Cell {
    std::uint32_t parent = 0;
    std::uint32_t child = none;
  };

  template <class Emit>
  bool fail(std::uint32_t& node, Emit& emit) const {
    Node const& from = nodes_[node];
    if (from.fails_to == none) return false;
    for (std::size_t p = from.pops; p < from.pops + from.popped; ++p) {
      emit(pops_[p].id, pops_[p].bytes);
    }
    node = from.fails_to;
    return true;
  }

  /// Where the child of a node is found, or may be put: linear probing in a table that is at most
  /// half full.
  std::size_t place(std::uint32_t node, unsigned char byte) const {
    std::uint64_t const key = std::uint64_t{node} << 8 | byte;
    std::size_t at =
        static_cast<std::size_t>(key * 0x9e3779b97f4a7c15U >> 32) & (table_.size() - 1);
    while (table_[at].child != none &&
           (table_[at].parent != node || nodes_[table_[at].child].byte != byte)) {
      at = (at + 1) & (table_.size() - 1);
    }
    return at;
  }
  std::uint32_t step(std::uint32_t node, unsigned char byte) const {
    return table_[place(node, byte)].child;
  }

  void insert(std::uint32_t root, std::string_view piece, std::int32_t id) {
    std::uint32_t node = root;
    for (char const c : piece) {
      auto const byte = static_cast<unsigned char>(c);
      std::uint32_t next = step(node, byte);
      if (next == none) {
        next = static_cast<std::uint32_t>(nodes_.size());
        nodes_.push_back({.parent = node, .depth = nodes_[node].depth + 1, .byte = byte});
        if (2 * nodes_.size() > table_.size()) grow();
        table_[place(node, byte)] = {node, next};
      }
      node = next;
    }
    nodes_[node].id = id;
  }

  void grow() {
    std::vector<Cell> const before = std::exchange(table_, std::vector<Cell>(2 * table_.size()));
    for (Cell const& cell : before) {
      if (cell.child != none) table_[place(cell.parent, nodes_[cell.child].byte)] = cell;
    }
  }

  /// Failure links, from shallow nodes to deep ones: each needs those of shallower nodes alone.
  void link() {
    std::vector<std::uint32_t> order;
    order.reserve(nodes_.size());
    for (std::uint32_t node = 2; node < nodes_.size(); ++node) order.push_back(node);
    std::sort(order.begin(), order.end(), [this](std::uint32_t a, std::uint32_t b) {
      return nodes_[a].depth != nodes_[b].depth ? nodes_[a].depth < nodes_[b].depth : a < b;
    });
    for (std::uint32_t const v : order) {
      Node& node = nodes_[v];
      std::size_t const before = pops_.size();
      if (node.id >= 0) {
        node.fails_to = within;
        pops_.push_back({node.id, node.depth});
      } else {
        append_pops(node.parent);
        std::uint32_t z = nodes_[node.parent].fails_to;
        while (z != none && step(z, node.byte) == none) {
          append_pops(z);
          z = nodes_[z].fails_to;
        }
        if (z == none) {
          pops_.resize(before);
        } else {
          node.fails_to = step(z, node.byte);
        }
      }
      node.pops = before;
      node.popped = static_cast<std::uint32_t>(pops_.size() - before);
    }
  }
  void append_pops(std::uint32_t of) {
    for (std::size_t p = nodes_[of].pops, end = p + nodes_[of].popped; p < end; ++p) {
      pops_.push_back(Pop(pops_[p]));
    }
  }

  std::vector<Node> nodes_;
  std::vector<Pop> pops_;
  std::vector<Cell> table_;
};

}  // namespace frugal::detail
