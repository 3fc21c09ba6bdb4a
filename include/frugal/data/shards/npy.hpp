// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/checkpoint/dtype.hpp>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
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

  NpyArray read();

  [[noreturn]] void fail(std::string why) const;

 private:
  char peek() const { return position_ < text_.size() ? text_[position_] : '\0'; }
  void skip() {
    while (peek() == ' ' || peek() == '\n' || peek() == '\t') ++position_;
  }
  bool take(char c);
  void expect(char c) {
    if (!take(c)) fail(std::string("expected '") + c + "'");
  }
  bool word(std::string_view text);
  std::string_view quoted();
  Dtype type();
  std::uint64_t number();

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
NpyArray read_npy(std::span<std::byte const> bytes, std::string const& where);

/// The header that np.save writes before the elements.
std::string npy_header(Dtype dtype, std::span<std::uint64_t const> shape);

}  // namespace frugal

#ifndef FRUGAL_COMPILED
#include <frugal/data/shards/npy.ipp>
#endif
