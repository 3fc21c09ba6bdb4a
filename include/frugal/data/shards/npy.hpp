// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/checkpoint/dtype.hpp>
#include <frugal/error.hpp>
#include <frugal/inline.hpp>

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

namespace frugal {

/// An array as a .npy file holds it, row-major; a view of the file's bytes.
struct NpyArray {
  Dtype dtype = Dtype::u8;
  std::vector<std::uint64_t> shape;
  std::span<std::byte const> bytes;  ///< of the elements; not aligned
};

namespace detail {

/// The types of NumPy that are read, as its headers name them on this (little-endian) machine.
inline constexpr std::pair<std::string_view, Dtype> npy_types[] = {
    {"|b1", Dtype::boolean}, {"|u1", Dtype::u8},  {"|i1", Dtype::i8},  {"<u2", Dtype::u16},
    {"<i2", Dtype::i16},     {"<u4", Dtype::u32}, {"<i4", Dtype::i32}, {"<u8", Dtype::u64},
    {"<i8", Dtype::i64},     {"<f2", Dtype::f16}, {"<f4", Dtype::f32}, {"<f8", Dtype::f64},
    {"<c8", Dtype::c64},
};

/// Reads {'descr': '<f4', 'fortran_order': False, 'shape': (3, 4), }: what NumPy writes of Python's
/// literals, and no more.
class NpyHeader {
 public:
  NpyHeader(std::string_view text, std::size_t at, std::string const& where)
      : text_(text), at_(at), where_(where) {}

  FRUGAL_INLINE NpyArray read() {
    NpyArray out;
    bool descr = false, order = false, shape = false;
    expect('{');
    while (!take('}')) {
      std::string_view const key = quoted();
      expect(':');
      if (key == "descr" && !std::exchange(descr, true)) {
        out.dtype = type();
      } else if (key == "fortran_order" && !std::exchange(order, true)) {
        if (word("True")) fail("its elements are in Fortran's order; save np.ascontiguousarray(x)");
        if (!word("False")) fail("fortran_order is neither True nor False");
      } else if (key == "shape" && !std::exchange(shape, true)) {
        expect('(');
        while (!take(')')) {
          out.shape.push_back(number());
          if (!take(',') && !(skip(), peek() == ')')) fail("a comma is missing in the shape");
          if (out.shape.size() > 64) fail("it has more than 64 dimensions");
        }
      } else {
        fail("the key '" + std::string(key.substr(0, 40)) + "' is unknown, or there twice");
      }
      if (!take(',') && !(skip(), peek() == '}')) fail("a comma is missing");
    }
    if (!descr || !order || !shape) fail("one of descr, fortran_order and shape is missing");
    skip();
    if (position_ != text_.size()) fail("bytes follow the header's dictionary");
    return out;
  }

  [[noreturn]] FRUGAL_INLINE void fail(std::string why) const {
    throw DataError({.what = "this is no array of NumPy that can be read",
                     .where = where_ + ", byte " + std::to_string(at_ + position_),
                     .why = std::move(why),
                     .fix = "Save it with np.save, without pickle."});
  }

 private:
  char peek() const { return position_ < text_.size() ? text_[position_] : '\0'; }
  void skip() {
    while (peek() == ' ' || peek() == '\n' || peek() == '\t') ++position_;
  }
  FRUGAL_INLINE bool take(char c) {
    skip();
    if (peek() != c) return false;
    ++position_;
    return true;
  }
  void expect(char c) {
    if (!take(c)) fail(std::string("expected '") + c + "'");
  }
  FRUGAL_INLINE bool word(std::string_view text) {
    skip();
    if (!text_.substr(position_).starts_with(text)) return false;
    position_ += text.size();
    return true;
  }
  FRUGAL_INLINE std::string_view quoted() {
    skip();
    char const quote = peek();
    if (quote != '\'' && quote != '"') fail("expected a quoted text");
    std::size_t const begin = ++position_;
    std::size_t const end = text_.find(quote, begin);
    if (end == std::string_view::npos) fail("a quoted text has no end");
    position_ = end + 1;
    return text_.substr(begin, end - begin);
  }
  FRUGAL_INLINE Dtype type() {
    skip();
    if (peek() == '[') fail("its elements are records");
    std::string_view const name = quoted();
    for (auto const& [text, dtype] : npy_types) {
      if (name == text) return dtype;
    }
    fail("the type '" + std::string(name.substr(0, 40)) + "' is not read");
  }
  FRUGAL_INLINE std::uint64_t number() {
    skip();
    std::uint64_t out = 0;
    char const* const begin = text_.data() + position_;
    auto const [end, error] = std::from_chars(begin, text_.data() + text_.size(), out);
    if (error != std::errc() || end == begin) fail("expected a number below 2^64");
    position_ += static_cast<std::size_t>(end - begin);
    return out;
  }

  std::string_view text_;
  std::size_t at_;  // of the text in the file
  std::string const& where_;
  std::size_t position_ = 0;
};

}  // namespace detail

/// Reads an array in NumPy's format, versions 1 to 3; `where` is what errors call it.
///
/// Source  NEP 1, "A simple file format for NumPy arrays", and numpy.lib.format.
/// Errors  DataError with the byte: other bytes, a size that does not fit, big-endian elements,
///         Fortran's order, records and Python objects.
FRUGAL_INLINE NpyArray read_npy(std::span<std::byte const> bytes, std::string const& where) {
  std::string_view const all(reinterpret_cast<char const*>(bytes.data()), bytes.size());
  detail::NpyHeader const none("", 0, where);
  if (!all.starts_with(std::string_view("\x93NUMPY", 6)) || all.size() < 10) {
    none.fail("it does not begin with 93 4e 55 4d 50 59, or is shorter than 10 bytes");
  }
  unsigned const format = static_cast<unsigned char>(all[6]);
  if (format < 1 || format > 3) none.fail("its version is " + std::to_string(format));
  std::size_t const begin = format == 1 ? 10 : 12;
  std::uint64_t length = 0;
  for (std::size_t i = std::min(begin, all.size()); i-- > 8;) {
    length = length << 8 | static_cast<unsigned char>(all[i]);
  }
  if (all.size() < begin || length > all.size() - begin) none.fail("its header is cut off");
  NpyArray out = detail::NpyHeader(all.substr(begin, length), begin, where).read();
  out.bytes = bytes.subspan(begin + length);
  auto const bits = tensor_bits(out.dtype, out.shape);
  if (!bits || *bits / 8 != out.bytes.size()) {
    none.fail("its shape asks for " + (bits ? std::to_string(*bits / 8) : "too many") +
              " bytes of elements, and there are " + std::to_string(out.bytes.size()));
  }
  return out;
}

/// The header that np.save writes before the elements.
FRUGAL_INLINE std::string npy_header(Dtype dtype, std::span<std::uint64_t const> shape) {
  std::string text = "{'descr': '";
  for (auto const& [name, type] : detail::npy_types) {
    if (type == dtype) text += name;
  }
  text += "', 'fortran_order': False, 'shape': (";
  for (std::size_t i = 0; i < shape.size(); ++i) {
    text += (i == 0 ? "" : ", ") + std::to_string(shape[i]);
  }
  text += shape.size() == 1 ? ",), }" : "), }";
  text.resize((10 + text.size() + 1 + 63) / 64 * 64 - 10 - 1, ' ');
  text += '\n';
  std::string out("\x93NUMPY\x01\x00", 8);
  out += static_cast<char>(text.size() & 255U);
  out += static_cast<char>(text.size() >> 8U);
  return out + text;
}

}  // namespace frugal
