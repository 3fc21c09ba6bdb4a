// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/store/dtype.hpp>
#include <frugal/store/safetensors_fault.hpp>

#include <nlohmann/json.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <iterator>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace frugal::detail {

/// What the header says of a tensor, unchecked: `begin` and `end` in bytes from the first byte of
/// data, `rank` extents from `extents[shape]` on, `place` where in the file its name stands.
struct SafetensorsEntry {
  std::string_view name;
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
  std::uint32_t shape = 0;
  std::uint32_t rank = 0;
  std::uint32_t place = 0;
  Dtype dtype = Dtype::u8;
};

struct SafetensorsText {
  std::string_view key;
  std::string_view value;
  std::uint64_t place = 0;
};

/// A header as it stands in the file, in its order. Everything in it is a fixed number of bytes for
/// each byte of the file, so a hostile header cannot make it much larger than itself.
struct SafetensorsHeader {
  std::unique_ptr<char[]> text;  ///< what the names and the metadata point into
  std::vector<std::uint64_t> extents;
  std::vector<SafetensorsEntry> tensors;
  std::vector<SafetensorsText> metadata;
};

/// Reads the JSON of a header, event by event: a document tree would drop duplicate keys unseen,
/// and take many times the header's memory.
class SafetensorsHeaderReader {
 public:
  /// `json` without the padding; `name` is that of the file, for errors.
  SafetensorsHeaderReader(std::string_view json, std::string const& name)
      : name_(name), json_(json), at_(json.data()), previous_(json.data()) {
    // No string is longer than its JSON, so this is never outgrown, and views into it hold.
    header_.text = std::make_unique_for_overwrite<char[]>(json.size());
  }

  SafetensorsHeader read() && {
    nlohmann::json::sax_parse(Characters{at_, &at_}, Characters{json_.data() + json_.size(), &at_},
                              this);
    // The parser takes a NUL for the end of its input.
    if (previous_ != json_.data() + json_.size()) {
      safetensors_fail(
          name_, "",
          safetensors_length_bytes + static_cast<std::uint64_t>(previous_ - json_.data()),
          "something else than spaces follows the header's object", "");
    }
    return std::move(header_);
  }

  // What nlohmann-json calls. It goes on for as long as it gets true; here it is told otherwise by
  // exceptions alone.

  bool start_object(std::size_t) {
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

  bool key(std::string& text) {
    if (state_ == State::metadata_keys) {
      header_.metadata.push_back({.key = keep(text), .value = {}, .place = place()});
      return to(State::metadata_value);
    }
    if (state_ == State::fields) return field(text);
    if (text != safetensors_metadata_key) {
      header_.tensors.push_back({.name = keep(text),
                                 .shape = static_cast<std::uint32_t>(header_.extents.size()),
                                 .place = static_cast<std::uint32_t>(place())});
      fields_ = 0;
      return to(State::tensor_object);
    }
    if (metadata_seen_) damaged("__metadata__ stands twice in the header");
    metadata_seen_ = true;
    return to(State::metadata_object);
  }

  bool string(std::string& text) {
    if (state_ == State::metadata_value) {
      header_.metadata.back().value = keep(text);
      return to(State::metadata_keys);
    }
    if (state_ != State::dtype) unexpected("a string");
    auto const dtype = dtype_of(text);
    if (!dtype) {
      damaged("the element type is unknown",
              "the header says " + safetensors_quoted(text) +
                  ", which is none of the types from BOOL to U64 that are known here",
              "It may be of a newer version of the format: look for a newer frugal.");
    }
    header_.tensors.back().dtype = *dtype;
    return to(State::fields);
  }

  bool number_unsigned(std::uint64_t number) {
    auto& tensor = header_.tensors;
    if (state_ == State::shape) {
      header_.extents.push_back(number);
      ++tensor.back().rank;
    } else if (state_ == State::begin) {
      tensor.back().begin = number;
      state_ = State::end;
    } else if (state_ == State::end) {
      tensor.back().end = number;
      state_ = State::offsets_close;
    } else {
      unexpected("a number");
    }
    // The parser looks at the character behind a number, to see that it has ended.
    previous_ = at_ - 1;
    return true;
  }

  bool start_array(std::size_t) {
    if (state_ == State::shape_array) return to(State::shape);
    if (state_ == State::offsets_array) return to(State::begin);
    unexpected("an array");
  }

  bool end_array() {
    if (state_ != State::shape && state_ != State::offsets_close) unexpected("the array's end");
    return to(State::fields);
  }

  bool end_object() {
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

  bool null() { unexpected("null"); }
  bool boolean(bool) { unexpected("a truth value"); }
  bool number_integer(std::int64_t) { unexpected("a negative number"); }
  bool number_float(double, std::string const&) {
    unexpected("a number with a fraction or exponent, or beyond 64 bits");
  }
  bool binary(nlohmann::json::binary_t&) { unexpected("binary data"); }

  bool parse_error(std::size_t read, std::string const&, nlohmann::json::exception const& error) {
    // Its text quotes the file, as the bytes are.
    std::string_view text = error.what();
    if (auto const colon = text.find(": "); colon != text.npos) text.remove_prefix(colon + 2);
    safetensors_fail(name_, part(), safetensors_length_bytes + read - 1, "the header is no JSON",
                     "nlohmann-json says " + safetensors_quoted(text));
  }

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

  /// Gives the parser the characters, and says how far it has come: its events do not.
  struct Characters {
    using iterator_category = std::input_iterator_tag;
    using value_type = char;
    using difference_type = std::ptrdiff_t;
    using pointer = char const*;
    using reference = char const&;

    reference operator*() const { return *here; }
    Characters& operator++() {
      *at = ++here;
      return *this;
    }
    bool operator==(Characters const& other) const { return here == other.here; }

    char const* here;
    char const** at;
  };

  static constexpr std::array<std::string_view, 3> field_names{"dtype", "shape", "data_offsets"};

  bool to(State next) {
    state_ = next;
    previous_ = at_;
    return true;
  }

  bool field(std::string const& name) {
    constexpr std::array next{State::dtype, State::shape_array, State::offsets_array};
    for (std::size_t i = 0; i < field_names.size(); ++i) {
      if (name != field_names[i]) continue;
      if ((fields_ >> i & 1U) != 0) damaged("the tensor has " + name + " twice");
      fields_ |= 1U << i;
      return to(next[i]);
    }
    damaged("the tensor has a field that the format does not know",
            "expected dtype, shape and data_offsets, found " + safetensors_quoted(name));
  }

  std::string_view keep(std::string const& text) {
    char* const kept = header_.text.get() + kept_;
    if (!text.empty()) std::memcpy(kept, text.data(), text.size());
    kept_ += text.size();
    return {kept, text.size()};
  }

  /// Where in the file the token stands that is looked at now.
  std::uint64_t place() const {
    std::size_t at = static_cast<std::size_t>(previous_ - json_.data());
    while (at < json_.size() &&
           std::string_view(" \t\r\n,:").find(json_[at]) != std::string::npos) {
      ++at;
    }
    return safetensors_length_bytes + at;
  }

  std::string part() const {
    if (state_ == State::root || state_ == State::names || state_ == State::done) return {};
    if (state_ <= State::metadata_value) return "__metadata__";
    return safetensors_tensor(header_.tensors.back().name);
  }

  [[noreturn]] void unexpected(std::string const& found) const {
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

  [[noreturn]] void damaged(std::string what, std::string why = {},
                            std::string mend = safetensors_mend) const {
    safetensors_fail(name_, part(), place(), std::move(what), std::move(why), std::move(mend));
  }

  std::string const& name_;
  std::string_view json_;
  char const* at_;        ///< behind the last character that the parser has read
  char const* previous_;  ///< behind the token before the one looked at
  SafetensorsHeader header_;
  std::size_t kept_ = 0;
  State state_ = State::root;
  unsigned fields_ = 0;  ///< of the tensor, one bit each
  bool metadata_seen_ = false;
};

}  // namespace frugal::detail
