// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/base/file.hpp>
#include <frugal/base/hash.hpp>
#include <frugal/data/idx.hpp>
#include <frugal/error.hpp>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

// Reads dictionaries in the format of dictd, which Debian has as packages: texts to try deduplicate.cpp
// with.
namespace dictd {

/// A line of a dictd index: where the entry of a headword lies in the dictionary.
struct Entry {
  std::string headword;
  std::uint64_t offset = 0;  ///< in the uncompressed dictionary, bytes
  std::uint64_t size = 0;    ///< bytes

  bool operator==(Entry const&) const = default;
};

/// The base-64 digits of dictd: the highest first, no padding. Nothing for other text, or above
/// 2^63.
inline std::optional<std::uint64_t> number_of(std::string_view digits) {
  constexpr std::string_view all =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  if (digits.empty()) return std::nullopt;
  std::uint64_t value = 0;
  for (char const c : digits) {
    std::size_t const digit = all.find(c);
    if (digit == all.npos || value >> 57 != 0) return std::nullopt;
    value = value << 6 | digit;
  }
  return value;
}

[[noreturn]] inline void refuse(std::string const& name, std::size_t line, std::string why) {
  throw frugal::DataError({.what = "the index of the dictionary is damaged",
                           .where = name + ", line " + std::to_string(line),
                           .why = std::move(why),
                           .fix = "Fetch the dictionary again, or give one in dictd's format."});
}

/// Reads a dictd index: lines of headword, offset and size, separated by tabs. A fourth column,
/// which some have, is ignored.
///
/// Format  dictd(8), "DATABASE FILE FORMAT".
/// Errors  DataError with `name` and the line for a line without three columns, a number that is
///         none, or an entry that is not within the `bytes` of the dictionary.
inline std::vector<Entry> parse_index(
    std::string_view text, std::string const& name,
    std::uint64_t bytes = std::numeric_limits<std::uint64_t>::max()) {
  std::vector<Entry> out;
  for (std::size_t line = 1; !text.empty(); ++line) {
    std::string_view row = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(text.size(), row.size() + 1));
    std::string_view columns[3];
    for (std::string_view& column : columns) {
      if (row.data() == nullptr) refuse(name, line, "it has fewer than 3 columns");
      std::size_t const tab = row.find('\t');
      column = row.substr(0, tab);
      row = tab == row.npos ? std::string_view() : row.substr(tab + 1);
    }
    auto const offset = number_of(columns[1]);
    auto const size = number_of(columns[2]);
    if (!offset || !size) {
      refuse(name, line, "offset and size are not in dictd's base 64");
    }
    if (*offset > bytes || *size > bytes - *offset) {
      refuse(name, line,
             "the entry ends at byte " + std::to_string(*offset + *size) +
                 ", and the dictionary has " + std::to_string(bytes));
    }
    out.push_back({.headword = std::string(columns[0]), .offset = *offset, .size = *size});
  }
  return out;
}

/// The entries of a dictionary in dictd's format, `x.index` and `x.dict.dz` or `x.dict`, as a set
/// of texts. Headwords that share an entry give one sample, under the first of them. The dictionary
/// is held in memory.
///
/// Errors  DataError for files that cannot be read, or are damaged; StoreError for a missing index.
class Dictionary {
 public:
  /// `path` is that of the index.
  explicit Dictionary(std::filesystem::path const& path) {
    std::filesystem::path stored = path;
    stored.replace_extension(".dict.dz");
    std::error_code ignored;
    if (!std::filesystem::exists(stored, ignored)) stored.replace_extension();  // x.dict
    auto text = std::make_shared<std::string>(read(stored));
    frugal::MappedFile const index(path);
    entries_ =
        parse_index({reinterpret_cast<char const*>(index.bytes().data()), index.bytes().size()},
                    path.string(), text->size());
    auto const place = [](Entry const& each) { return std::pair(each.offset, each.size); };
    std::ranges::sort(entries_, {}, [&](Entry const& each) {
      return std::pair(place(each), std::string_view(each.headword));
    });
    auto const rest = std::ranges::unique(entries_, {}, place);
    entries_.erase(rest.begin(), rest.end());
    identity_ = "dictd " + frugal::hex_of(frugal::Hash::of(index.bytes())) +
                frugal::hex_of(frugal::Hash::of(std::as_bytes(std::span(*text))));
    text_ = std::move(text);
  }

  std::uint64_t size() const { return entries_.size(); }

  /// The text of an entry; valid as long as the set or a copy of it.
  std::string_view get(std::uint64_t index) const {
    Entry const& entry = entries_.at(static_cast<std::size_t>(index));
    return std::string_view(*text_).substr(entry.offset, entry.size);
  }

  /// The headword.
  std::string name(std::uint64_t index) const {
    return entries_.at(static_cast<std::size_t>(index)).headword;
  }

  /// Hashes of index and dictionary.
  std::string identity() const { return identity_; }

 private:
  static std::string read(std::filesystem::path const& path) {
    std::ifstream file(path, std::ios::binary);
    int const reason = errno;
    std::error_code ignored;
    bool const folder = std::filesystem::is_directory(path, ignored);
    if (!file || folder) {
      throw frugal::DataError({.what = "the dictionary cannot be opened",
                               .where = path.string(),
                               .why = folder ? "it is a folder" : std::strerror(reason),
                               .fix = "Give the index of a dictionary that lies next to it."});
    }
    frugal::InflateReader input(file, path.string());
    std::string text;
    std::vector<std::byte> block(std::size_t{1} << 20);
    for (std::size_t got; (got = input.read(block)) != 0;) {
      text.append(reinterpret_cast<char const*>(block.data()), got);
    }
    return text;
  }

  std::shared_ptr<std::string const> text_;
  std::vector<Entry> entries_;
  std::string identity_;
};

}  // namespace dictd
