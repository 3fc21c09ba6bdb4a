// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <charconv>
#include <concepts>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>

// Writes JSON by hand: otherwise everything that includes the checkpoint writer would pay for a
// JSON library, which takes as long to compile as all the rest. Reading uses a library.
namespace frugal::detail {

/// Appends a JSON string. Bytes that are not UTF-8 become U+FFFD, as as_utf8 has it. Escapes only
/// what RFC 8259, section 7, requires, in the short form where one exists, as most writers do.
void append_json(std::string& out, std::string_view text);

/// Appends the shortest digits that read back as the same double; null for a non-finite number,
/// which JSON cannot express.
void append_json(std::string& out, double number);

void append_json(std::string& out, std::integral auto number) {
  char digits[24];
  out.append(digits, std::to_chars(digits, digits + sizeof digits, number).ptr);
}

/// How an object or array is set out.
enum class JsonLayout : unsigned char {
  as_around,  ///< as the one that it is in; the outermost is tight
  tight,      ///< {"a":1,"b":2}
  spaced,     ///< {"a": 1, "b": 2}
  lines,      ///< each member on a line, indented
};

/// Writes JSON value by value; commas, colons and line feeds follow. Numbers and texts are those of
/// append_json. Allocates for the text alone, up to 15 levels deep. RapidJSON's writer adds to a null
/// pointer, which the sanitizers refuse.
class JsonWriter {
 public:
  /// `before` is text in front of the JSON; `indent` is in blanks a level.
  explicit JsonWriter(std::string before = {}, std::size_t indent = 2)
      : out_(std::move(before)), indent_(indent) {}

  JsonWriter& object(JsonLayout layout = JsonLayout::as_around) { return open('{', layout); }
  JsonWriter& array(JsonLayout layout = JsonLayout::as_around) { return open('[', layout); }

  /// Ends the innermost object or array.
  JsonWriter& end();

  JsonWriter& key(std::string_view name);

  /// The next value or end begins a line, after so many blanks. For tight and spaced layouts.
  JsonWriter& on_line(std::size_t blanks) {
    line_ = blanks;
    return *this;
  }

  JsonWriter& value(std::string_view text);
  JsonWriter& value(char const* text) { return value(std::string_view(text)); }
  JsonWriter& value(double number);
  JsonWriter& value(std::integral auto number) {
    begin_value();
    if constexpr (std::same_as<decltype(number), bool>) {
      out_ += number ? "true" : "false";
    } else {
      append_json(out_, number);
    }
    return *this;
  }
  template <class Value>
  JsonWriter& value(std::optional<Value> const& given) {
    return given ? value(*given) : raw("null");
  }
  template <class... Values>
  JsonWriter& value(std::variant<Values...> const& given) {
    std::visit([this](auto const& each) { this->value(each); }, given);
    return *this;
  }
  /// A value that is JSON already.
  JsonWriter& raw(std::string_view json);

  JsonWriter& add(std::string_view name, std::string_view text) { return key(name).value(text); }
  template <class Value>
    requires(!std::convertible_to<Value const&, std::string_view>)
  JsonWriter& add(std::string_view name, Value const& given) {
    return key(name).value(given);
  }

  /// What is written so far.
  std::string const& text() const { return out_; }
  /// Ends all that is open, and gives the text away, with `after` behind it.
  std::string str(std::string_view after = {});

 private:
  JsonLayout layout() const {
    return open_.empty() ? JsonLayout::tight : static_cast<JsonLayout>(open_.back() >> 1);
  }
  /// Whether nothing is in the innermost one: texts end with a quote.
  bool is_empty() const { return out_.back() == '{' || out_.back() == '['; }

  JsonWriter& open(char bracket, JsonLayout wanted);

  void begin_value();
  void break_line();

  std::string out_;
  std::string open_;                 ///< a byte for each level: a short one needs no memory
  std::optional<std::size_t> line_;  ///< a line feed and blanks come before the next value
  std::size_t indent_;
  bool has_key_ = false;
};

/// One flat JSON object on one line: {"event":"step","step":100,"loss":0.71}. Bytes that are not
/// UTF-8 become U+FFFD, so that any path or error text gives a readable line.
class JsonLine {
 public:
  JsonLine() : writer_(reserved()) { writer_.object(); }

  JsonLine& add(std::string_view key, std::string_view text) {
    writer_.add(key, text);
    return *this;
  }
  template <class Value>
    requires(!std::convertible_to<Value const&, std::string_view>)
  JsonLine& add(std::string_view key, Value const& value) {
    writer_.add(key, value);
    return *this;
  }

  /// The object, with a line feed.
  std::string str() && { return writer_.str("\n"); }

 private:
  static std::string reserved() {
    std::string text;
    text.reserve(256);  // as long as most lines of a log
    return text;
  }

  JsonWriter writer_;
};

}  // namespace frugal::detail

#ifndef FRUGAL_COMPILED
#include <frugal/base/json_writer.ipp>
#endif
