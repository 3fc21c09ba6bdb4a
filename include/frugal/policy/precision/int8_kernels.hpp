// SPDX-License-Identifier: Apache-2.0
// Shapes: R rows and C columns of a matrix in row-major order.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>

namespace frugal::detail {

// Quantizing by LibTorch's operators takes five passes over memory, longer than the products. These
// kernels take one, or two by columns. Sixteen numbers at a time: one register of AVX-512, two of
// AVX2.
inline constexpr std::int64_t int8_lanes = 16;
using Int8Floats [[gnu::vector_size(64)]] = float;
using Int8Ints [[gnu::vector_size(64)]] = std::int32_t;

/// The divisor's inverse, and the scale, of numbers with this largest magnitude.
struct Int8Scale {
  float scale, inverse;
  explicit Int8Scale(float most)
      : scale(most / 127), inverse(1 / (scale < 1e-12F ? 1e-12F : scale)) {}
};

/// Rounds to nearest, ties to even, in -128 to 127: in a float of 1.5 * 2^23 the last bit is 1.
/// The comparison, which is false of NaN, also keeps product and sum from becoming one operation,
/// which would round once where torch rounds twice.
[[gnu::always_inline]] inline std::int8_t round_to_int8(float number, float inverse) {
  float quotient = number * inverse;
  quotient = quotient > -128 ? quotient : -128;
  return static_cast<std::int8_t>(std::bit_cast<std::int32_t>(quotient + 12582912.0F));
}
/// The last byte of each number.
[[gnu::always_inline]] inline void store_bytes(Int8Ints const& bits, std::int8_t* out) {
#if defined(__clang__)
  using Bytes [[gnu::vector_size(16)]] = std::int8_t;
  Bytes const bytes = __builtin_convertvector(bits, Bytes);
#else
  // g++ 12 converts a vector one element after the other, and a loop by whole registers.
  std::int32_t lanes[int8_lanes];
  std::int8_t bytes[int8_lanes];
  std::memcpy(lanes, &bits, sizeof lanes);
  for (int lane = 0; lane < int8_lanes; ++lane) bytes[lane] = static_cast<std::int8_t>(lanes[lane]);
#endif
  std::memcpy(out, &bytes, sizeof bytes);
}
[[gnu::always_inline]] inline void round_to_int8(float const* in, Int8Floats const& inverse,
                                                 std::int8_t* out) {
  Int8Floats number;
  std::memcpy(&number, in, sizeof number);
  number *= inverse;
  number = number > -128 ? number : Int8Floats{} - 128;
  number += 12582912.0F;
  Int8Ints bits;
  std::memcpy(&bits, &number, sizeof bits);
  store_bytes(bits, out);
}

/// The order of magnitudes is that of their bits, where NaN is the largest.
inline constexpr std::int32_t int8_magnitude = 0x7fffffff;
[[gnu::always_inline]] inline void raise_most(float const* in, Int8Ints& most) {
  Int8Ints bits;
  std::memcpy(&bits, in, sizeof bits);
  bits &= int8_magnitude;
  most = bits > most ? bits : most;
}
[[gnu::always_inline]] inline void raise_most(float in, std::int32_t& most) {
  most = std::max(most, std::bit_cast<std::int32_t>(in) & int8_magnitude);
}

/// Quantizes each row by its largest magnitude.
struct QuantizeRows {
  [[gnu::always_inline]] static void run(float const* in, std::int64_t rows, std::int64_t columns,
                                         std::int8_t* out, float* scales) {
    for (std::int64_t row = 0; row < rows; ++row, in += columns, out += columns) {
      Int8Ints lanes = {};
      std::int32_t most = 0;
      std::int64_t at = 0;
      for (; at + int8_lanes <= columns; at += int8_lanes) raise_most(in + at, lanes);
      for (; at < columns; ++at) raise_most(in[at], most);
      for (int lane = 0; lane < int8_lanes; ++lane) most = std::max(most, lanes[lane]);
      Int8Scale const of(std::bit_cast<float>(most));
      scales[row] = of.scale;
      Int8Floats const inverse = Int8Floats{} + of.inverse;
      for (at = 0; at + int8_lanes <= columns; at += int8_lanes) {
        round_to_int8(in + at, inverse, out + at);
      }
      for (; at < columns; ++at) out[at] = round_to_int8(in[at], of.inverse);
    }
  }
};

/// Quantizes `width` columns of a matrix with rows of `columns`, each by its largest magnitude. The
/// result has the layout of the matrix. `scales` and `work` have room for `width` numbers.
struct QuantizeColumns {
  [[gnu::always_inline]] static void run(float const* in, std::int64_t rows, std::int64_t columns,
                                         std::int64_t width, std::int8_t* out, float* scales,
                                         float* work) {
    auto* const most = work;
    std::memset(most, 0, static_cast<std::size_t>(width) * sizeof(float));
    for (std::int64_t row = 0; row < rows; ++row) {
      float const* const from = in + row * columns;
      std::int64_t at = 0;
      for (; at + int8_lanes <= width; at += int8_lanes) {
        Int8Ints lanes;
        std::memcpy(&lanes, most + at, sizeof lanes);
        raise_most(from + at, lanes);
        std::memcpy(most + at, &lanes, sizeof lanes);
      }
      for (; at < width; ++at) {
        auto highest = std::bit_cast<std::int32_t>(most[at]);
        raise_most(from[at], highest);
        most[at] = std::bit_cast<float>(highest);
      }
    }
    float* const inverses = work;
    for (std::int64_t at = 0; at < width; ++at) {
      Int8Scale const of(most[at]);
      scales[at] = of.scale;
      inverses[at] = of.inverse;
    }
    for (std::int64_t row = 0; row < rows; ++row) {
      float const* const from = in + row * columns;
      std::int8_t* const to = out + row * columns;
      std::int64_t at = 0;
      for (; at + int8_lanes <= width; at += int8_lanes) {
        Int8Floats inverse;
        std::memcpy(&inverse, inverses + at, sizeof inverse);
        round_to_int8(from + at, inverse, to + at);
      }
      for (; at < width; ++at) to[at] = round_to_int8(from[at], inverses[at]);
    }
  }
};

/// Puts numbers on a given grid of 256 steps of which `zero` is 0, clips the others, and adds
/// `shift`. The scale of a row with a NaN becomes NaN.
struct QuantizeOnGrid {
  [[gnu::always_inline]] static void run(float const* in, std::int64_t rows, std::int64_t columns,
                                         float inverse, float zero, std::int32_t shift,
                                         std::int8_t* out, float* scales) {
    float const low = -zero;
    float const high = 255 - zero;
    for (std::int64_t row = 0; row < rows; ++row, in += columns, out += columns) {
      Int8Ints unordered = {};
      bool bad = false;
      std::int64_t at = 0;
      for (; at + int8_lanes <= columns; at += int8_lanes) {
        Int8Floats number;
        std::memcpy(&number, in + at, sizeof number);
        unordered |= number != number;
        number *= inverse;
        number = number > low ? number : Int8Floats{} + low;
        number = number < high ? number : Int8Floats{} + high;
        number += 12582912.0F;
        Int8Ints bits;
        std::memcpy(&bits, &number, sizeof bits);
        bits += shift;
        store_bytes(bits, out + at);
      }
      for (; at < columns; ++at) {
        bad = bad || in[at] != in[at];
        float number = in[at] * inverse;
        number = number > low ? number : low;
        number = number < high ? number : high;
        out[at] =
            static_cast<std::int8_t>(std::bit_cast<std::int32_t>(number + 12582912.0F) + shift);
      }
      for (int lane = 0; lane < int8_lanes; ++lane) bad = bad || unordered[lane] != 0;
      if (bad) scales[row] = std::numeric_limits<float>::quiet_NaN();
    }
  }
};

/// Turns the integers of a product into its numbers, where they are: less the offset of their row,
/// or of their column. Either may be null.
struct ScaleProduct {
  [[gnu::always_inline]] static void run(void* product, std::int64_t rows, std::int64_t columns,
                                         float const* of_rows, float const* of_columns,
                                         std::int32_t const* row_offsets,
                                         std::int32_t const* offsets) {
    auto* at = static_cast<std::byte*>(product);
    for (std::int64_t row = 0; row < rows; ++row) {
      std::int32_t const less = row_offsets != nullptr ? row_offsets[row] : 0;
      Int8Floats const of_row = Int8Floats{} + of_rows[row];
      std::int64_t column = 0;
      for (; column + int8_lanes <= columns; column += int8_lanes, at += sizeof(Int8Ints)) {
        Int8Ints sums;
        Int8Floats of_column;
        std::memcpy(&sums, at, sizeof sums);
        std::memcpy(&of_column, of_columns + column, sizeof of_column);
        sums -= less;
        if (offsets != nullptr) {
          Int8Ints offset;
          std::memcpy(&offset, offsets + column, sizeof offset);
          sums -= offset;
        }
        Int8Floats const scaled = __builtin_convertvector(sums, Int8Floats) * of_column * of_row;
        std::memcpy(at, &scaled, sizeof scaled);
      }
      for (; column < columns; ++column, at += sizeof(float)) {
        std::int32_t sum;
        std::memcpy(&sum, at, sizeof sum);
        sum -= less;
        if (offsets != nullptr) sum -= offsets[column];
        float const scaled = static_cast<float>(sum) * of_columns[column] * of_rows[row];
        std::memcpy(at, &scaled, sizeof scaled);
      }
    }
  }
};

#if defined(__x86_64__)
template <class Kernel, class... Args>
[[gnu::target("avx512f,avx512bw,avx512vl")]] void run_avx512(Args... args) {
  Kernel::run(args...);
}
template <class Kernel, class... Args>
[[gnu::target("avx2")]] void run_avx2(Args... args) {
  Kernel::run(args...);
}
#endif

/// A kernel in the widest instructions of this CPU, whatever the program was compiled for.
template <class Kernel, class... Args>
void run_widest(Args... args) {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx512bw") != 0 && __builtin_cpu_supports("avx512vl") != 0) {
    return run_avx512<Kernel>(args...);
  }
  if (__builtin_cpu_supports("avx2") != 0) return run_avx2<Kernel>(args...);
#endif
  Kernel::run(args...);
}

}  // namespace frugal::detail
