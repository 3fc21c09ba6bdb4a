// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/base/json_text.hpp>
#include <frugal/inline.hpp>

#include <concepts>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>

namespace frugal::detail {

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
  FRUGAL_INLINE JsonWriter& end() {
    bool const in_array = (open_.back() & 1) != 0;
    bool const lines = layout() == JsonLayout::lines && !is_empty();
    open_.pop_back();
    if (lines) line_ = indent_ * open_.size();
    break_line();
    out_ += in_array ? ']' : '}';
    return *this;
  }

  FRUGAL_INLINE JsonWriter& key(std::string_view name) {
    begin_value();
    append_json(out_, name);
    out_ += layout() == JsonLayout::tight ? ":" : ": ";
    has_key_ = true;
    return *this;
  }

  /// The next value or end begins a line, after so many blanks. For tight and spaced layouts.
  JsonWriter& on_line(std::size_t blanks) {
    line_ = blanks;
    return *this;
  }

  FRUGAL_INLINE JsonWriter& value(std::string_view text) {
    begin_value();
    append_json(out_, text);
    return *this;
  }
  JsonWriter& value(char const* text) { return value(std::string_view(text)); }
  FRUGAL_INLINE JsonWriter& value(double number) {
    begin_value();
    append_json(out_, number);
    return *this;
  }
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
  FRUGAL_INLINE JsonWriter& raw(std::string_view json) {
    begin_value();
    out_ += json;
    return *this;
  }

  JsonWriter& add(std::string_view name, std::string_view text) { return key(name).value(text); }
  template <class Value>
    requires(!std::convertible_to<Value const&, std::string_view>)
  JsonWriter& add(std::string_view name, Value const& given) {
    return key(name).value(given);
  }

  /// What is written so far.
  std::string const& text() const { return out_; }
  /// Ends all that is open, and gives the text away, with `after` behind it.
  FRUGAL_INLINE std::string str(std::string_view after = {}) {
    while (!open_.empty()) end();
    out_ += after;
    return std::move(out_);
  }

 private:
  JsonLayout layout() const {
    return open_.empty() ? JsonLayout::tight : static_cast<JsonLayout>(open_.back() >> 1);
  }
  /// Whether nothing is in the innermost one: texts end with a quote.
  bool is_empty() const { return out_.back() == '{' || out_.back() == '['; }

  FRUGAL_INLINE JsonWriter& open(char bracket, JsonLayout wanted) {
    begin_value();
    out_ += bracket;
    if (wanted == JsonLayout::as_around) wanted = layout();
    open_ += static_cast<char>(static_cast<int>(wanted) << 1 | (bracket == '[' ? 1 : 0));
    return *this;
  }

  FRUGAL_INLINE void begin_value() {
    if (std::exchange(has_key_, false) || open_.empty()) return;
    if (layout() == JsonLayout::lines) line_ = indent_ * open_.size();
    if (!is_empty()) out_ += layout() == JsonLayout::spaced && !line_ ? ", " : ",";
    break_line();
  }
  FRUGAL_INLINE void break_line() {
    if (!line_) return;
    out_ += '\n';
    out_.append(*std::exchange(line_, std::nullopt), ' ');
  }

  std::string out_;
  std::string open_;                 ///< a byte for each level: a short one needs no memory
  std::optional<std::size_t> line_;  ///< a line feed and blanks come before the next value
  std::size_t indent_;
  bool has_key_ = false;
};

}  // namespace frugal::detail
