// SPDX-License-Identifier: Apache-2.0
// needs: avro
#pragma once

#include <frugal/data/avro/schema.hpp>
#include <frugal/data/tables/cell.hpp>
#include <frugal/error.hpp>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

namespace frugal::detail {

/// Walks over the bytes of Avro values, and makes cells of those that are wanted. Every length is
/// compared with what is left before anything is done with it: libavro's own reader allocates what
/// a damaged length claims.
///
/// Source  Apache Avro 1.11.1 specification, "Binary encoding".
class AvroDecoder {
 public:
  /// `where` is what errors call the bytes.
  AvroDecoder(std::string_view bytes, std::string const& where) : bytes_(bytes), where_(where) {}

  std::size_t offset() const { return at_; }
  bool at_end() const { return at_ == bytes_.size(); }

  /// A record's cells to their columns.
  void record(AvroType const& type, std::vector<Cell>& cells) {
    for (AvroType const& field : type.parts) {
      if (field.column >= 0) {
        cells[static_cast<std::size_t>(field.column)] = value(field);
      } else if (field.kind == AvroType::Kind::record) {
        record(field, cells);
      } else {
        skip(field);
      }
    }
  }

  /// A value as one cell; maps and records have none.
  Cell value(AvroType const& type) {
    using Kind = AvroType::Kind;
    switch (type.kind) {
      case Kind::null:
        return {};
      case Kind::boolean:
        return boolean();
      case Kind::integer:
        return whole(type);
      case Kind::f32:
        return double{number<float>()};
      case Kind::f64:
        return number<double>();
      case Kind::bytes:
        return std::string(take(length()));
      case Kind::fixed:
        return std::string(take(type.size));
      case Kind::symbol:
        return type.symbols[choice(type.symbols.size())];
      case Kind::list:
        return list(type.parts[0]);
      case Kind::either:
        return value(type.parts[choice(type.parts.size())]);
      case Kind::map:
      case Kind::record:
        break;
    }
    fail("a value has no cell", "");
  }

  void skip(AvroType const& type) {
    using Kind = AvroType::Kind;
    switch (type.kind) {
      case Kind::null:
        return;
      case Kind::boolean:
        static_cast<void>(boolean());
        return;
      case Kind::integer:
        static_cast<void>(integer());
        return;
      case Kind::f32:
        static_cast<void>(take(4));
        return;
      case Kind::f64:
        static_cast<void>(take(8));
        return;
      case Kind::bytes:
        static_cast<void>(take(length()));
        return;
      case Kind::fixed:
        static_cast<void>(take(type.size));
        return;
      case Kind::symbol:
        static_cast<void>(choice(type.symbols.size()));
        return;
      case Kind::list:
        items(type.parts[0].empty(), [&] { skip(type.parts[0]); });
        return;
      case Kind::map:
        items(false, [&] {
          static_cast<void>(take(length()));
          skip(type.parts[0]);
        });
        return;
      case Kind::record:
        for (AvroType const& field : type.parts) skip(field);
        return;
      case Kind::either:
        skip(type.parts[choice(type.parts.size())]);
        return;
    }
  }

  /// A variable-length integer in zigzag code.
  std::int64_t integer() {
    std::uint64_t bits = 0;
    for (unsigned shift = 0;; shift += 7) {
      if (at_ == bytes_.size()) cut_off("an integer", 1);
      auto const byte = static_cast<unsigned char>(bytes_[at_++]);
      if (shift == 63 && byte > 1) fail("an integer has more than 64 bits", "");
      bits |= std::uint64_t{byte & 0x7fU} << shift;
      if (byte < 0x80) break;
    }
    return static_cast<std::int64_t>(bits >> 1 ^ (~(bits & 1) + 1));
  }

  std::string_view take(std::uint64_t size) {
    if (size > bytes_.size() - at_) cut_off("a value", size);
    std::string_view const taken = bytes_.substr(at_, static_cast<std::size_t>(size));
    at_ += taken.size();
    return taken;
  }

  std::uint64_t length() {
    std::int64_t const length = integer();
    if (length < 0) fail("a length is negative", "it is " + std::to_string(length));
    return static_cast<std::uint64_t>(length);
  }

  [[noreturn]] void fail(std::string what, std::string why) const {
    throw DataError({.what = std::move(what),
                     .where = where_ + ", byte " + std::to_string(at_),
                     .why = std::move(why),
                     .fix = "Fetch or write the file again."});
  }

  /// Calls `each()` for every item of an array or a map, which comes in blocks.
  template <class Each>
  void items(bool empty, Each&& each) {
    while (true) {
      std::int64_t count = integer();
      if (count == 0) return;
      if (count < 0) {
        static_cast<void>(integer());  // the bytes of the block
        if (count == INT64_MIN) fail("a list has too many items", "");
        count = -count;
      }
      if (empty) continue;
      // Every item takes a byte at least.
      if (static_cast<std::uint64_t>(count) > bytes_.size() - at_) {
        cut_off(std::to_string(count) + " items", static_cast<std::uint64_t>(count));
      }
      for (; count > 0; --count) each();
    }
  }

 private:
  bool boolean() {
    char const byte = take(1)[0];
    if (byte != 0 && byte != 1) fail("a boolean is neither 0 nor 1", "");
    return byte == 1;
  }

  template <class T>
  T number() {
    T value;
    std::memcpy(&value, take(sizeof(T)).data(), sizeof(T));
    return value;
  }

  /// An int or a long; an int is written in as many bytes as it takes, which may be too many.
  std::int64_t whole(AvroType const& type) {
    std::int64_t const value = integer();
    if (type.narrow && value != static_cast<std::int32_t>(value)) {
      fail("an int has more than 32 bits", "it is " + std::to_string(value));
    }
    return value;
  }

  std::size_t choice(std::size_t size) {
    std::int64_t const index = integer();
    if (index < 0 || static_cast<std::uint64_t>(index) >= size) {
      fail("a union's branch or an enum's symbol does not exist",
           "it is number " + std::to_string(index) + " of " + std::to_string(size));
    }
    return static_cast<std::size_t>(index);
  }

  Cell list(AvroType const& of) {
    using Kind = AvroType::Kind;
    if (of.kind == Kind::bytes || of.kind == Kind::symbol || of.kind == Kind::fixed) {
      std::vector<std::string> texts;
      items(of.empty(), [&] { texts.push_back(std::get<std::string>(value(of))); });
      return texts;
    }
    Numbers out;
    auto const add = [&]<class T>(Dtype dtype, T const&) {
      out.dtype = dtype;
      items(false, [&] {
        T item{};
        if constexpr (std::is_same_v<T, bool>) {
          item = boolean();
        } else if constexpr (std::is_integral_v<T>) {
          item = static_cast<T>(whole(of));
        } else {
          item = number<T>();
        }
        out.bytes.append(reinterpret_cast<char const*>(&item), sizeof(T));
      });
    };
    switch (of.kind) {
      case Kind::boolean:
        add(Dtype::boolean, bool{});
        break;
      case Kind::integer:
        of.narrow ? add(Dtype::i32, std::int32_t{}) : add(Dtype::i64, std::int64_t{});
        break;
      case Kind::f32:
        add(Dtype::f32, float{});
        break;
      default:
        add(Dtype::f64, double{});
        break;
    }
    return out;
  }

  std::string_view bytes_;
  std::string const& where_;
  std::size_t at_ = 0;

  [[noreturn]] void cut_off(std::string const& what, std::uint64_t wanted) const {
    fail(what + " is cut off", "it takes " + std::to_string(wanted) + " bytes, and " +
                                   std::to_string(bytes_.size() - at_) + " are left");
  }
};

}  // namespace frugal::detail
