// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/data/shards/npy.hpp>

#include <frugal/error.hpp>
#include <frugal/inline.hpp>

#include <algorithm>
#include <charconv>
#include <system_error>

namespace frugal::detail {

FRUGAL_INLINE NpyArray NpyHeader::read() {
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

FRUGAL_INLINE void NpyHeader::fail(std::string why) const {
  throw DataError({.what = "this is no array of NumPy that can be read",
                   .where = where_ + ", byte " + std::to_string(at_ + position_),
                   .why = std::move(why),
                   .fix = "Save it with np.save, without pickle."});
}

FRUGAL_INLINE bool NpyHeader::take(char c) {
  skip();
  if (peek() != c) return false;
  ++position_;
  return true;
}

FRUGAL_INLINE bool NpyHeader::word(std::string_view text) {
  skip();
  if (!text_.substr(position_).starts_with(text)) return false;
  position_ += text.size();
  return true;
}

FRUGAL_INLINE std::string_view NpyHeader::quoted() {
  skip();
  char const quote = peek();
  if (quote != '\'' && quote != '"') fail("expected a quoted text");
  std::size_t const begin = ++position_;
  std::size_t const end = text_.find(quote, begin);
  if (end == std::string_view::npos) fail("a quoted text has no end");
  position_ = end + 1;
  return text_.substr(begin, end - begin);
}

FRUGAL_INLINE Dtype NpyHeader::type() {
  skip();
  if (peek() == '[') fail("its elements are records");
  std::string_view const name = quoted();
  for (auto const& [text, dtype] : npy_types) {
    if (name == text) return dtype;
  }
  fail("the type '" + std::string(name.substr(0, 40)) + "' is not read");
}

FRUGAL_INLINE std::uint64_t NpyHeader::number() {
  skip();
  std::uint64_t out = 0;
  char const* const begin = text_.data() + position_;
  auto const [end, error] = std::from_chars(begin, text_.data() + text_.size(), out);
  if (error != std::errc() || end == begin) fail("expected a number below 2^64");
  position_ += static_cast<std::size_t>(end - begin);
  return out;
}

}  // namespace frugal::detail

namespace frugal {

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
