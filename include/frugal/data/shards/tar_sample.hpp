// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/base/json.hpp>
#include <frugal/base/utf8.hpp>
#include <frugal/data/shards/npy.hpp>
#include <frugal/error.hpp>

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

// The rules of WebDataset's layout, for names, sizes and fields as a tar reader hands them over.
// Without libarchive, so that they can be fuzzed.
namespace frugal::detail {

/// A member's name, cut at the first dot of its base name: "a/0001.seg.png" is the field
/// "seg.png" of the sample "a/0001".
struct MemberName {
  std::string_view key;
  std::string extension;  ///< in lower case (ASCII); may be empty
};

/// Nothing for a name that belongs to no sample: a base name without a dot, or that begins with
/// one.
///
/// Source  webdataset 1.0, base_plus_ext and group_by_keys. One difference: "d/.x" is the field "x"
///         of a sample "d/" there.
inline std::optional<MemberName> split_member_name(std::string_view name) {
  auto const slash = name.rfind('/');
  std::size_t const base = slash == std::string_view::npos ? 0 : slash + 1;
  std::size_t const dot = name.find('.', base);
  if (dot == std::string_view::npos || dot == base) return std::nullopt;
  MemberName out{.key = name.substr(0, dot), .extension = std::string(name.substr(dot + 1))};
  for (char& c : out.extension) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return out;
}

/// Members of WebDataset that describe the shard, and those that macOS adds: "__meta__/x.json".
inline bool is_meta_name(std::string_view name) {
  std::string_view const first = name.substr(0, name.find('/'));
  return first.size() >= 4 && first.starts_with("__") && first.ends_with("__");
}

/// Why a member's name is refused; empty if it is not. Keys become file names again when somebody
/// unpacks them, and a name that leads out of its folder has no good use.
inline std::string unsafe_name(std::string_view name) {
  constexpr std::size_t longest = 4096;  // PATH_MAX of Linux
  if (name.empty()) return "a member has no name";
  if (name.size() > longest) {
    return "a member's name has " + std::to_string(name.size()) + " bytes, and at most " +
           std::to_string(longest) + " are read";
  }
  if (name.front() == '/') return "a member's name is an absolute path";
  for (char const c : name) {
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) {
      return "a member's name has control characters";
    }
  }
  for (std::size_t at = 0; at <= name.size();) {
    std::size_t const end = std::min(name.find('/', at), name.size());
    if (name.substr(at, end - at) == "..") return "a member's name leads out of its folder (..)";
    at = end + 1;
  }
  return {};
}

/// Where the bytes of a member lie in the tar file.
struct MemberPlace {
  std::uint64_t offset = 0;
  std::uint64_t size = 0;

  std::uint64_t end() const { return offset + size; }
};

/// Why a member's place is refused; empty if the file holds all of it.
inline std::string outside_of_file(MemberPlace const& place, std::uint64_t file_size) {
  std::uint64_t const left = place.offset > file_size ? 0 : file_size - place.offset;
  if (place.offset <= file_size && place.size <= left) return {};
  return "the member has " + std::to_string(place.size) + " bytes from byte " +
         std::to_string(place.offset) + " on, and the file ends " + std::to_string(left) +
         " bytes after it";
}

/// A member's name for error messages: printable, and not longer than a line.
inline std::string shown_name(std::string_view name) {
  constexpr std::size_t most = 120;
  std::string out(name.substr(0, most));
  for (char& c : out) {
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) c = '?';
  }
  return name.size() > most ? out + "..." : out;
}

[[noreturn]] inline void refuse_field(std::string const& where, std::string what, std::string why) {
  throw DataError({.what = std::move(what),
                   .where = where,
                   .why = std::move(why),
                   .fix = "Check that sample, or leave it out."});
}

/// A whole number in decimal digits, as Python's int() reads it: blanks around it are ignored.
inline std::int64_t integer_of(std::string_view text, std::string const& where) {
  constexpr std::string_view blanks = " \t\r\n\f\v";
  std::string_view digits = text;
  digits.remove_prefix(std::min(digits.find_first_not_of(blanks), digits.size()));
  digits = digits.substr(0, digits.find_last_not_of(blanks) + 1);
  if (digits.starts_with('+') && !digits.starts_with("+-")) digits.remove_prefix(1);
  std::int64_t out = 0;
  auto const [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), out);
  if (error == std::errc::result_out_of_range) {
    refuse_field(where, "a field's number does not fit into 64 bits", "");
  }
  if (error != std::errc() || end != digits.data() + digits.size()) {
    refuse_field(where, "a field is no whole number",
                 "it has " + std::to_string(text.size()) + " bytes and reads \"" +
                     as_utf8(text.substr(0, 40)) + "\"");
  }
  return out;
}

/// Text in UTF-8.
inline std::string_view text_of(std::string_view bytes, std::string const& where) {
  if (!is_utf8(bytes)) refuse_field(where, "a field is no text", "its bytes are not UTF-8");
  return bytes;
}

/// Refuses an object that has a name twice: readers differ in which of the two they take.
inline void require_unique_names(Json const& value, std::string const& where) {
  if (value.is(Json::Kind::object)) {
    std::set<std::string_view> names;
    for (Json const& member : value.items()) {
      if (names.insert(member.name()).second) continue;
      refuse_field(where + ", byte " + std::to_string(member.at()),
                   "a field's JSON has the name \"" + as_utf8(member.name().substr(0, 40)) +
                       "\" twice in an object",
                   "");
    }
  }
  for (Json const& item : value.items()) require_unique_names(item, where);
}

inline Json json_of(std::string_view text, std::string const& where) {
  JsonError error;
  std::optional<Json> out = Json::parse(std::string(text), &error);
  if (!out) {
    refuse_field(where + ", byte " + std::to_string(error.at), "a field is no JSON", error.why);
  }
  require_unique_names(*out, where);
  return *std::move(out);
}

}  // namespace frugal::detail

namespace frugal {

/// A sample with bytes of its own, as shards are packed from it.
struct PackedSample {
  struct Field {
    std::string extension;
    std::string bytes;
  };

  std::string key;
  std::vector<Field> fields;
};

/// One sample of a tar shard: its fields by extension, "jpg" or "cls" or "seg.png", as bytes.
/// Copies share the bytes, and keep them for as long as one of them lives.
///
/// Errors  DataError that names shard, sample and field: a field that is not there, or is not what
///         it is read as.
class TarSample {
 public:
  struct Field {
    std::string extension;
    std::size_t begin = 0;  ///< in the sample's bytes
    std::size_t size = 0;
  };

  TarSample() = default;
  /// `shard` is what errors call the file.
  TarSample(std::string key_, std::shared_ptr<std::string const> shard,
            std::shared_ptr<char const[]> bytes, std::vector<Field> fields)
      : key(std::move(key_)),
        shard_(std::move(shard)),
        bytes_(std::move(bytes)),
        fields_(std::move(fields)) {}

  std::string key;  ///< the name of its members without their extensions

  /// A field's bytes.
  std::string_view operator[](std::string_view extension) const {
    if (auto const bytes = find(extension)) return *bytes;
    std::string all;
    for (Field const& field : fields_) all += (all.empty() ? "" : ", ") + field.extension;
    throw DataError({.what = "a sample has no field \"" + std::string(extension) + "\"",
                     .where = name(),
                     .why = all.empty() ? "it has none" : "its fields are: " + all,
                     .fix = "Name one of them, or leave the sample out."});
  }
  std::optional<std::string_view> find(std::string_view extension) const {
    for (std::size_t i = 0; i < fields_.size(); ++i) {
      if (fields_[i].extension == extension) return bytes(i);
    }
    return std::nullopt;
  }
  bool has(std::string_view extension) const { return find(extension).has_value(); }

  /// The number of fields, and each of them; they come in the order of the file.
  std::size_t size() const { return fields_.size(); }
  std::string_view extension(std::size_t i) const { return fields_[i].extension; }
  std::string_view bytes(std::size_t i) const {
    return {bytes_.get() + fields_[i].begin, fields_[i].size};
  }

  /// A field as a whole number (.cls, .id, .index).
  std::int64_t integer(std::string_view extension) const {
    return detail::integer_of((*this)[extension], where(extension));
  }
  /// A field as text in UTF-8 (.txt).
  std::string_view text(std::string_view extension) const {
    return detail::text_of((*this)[extension], where(extension));
  }
  /// A field as JSON: json("json").find("label").
  detail::Json json(std::string_view extension) const {
    return detail::json_of((*this)[extension], where(extension));
  }
  /// A field as an array of NumPy (.npy); a view of the sample's bytes.
  NpyArray npy(std::string_view extension) const {
    return read_npy(std::as_bytes(std::span((*this)[extension])), where(extension));
  }

  /// What errors call the sample.
  std::string name() const { return (shard_ ? *shard_ + ", " : "") + "sample " + key; }

 private:
  std::string where(std::string_view extension) const {
    return name() + ", field " + std::string(extension);
  }

  std::shared_ptr<std::string const> shard_;
  std::shared_ptr<char const[]> bytes_;
  std::vector<Field> fields_;
};

}  // namespace frugal
