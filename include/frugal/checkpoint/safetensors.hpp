// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/base/file.hpp>
#include <frugal/base/json.hpp>
#include <frugal/checkpoint/dtype.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace frugal::detail {

/// A name from a file, made safe for an error text: quoted, printable ASCII, and short. A hostile
/// name may be megabytes long, or move a terminal's cursor.
std::string safetensors_quoted(std::string_view text);

/// For faults without a byte offset.
inline constexpr std::uint64_t safetensors_no_place = std::numeric_limits<std::uint64_t>::max();

/// The fix for a damaged file.
inline constexpr char safetensors_mend[] = "Use another copy of the file, or write it again.";

/// Throws FormatError. `part` is the part of the file at `byte`: a tensor, the metadata, or empty.
[[noreturn]] void safetensors_fail(std::string const& file, std::string const& part,
                                   std::uint64_t byte, std::string what, std::string why,
                                   std::string fix = safetensors_mend);

/// "tensor "encoder.weight"", as in errors.
inline std::string safetensors_tensor(std::string_view name) {
  return "tensor " + safetensors_quoted(name);
}

/// The metadata key of the format, and the header limit in bytes.
inline constexpr std::string_view safetensors_metadata_key = "__metadata__";
inline constexpr std::uint64_t safetensors_most_header = 100'000'000;
/// The header's length precedes the header.
inline constexpr std::uint64_t safetensors_length_bytes = 8;

/// A tensor as the header describes it, unchecked: `begin` and `end` in bytes from the first byte
/// of data, `rank` extents from `extents[shape]`, `offset` of its name in the file.
struct SafetensorsEntry {
  std::string_view name;
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
  std::uint32_t shape = 0;
  std::uint32_t rank = 0;
  std::uint32_t offset = 0;
  Dtype dtype = Dtype::u8;
};

struct SafetensorsText {
  std::string_view key;
  std::string_view value;
  std::uint64_t offset = 0;
};

/// A header as it stands in the file, in file order. Memory is a fixed number of bytes per byte of
/// the file, so that a hostile header cannot expand.
struct SafetensorsHeader {
  std::unique_ptr<char[]> text;  ///< storage of the names and the metadata
  std::vector<std::uint64_t> extents;
  std::vector<SafetensorsEntry> tensors;
  std::vector<SafetensorsText> metadata;
};

/// Reads the JSON of a header event by event: a document tree would silently drop duplicate keys
/// and take many times the header's memory.
class SafetensorsHeaderReader : public NumbersAsWritten {
 public:
  /// `json` without the padding; `name` is the file's name, for errors.
  SafetensorsHeaderReader(std::string_view json, std::string const& name);

  SafetensorsHeader read() &&;

  // RapidJSON calls these. true means continue; faults are reported by exceptions alone.

  bool StartObject();

  bool Key(char const* begin, unsigned size, bool);

  bool String(char const* begin, unsigned size, bool);

  bool RawNumber(char const*, unsigned size, bool);

  bool StartArray();

  bool EndArray(unsigned);

  bool EndObject(unsigned);

  bool Null() { unexpected("null"); }
  bool Bool(bool) { unexpected("a truth value"); }

 private:
  /// What may come next.
  enum class State : std::uint8_t {
    root,
    names,
    metadata_object,
    metadata_keys,
    metadata_value,
    tensor_object,
    fields,
    dtype,
    shape_array,
    shape,
    offsets_array,
    begin,
    end,
    offsets_close,
    done,
  };

  static constexpr std::array<std::string_view, 3> field_names{"dtype", "shape", "data_offsets"};

  bool to(State next);

  void require_characters(std::string_view text) const {
    if (!is_json_text(text)) damaged("the header is not JSON", "a text has half a surrogate pair");
  }

  std::uint64_t whole(std::string_view digits) const;

  bool field(std::string_view name);

  /// File offset of the current token.
  std::uint64_t offset() const;

  std::string part() const;

  [[noreturn]] void unexpected(std::string const& found) const;

  [[noreturn]] void damaged(std::string what, std::string why = {},
                            std::string fix = safetensors_mend) const;

  std::string const& name_;
  std::string_view json_;
  JsonStream stream_;         ///< over the header's own copy of the text
  std::size_t previous_ = 0;  ///< end of the previous token
  SafetensorsHeader header_;
  State state_ = State::root;
  unsigned fields_ = 0;  ///< of the current tensor, one bit each
  bool metadata_seen_ = false;
};

/// Checks a header against the bytes of data that follow it, and sorts its tensors by offset.
/// Afterwards every tensor's range lies inside the data and has the size that its shape and dtype
/// require, and every byte of data belongs to exactly one tensor.
class SafetensorsLayout {
 public:
  SafetensorsLayout(SafetensorsHeader& header, std::string const& name, std::uint64_t data_at,
                    std::uint64_t data_size)
      : header_(header), name_(name), data_at_(data_at), data_size_(data_size) {}

  /// Returns the tensors' indices sorted by name. Unlike a hash table, binary search over them
  /// cannot be slowed down by chosen names.
  std::vector<std::uint32_t> check();

 private:
  std::vector<std::uint32_t> index_names() const;

  void sort_metadata();

  void check_size(SafetensorsEntry const& tensor) const;

  void check_cover() const;

  static std::string range(SafetensorsEntry const& tensor) {
    return "[" + std::to_string(tensor.begin) + "," + std::to_string(tensor.end) + "]";
  }

  [[noreturn]] void fail(SafetensorsEntry const& tensor, std::uint64_t byte, std::string what,
                         std::string why) const {
    fail(safetensors_tensor(tensor.name), byte, std::move(what), std::move(why));
  }

  [[noreturn]] void fail(std::string const& part, std::uint64_t byte, std::string what,
                         std::string why) const {
    safetensors_fail(name_, part, byte, std::move(what), std::move(why));
  }

  SafetensorsHeader& header_;
  std::string const& name_;
  std::uint64_t data_at_;
  std::uint64_t data_size_;
};

}  // namespace frugal::detail

namespace frugal {

/// The tensors of a safetensors file, in the order of their bytes.
///
/// Cost    reading the header; the tensors' bytes are not touched.
/// Format  huggingface/safetensors, README, section "Format": the header's length as a
///         little-endian uint64, the header in JSON, the bytes. Where it leaves open what a reader
///         accepts, this one is strict: see docs/checkpoint/safetensors.md.
/// Errors  FormatError with file, tensor and byte for every violation. Every view that this returns
///         lies inside the file, whatever the header says.
class Safetensors {
 public:
  /// Parses a file in memory, which must outlive the tensors; errors call it `name`.
  static Safetensors parse(std::span<std::byte const> bytes, std::string name) {
    return Safetensors(bytes, std::move(name));
  }

  /// Maps a file on disk for the lifetime of this object; see MappedFile for the conditions.
  /// Errors  also StoreError, if it cannot be opened.
  static Safetensors open(std::filesystem::path const& path);

  std::size_t size() const noexcept { return header_.tensors.size(); }

  /// The i-th tensor; i must be below size().
  TensorView operator[](std::size_t i) const;

  /// Finds a tensor by name in logarithmic time.
  std::optional<TensorView> find(std::string_view name) const;

  /// Finds a tensor by name. FormatError if there is none.
  TensorView at(std::string_view name) const;

  /// The value of a metadata key.
  std::optional<std::string_view> metadata(std::string_view key) const;

  /// All metadata as pairs, sorted by key.
  std::vector<std::pair<std::string_view, std::string_view>> metadata() const;

  /// The file's name in errors.
  std::string const& name() const noexcept { return name_; }

 private:
  Safetensors(std::span<std::byte const> bytes, std::string name);

  std::string_view header_of(std::span<std::byte const> bytes) const;

  [[noreturn]] void damaged(std::uint64_t byte, std::string what, std::string why) const {
    detail::safetensors_fail(name_, "", byte, std::move(what), std::move(why));
  }

  std::string name_;
  MappedFile file_;
  std::span<std::byte const> data_;
  detail::SafetensorsHeader header_;
  std::vector<std::uint32_t> by_name_;
};

}  // namespace frugal

#ifndef FRUGAL_COMPILED
#include <frugal/checkpoint/safetensors.ipp>
#endif
