// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/base/utf8.hpp>

#include <rapidjson/error/en.h>
#include <rapidjson/reader.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

// frugal reads JSON with RapidJSON: of the libraries in Debian, vcpkg and Conan it costs an
// including file the least (docs/design.md). Only this file includes it.
namespace frugal::detail {

/// Input that is parsed in place: escapes are decoded inside the text, so views into it stay valid
/// as long as the text. RapidJSON's own in-situ stream looks for a terminating NUL, and reads past
/// it after an incomplete character.
class JsonStream {
 public:
  using Ch = char;

  JsonStream(char* text, std::size_t size) : begin_(text), at_(text), end_(text + size) {}

  char Peek() const { return at_ == end_ ? '\0' : *at_; }
  char Take() { return at_ == end_ ? '\0' : *at_++; }
  std::size_t Tell() const { return static_cast<std::size_t>(at_ - begin_); }

  char* PutBegin() { return text_ = put_ = at_; }
  // The output is never longer than the input, except after an incomplete character at the end.
  void Put(char c) {
    if (put_ != end_) *put_++ = c;
  }
  void Flush() {}
  std::size_t PutEnd(char* begin) { return static_cast<std::size_t>(put_ - begin); }

  /// The last `size` characters read.
  std::string_view last(std::size_t size) const { return {at_ - size, size}; }
  /// Where the last string began, after its quotation mark.
  std::size_t text_began() const { return static_cast<std::size_t>(text_ - begin_); }
  bool at_end() const { return at_ == end_; }

 private:
  char* begin_;
  char* at_;
  char* end_;
  char* put_ = nullptr;
  char* text_ = nullptr;
};

/// Members that all handlers share: RapidJSON requires these five, and never calls them here.
struct NumbersAsWritten {
  bool Int(int) { return false; }
  bool Uint(unsigned) { return false; }
  bool Int64(std::int64_t) { return false; }
  bool Uint64(std::uint64_t) { return false; }
  bool Double(double) { return false; }
};

struct JsonError {
  std::size_t at = 0;  ///< byte offset in the text
  std::string why;     ///< RapidJSON's description
};

/// Whether a text is valid UTF-8. Handlers check every string and key: RapidJSON 1.1.0 accepts a
/// lone low surrogate as a character.
inline bool is_json_text(std::string_view text) { return is_utf8(text); }

/// Calls the handler for every token of a text and returns what is wrong; nothing if the text is
/// JSON (RFC 8259) in UTF-8. A handler has RapidJSON's members, receives numbers as text through
/// RawNumber, and aborts by returning false or throwing. The parser recurses for every nesting
/// level, so the handler must limit the depth.
template <class Handler>
std::optional<JsonError> parse_json(JsonStream& text, Handler& handler) {
  constexpr unsigned flags = rapidjson::kParseInsituFlag | rapidjson::kParseValidateEncodingFlag |
                             rapidjson::kParseNumbersAsStringsFlag;
  rapidjson::Reader reader;
  rapidjson::ParseResult const result = reader.Parse<flags>(text, handler);
  if (result.IsError()) return JsonError{result.Offset(), GetParseError_En(result.Code())};
  // RapidJSON treats a NUL as the end of its input.
  if (!text.at_end()) return JsonError{text.Tell(), "Something follows the value."};
  return std::nullopt;
}

}  // namespace frugal::detail
