// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/base/json_events.hpp>
#include <frugal/checkpoint/dtype.hpp>
#include <frugal/checkpoint/safetensors_fault.hpp>
#include <frugal/inline.hpp>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
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
  FRUGAL_INLINE SafetensorsHeaderReader(std::string_view json, std::string const& name)
      : name_(name), json_(json), stream_(nullptr, 0) {
    // Strings are parsed in place, so that views into this copy stay valid.
    header_.text = std::make_unique_for_overwrite<char[]>(json.size());
    std::copy(json.begin(), json.end(), header_.text.get());
    stream_ = JsonStream(header_.text.get(), json.size());
  }

  FRUGAL_INLINE SafetensorsHeader read() && {
    if (auto const error = parse_json(stream_, *this)) {
      if (state_ == State::done) {
        safetensors_fail(name_, "", safetensors_length_bytes + previous_,
                         "the header's object is followed by more than spaces", "");
      }
      safetensors_fail(name_, part(), safetensors_length_bytes + error->at,
                       "the header is not JSON",
                       "RapidJSON says " + safetensors_quoted(error->why));
    }
    if (previous_ != json_.size()) {
      safetensors_fail(name_, "", safetensors_length_bytes + previous_,
                       "the header's object is followed by more than spaces", "");
    }
    return std::move(header_);
  }

  // RapidJSON calls these. true means continue; faults are reported by exceptions alone.

  FRUGAL_INLINE bool StartObject() {
    switch (state_) {
      case State::root:
        return to(State::names);
      case State::metadata_object:
        return to(State::metadata_keys);
      case State::tensor_object:
        return to(State::fields);
      default:
        unexpected("an object");
    }
  }

  FRUGAL_INLINE bool Key(char const* begin, unsigned size, bool) {
    std::string_view const text(begin, size);
    require_characters(text);
    if (state_ == State::metadata_keys) {
      header_.metadata.push_back({.key = text, .value = {}, .offset = offset()});
      return to(State::metadata_value);
    }
    if (state_ == State::fields) return field(text);
    if (text != safetensors_metadata_key) {
      header_.tensors.push_back({.name = text,
                                 .shape = static_cast<std::uint32_t>(header_.extents.size()),
                                 .offset = static_cast<std::uint32_t>(offset())});
      fields_ = 0;
      return to(State::tensor_object);
    }
    if (metadata_seen_) damaged("__metadata__ stands twice in the header");
    metadata_seen_ = true;
    return to(State::metadata_object);
  }

  FRUGAL_INLINE bool String(char const* begin, unsigned size, bool) {
    std::string_view const text(begin, size);
    require_characters(text);
    if (state_ == State::metadata_value) {
      header_.metadata.back().value = text;
      return to(State::metadata_keys);
    }
    if (state_ != State::dtype) unexpected("a string");
    auto const dtype = dtype_of(text);
    if (!dtype) {
      damaged("the element type is unknown",
              "the header says " + safetensors_quoted(text) +
                  ", which is not one of the known types from BOOL to U64",
              "Update frugal: the file may have a newer version of the format.");
    }
    header_.tensors.back().dtype = *dtype;
    return to(State::fields);
  }

  FRUGAL_INLINE bool RawNumber(char const*, unsigned size, bool) {
    std::uint64_t const number = whole(stream_.last(size));
    auto& tensor = header_.tensors;
    if (state_ == State::shape) {
      header_.extents.push_back(number);
      ++tensor.back().rank;
      return to(State::shape);
    }
    if (state_ == State::begin) {
      tensor.back().begin = number;
      return to(State::end);
    }
    if (state_ != State::end) unexpected("a number");
    tensor.back().end = number;
    return to(State::offsets_close);
  }

  FRUGAL_INLINE bool StartArray() {
    if (state_ == State::shape_array) return to(State::shape);
    if (state_ == State::offsets_array) return to(State::begin);
    unexpected("an array");
  }

  FRUGAL_INLINE bool EndArray(unsigned) {
    if (state_ != State::shape && state_ != State::offsets_close) unexpected("the array's end");
    return to(State::fields);
  }

  FRUGAL_INLINE bool EndObject(unsigned) {
    if (state_ == State::names) return to(State::done);
    if (state_ == State::metadata_keys) return to(State::names);
    if (fields_ != 7) {
      std::string missing;
      for (std::size_t i = 0; i < field_names.size(); ++i) {
        if ((fields_ >> i & 1U) != 0) continue;
        missing.append(missing.empty() ? "" : " and ").append(field_names[i]);
      }
      damaged("the tensor has no " + missing);
    }
    return to(State::names);
  }

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

  FRUGAL_INLINE bool to(State next) {
    state_ = next;
    previous_ = stream_.Tell();
    return true;
  }

  void require_characters(std::string_view text) const {
    if (!is_json_text(text)) damaged("the header is not JSON", "a text has half a surrogate pair");
  }

  FRUGAL_INLINE std::uint64_t whole(std::string_view digits) const {
    std::uint64_t number = 0;
    char const* const begin = digits.data();
    char const* const end = begin + digits.size();
    auto const [stop, error] = std::from_chars(begin, end, number);
    if (digits.front() == '-') unexpected("a negative number");
    if (error != std::errc() || stop != end) {
      unexpected("a number with a fraction or exponent, or beyond 64 bits");
    }
    return number;
  }

  FRUGAL_INLINE bool field(std::string_view name) {
    constexpr std::array next{State::dtype, State::shape_array, State::offsets_array};
    for (std::size_t i = 0; i < field_names.size(); ++i) {
      if (name != field_names[i]) continue;
      if ((fields_ >> i & 1U) != 0) damaged("the tensor has " + std::string(name) + " twice");
      fields_ |= 1U << i;
      return to(next[i]);
    }
    damaged("the tensor has a field that the format does not know",
            "expected dtype, shape and data_offsets, found " + safetensors_quoted(name));
  }

  /// File offset of the current token.
  FRUGAL_INLINE std::uint64_t offset() const {
    std::size_t at = previous_;
    while (at < json_.size() &&
           std::string_view(" \t\r\n,:").find(json_[at]) != std::string::npos) {
      ++at;
    }
    return safetensors_length_bytes + at;
  }

  FRUGAL_INLINE std::string part() const {
    if (state_ == State::root || state_ == State::names || state_ == State::done) return {};
    if (state_ <= State::metadata_value) return "__metadata__";
    return safetensors_tensor(header_.tensors.back().name);
  }

  [[noreturn]] FRUGAL_INLINE void unexpected(std::string const& found) const {
    static constexpr std::string_view number = "a whole number from 0 to 2^64 - 1";
    static constexpr std::array<std::string_view, 15> expected{
        "an object", "a tensor's name",
        "an object", "a key",
        "a string",  "an object",
        "a field",   "a string",
        "an array",  number,
        "an array",  number,
        number,      "the end of two offsets",
        "the end"};
    damaged(
        "the header has something else than it should",
        "expected " + std::string(expected[static_cast<std::size_t>(state_)]) + ", found " + found);
  }

  [[noreturn]] FRUGAL_INLINE void damaged(std::string what, std::string why = {},
                                          std::string fix = safetensors_mend) const {
    safetensors_fail(name_, part(), offset(), std::move(what), std::move(why), std::move(fix));
  }

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
