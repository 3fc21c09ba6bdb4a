// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/base/utf8.hpp>
#include <frugal/error.hpp>

#include <rapidjson/error/en.h>
#include <rapidjson/reader.h>

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

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

/// A JSON value, for small files and HTTP answers. Numbers keep their text, so that no bit is lost.
class Json {
 public:
  enum class Kind : unsigned char { null, boolean, number, text, array, object };

  /// Nothing if the text is not JSON, or nests deeper than 64; `error` then says where and why.
  static std::optional<Json> parse(std::string text, JsonError* error = nullptr);

  Kind kind() const { return kind_; }
  bool is(Kind kind) const { return kind_ == kind; }

  /// The key of an object's member; empty for other values.
  std::string const& name() const { return name_; }
  /// The text of a string, or the digits of a number.
  std::string const& text() const { return text_; }
  bool truth() const { return truth_; }
  /// Byte offset in the text at which the value begins.
  std::size_t at() const { return at_; }
  /// The elements of an array, or the members of an object in their order.
  std::vector<Json> const& items() const { return items_; }

  /// The first member with that name, if this is an object that has one.
  Json const* find(std::string_view name) const;

  /// The number as that type; nothing if it does not fit, or is not a number. as_double takes any
  /// finite number; a number with a point or an exponent is not an integer.
  std::optional<std::uint64_t> as_unsigned() const { return number<std::uint64_t>(); }
  std::optional<std::int64_t> as_signed() const { return number<std::int64_t>(); }
  std::optional<double> as_double() const { return number<double>(); }

  /// The handler that makes a value of the parser's tokens: for a reader of one value of many.
  class Builder;

 private:
  template <class Number>
  std::optional<Number> number() const {
    Number value{};
    char const* const end = text_.data() + text_.size();
    auto const [stop, error] = std::from_chars(text_.data(), end, value);
    if (kind_ != Kind::number || error != std::errc() || stop != end) return std::nullopt;
    return value;
  }

  std::string name_;
  std::string text_;
  std::vector<Json> items_;
  std::size_t at_ = 0;
  Kind kind_ = Kind::null;
  bool truth_ = false;
};

/// The handler that RapidJSON calls.
class Json::Builder : public NumbersAsWritten {
 public:
  explicit Builder(JsonStream const& stream) : stream_(stream) {}

  bool Null() { return add(of(Kind::null, 4)); }
  bool Bool(bool truth);
  bool RawNumber(char const*, unsigned size, bool);
  bool String(char const* text, unsigned size, bool);
  bool Key(char const* text, unsigned size, bool);
  bool StartObject() { return open(Kind::object); }
  bool StartArray() { return open(Kind::array); }
  bool EndObject(unsigned) { return close(); }
  bool EndArray(unsigned) { return close(); }

  Json take() { return std::move(open_.front()); }

 private:
  static constexpr std::size_t deepest = 64;

  /// A value whose token is the last `size` bytes.
  Json of(Kind kind, std::size_t size) const;
  bool add(Json value);
  bool open(Kind kind);
  bool close();

  JsonStream const& stream_;
  std::vector<Json> open_;  // from the root to the value that is being filled
  std::string name_;        // of the next member
};

/// Reads fields of JSON files that frugal writes. A missing, unknown, duplicate or mistyped field
/// throws the given Fault as a FormatError; its `why` names the field and its byte offset.
class JsonFields {
 public:
  explicit JsonFields(Fault fault) : fault_(std::move(fault)) {}

  /// Parses an object whose "format" is `format`.
  Json parse(std::string_view text, std::string_view format) const;

  /// The version, at least 1. The caller checks for versions newer than it knows.
  std::uint64_t version(Json const& all) const;

  /// Refuses unknown and duplicate members: an unknown member cannot be judged.
  void only(Json const& parent, std::initializer_list<std::string_view> names) const;

  Json const& member(Json const& parent, char const* name) const;

  std::vector<Json> const& array(Json const& parent, char const* name) const;

  /// The members of an object; their names are unique.
  std::vector<Json> const& object(Json const& parent, char const* name) const;

  std::uint64_t number(Json const& parent, char const* name) const;

  /// Seconds since 1970.
  std::int64_t time(Json const& parent, char const* name) const {
    return static_cast<std::int64_t>(number(parent, name));
  }

  /// Empty if it is not a string; no valid name is empty.
  std::string text(Json const& parent, char const* name) const;

  /// A hash in the form of hex_of.
  std::uint64_t hash(Json const& parent, char const* name) const;

  /// Throws a fault of the whole file.
  [[noreturn]] void fail(std::string why) const;
  /// Throws a fault of one value.
  [[noreturn]] void fail(Json const& value, std::string why) const {
    fail_at(value.at(), std::move(why));
  }

 private:
  std::vector<Json> const& members(Json const& parent) const;

  [[noreturn]] void fail_at(std::size_t byte, std::string why) const;

  Fault fault_;
};

}  // namespace frugal::detail

#ifndef FRUGAL_COMPILED
#include <frugal/base/json.ipp>
#endif
