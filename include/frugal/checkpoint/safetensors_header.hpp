// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/base/json_events.hpp>
#include <frugal/checkpoint/dtype.hpp>
#include <frugal/checkpoint/safetensors_fault.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace frugal::detail {

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

#ifndef FRUGAL_COMPILED
#include <frugal/checkpoint/safetensors_header.ipp>
#endif
