// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

// printf and streams follow the locale of the program: a comma for the point breaks JSON and SVG.
namespace frugal::detail {

/// A number with so many digits after the point, in any locale.
std::string fixed(double number, int digits);

/// The same, with more digits where a smaller number would otherwise show fewer than two: 0.0000024
/// and not 0.00000. Twelve digits at most.
std::string fixed_small(double number, int digits);

/// "1 epoch", "2 epochs".
inline std::string count_text(std::uint64_t count, std::string const& of) {
  return std::to_string(count) + ' ' + of + (count == 1 ? "" : "s");
}

/// Fixed notation without trailing zeros: "20", "0.5".
std::string fixed_short(double number, int digits);

/// A number with at most so many significant digits, as %g prints it in the C locale.
std::string general(double number, int digits);

/// The shortest digits that read back as the same number.
std::string shortest_text(double number);

/// The same, and whole numbers without an exponent: "0.1", "1000000".
std::string exact_text(double number);

/// A number without a decimal point, "9995e-4", for a library that reads it by a locale that is not known:
/// every locale reads the same number. Finite numbers only; of the shortest text that has all bits.
std::string without_point(double number);

/// 1234567 as 1,234,567.
std::string grouped(std::uint64_t number);

inline std::string percent_of(std::uint64_t part, std::uint64_t of) {
  return of == 0 ? "0%" : fixed(100 * static_cast<double>(part) / static_cast<double>(of), 2) + "%";
}

}  // namespace frugal::detail

#ifndef FRUGAL_COMPILED
#include <frugal/base/number_text.ipp>
#endif
