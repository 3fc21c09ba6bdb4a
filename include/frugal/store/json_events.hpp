// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/store/json_text.hpp>

#include <rapidjson/error/en.h>
#include <rapidjson/reader.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

// Reading JSON is RapidJSON's: of the libraries that Debian, vcpkg and Conan have it costs an
// including file least (docs/design.md). Only this file names it.
namespace frugal::detail {

/// A text that is parsed where it stands: texts in it lose their escapes in place, so views of them
/// hold for as long as the text does. RapidJSON's own stream for this looks for a NUL as its end,
/// and beyond it after half a character.
class JsonStream {
 public:
  using Ch = char;

  JsonStream(char* text, std::size_t size) : begin_(text), at_(text), end_(text + size) {}

  char Peek() const { return at_ == end_ ? '\0' : *at_; }
  char Take() { return at_ == end_ ? '\0' : *at_++; }
  std::size_t Tell() const { return static_cast<std::size_t>(at_ - begin_); }

  char* PutBegin() { return text_ = put_ = at_; }
  // What is written is never longer than what was read, but for half a character at the end.
  void Put(char c) {
    if (put_ != end_) *put_++ = c;
  }
  void Flush() {}
  std::size_t PutEnd(char* begin) { return static_cast<std::size_t>(put_ - begin); }

  /// What was read last, `size` characters of it.
  std::string_view last(std::size_t size) const { return {at_ - size, size}; }
  /// Where the last text began, behind its quotation mark.
  std::size_t text_began() const { return static_cast<std::size_t>(text_ - begin_); }
  bool at_end() const { return at_ == end_; }

 private:
  char* begin_;
  char* at_;
  char* end_;
  char* put_ = nullptr;
  char* text_ = nullptr;
};

/// What handlers have in common: RapidJSON wants these five, and never calls them here.
struct NumbersAsWritten {
  bool Int(int) { return false; }
  bool Uint(unsigned) { return false; }
  bool Int64(std::int64_t) { return false; }
  bool Uint64(std::uint64_t) { return false; }
  bool Double(double) { return false; }
};

struct JsonError {
  std::size_t at = 0;  ///< byte of the text
  std::string why;     ///< in RapidJSON's words
};

/// A handler asks this of every text and key: RapidJSON 1.1.0 takes the second half of a surrogate
/// pair for a character.
inline bool is_json_text(std::string_view text) { return is_utf8(text); }

/// Calls the handler for everything in a text, and says what is wrong with it: nothing if it is
/// JSON (RFC 8259) in UTF-8. A handler has RapidJSON's members, gets numbers as they are written by
/// RawNumber, and ends the parsing by false or an exception. It is called deeper for every nesting,
/// so it has to end that.
template <class Handler>
std::optional<JsonError> parse_json(JsonStream& text, Handler& handler) {
  constexpr unsigned flags = rapidjson::kParseInsituFlag | rapidjson::kParseValidateEncodingFlag |
                             rapidjson::kParseNumbersAsStringsFlag;
  rapidjson::Reader reader;
  rapidjson::ParseResult const result = reader.Parse<flags>(text, handler);
  if (result.IsError()) return JsonError{result.Offset(), GetParseError_En(result.Code())};
  // A NUL is to RapidJSON the end of its input.
  if (!text.at_end()) return JsonError{text.Tell(), "Something follows the value."};
  return std::nullopt;
}

}  // namespace frugal::detail
