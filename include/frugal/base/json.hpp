// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/base/json_events.hpp>

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

namespace frugal::detail {

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

 private:
  class Builder;

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

}  // namespace frugal::detail

#ifndef FRUGAL_COMPILED
#include <frugal/base/json.ipp>
#endif
