// SPDX-License-Identifier: Apache-2.0
// torch-free
#include <doctest/doctest.h>

#include <frugal/checkpoint/dtype.hpp>

#include <array>
#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

namespace frugal_test::store_dtype {

using frugal::Dtype;
using frugal::tensor_bits;
using Shape = std::vector<std::uint64_t>;

TEST_CASE("every type has the name and the width that the safetensors format gives it") {
  // From `Dtype` and `bitsize` in safetensors/src/tensor.rs of the format's repository.
  std::vector<std::pair<std::string_view, unsigned>> const expected{
      {"BOOL", 8}, {"F4", 4},      {"F6_E2M3", 6},     {"F6_E3M2", 6}, {"U8", 8},
      {"I8", 8},   {"F8_E5M2", 8}, {"F8_E4M3", 8},     {"F8_E8M0", 8}, {"F8_E4M3FNUZ", 8},
      {"I16", 16}, {"U16", 16},    {"F8_E5M2FNUZ", 8}, {"F16", 16},    {"BF16", 16},
      {"I32", 32}, {"U32", 32},    {"F32", 32},        {"C64", 64},    {"F64", 64},
      {"I64", 64}, {"U64", 64}};
  for (auto const& [name, bits] : expected) {
    auto const dtype = frugal::dtype_of(name);
    REQUIRE(dtype.has_value());
    CHECK(frugal::dtype_name(*dtype) == name);
    CHECK(frugal::dtype_bits(*dtype) == bits);
  }
}

TEST_CASE("each enumerator is the type with its name") {
  CHECK(frugal::dtype_of("BOOL") == Dtype::boolean);
  CHECK(frugal::dtype_of("F4") == Dtype::f4);
  CHECK(frugal::dtype_of("F6_E2M3") == Dtype::f6_e2m3);
  CHECK(frugal::dtype_of("F6_E3M2") == Dtype::f6_e3m2);
  CHECK(frugal::dtype_of("U8") == Dtype::u8);
  CHECK(frugal::dtype_of("I8") == Dtype::i8);
  CHECK(frugal::dtype_of("F8_E5M2") == Dtype::f8_e5m2);
  CHECK(frugal::dtype_of("F8_E4M3") == Dtype::f8_e4m3);
  CHECK(frugal::dtype_of("F8_E8M0") == Dtype::f8_e8m0);
  CHECK(frugal::dtype_of("F8_E4M3FNUZ") == Dtype::f8_e4m3fnuz);
  CHECK(frugal::dtype_of("F8_E5M2FNUZ") == Dtype::f8_e5m2fnuz);
  CHECK(frugal::dtype_of("I16") == Dtype::i16);
  CHECK(frugal::dtype_of("U16") == Dtype::u16);
  CHECK(frugal::dtype_of("F16") == Dtype::f16);
  CHECK(frugal::dtype_of("BF16") == Dtype::bf16);
  CHECK(frugal::dtype_of("I32") == Dtype::i32);
  CHECK(frugal::dtype_of("U32") == Dtype::u32);
  CHECK(frugal::dtype_of("F32") == Dtype::f32);
  CHECK(frugal::dtype_of("C64") == Dtype::c64);
  CHECK(frugal::dtype_of("F64") == Dtype::f64);
  CHECK(frugal::dtype_of("I64") == Dtype::i64);
  CHECK(frugal::dtype_of("U64") == Dtype::u64);
}

TEST_CASE("unknown names are no types, however similar") {
  for (char const* name : {"", "f32", "F32 ", "F", "F320", "FLOAT", "U128", "BOOLEAN"}) {
    CHECK_FALSE(frugal::dtype_of(name).has_value());
  }
}

TEST_CASE("types are ordered by their alignment, so that sorting by them aligns a file") {
  for (int i = 1; i <= static_cast<int>(Dtype::u64); ++i) {
    CHECK(frugal::dtype_alignment(static_cast<Dtype>(i - 1)) <=
          frugal::dtype_alignment(static_cast<Dtype>(i)));
  }
}

TEST_CASE("packed types are aligned to bytes, and complex numbers like their floats") {
  CHECK(frugal::dtype_alignment(Dtype::f4) == 1);
  CHECK(frugal::dtype_alignment(Dtype::f6_e2m3) == 1);
  CHECK(frugal::dtype_alignment(Dtype::bf16) == 2);
  CHECK(frugal::dtype_alignment(Dtype::c64) == 4);
  CHECK(frugal::dtype_alignment(Dtype::f64) == 8);
}

TEST_CASE("a tensor has the product of its extents, and a scalar one element") {
  CHECK(tensor_bits(Dtype::f32, Shape{2, 3}) == 192);
  CHECK(tensor_bits(Dtype::f64, Shape{}) == 64);
  CHECK(tensor_bits(Dtype::f4, Shape{3}) == 12);
  CHECK(tensor_bits(Dtype::u8, Shape{5, 0, 7}) == 0);
}

TEST_CASE("a product of extents beyond 64 bits is no size") {
  std::uint64_t const half = std::uint64_t{1} << 32;
  CHECK(tensor_bits(Dtype::u8, Shape{half, half}) == std::nullopt);
  CHECK(tensor_bits(Dtype::u8, Shape{std::uint64_t{1} << 61}) == std::nullopt);
  CHECK(tensor_bits(Dtype::u8, Shape{(std::uint64_t{1} << 61) - 1}) == ~std::uint64_t{0} - 7);
}

TEST_CASE("an extent of 0 excuses no overflow of the others, in any position") {
  std::uint64_t const half = std::uint64_t{1} << 32;
  CHECK(tensor_bits(Dtype::u8, Shape{0, half, half}) == std::nullopt);
  CHECK(tensor_bits(Dtype::u8, Shape{half, half, 0}) == std::nullopt);
}

}  // namespace frugal_test::store_dtype
