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

}  // namespace frugal::detail

#ifndef FRUGAL_COMPILED
#include <frugal/checkpoint/safetensors_header.ipp>
#endif
