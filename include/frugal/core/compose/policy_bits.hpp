// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <utility>

#include <frugal/core/compose/policy.hpp>

// Sets of a recipe's policies as one bit for each, in their order. Recipes with the same set share what is
// instantiated for it.
namespace frugal::detail {

constexpr std::uint64_t bits_of(std::initializer_list<bool> set) {
  std::uint64_t bits = 0;
  std::size_t i = 0;
  for (bool const each : set) bits |= std::uint64_t{each} << i++;
  return bits;
}

/// The policies that listen to a hook, by its number.
constexpr std::uint64_t subscribers_of(std::span<PolicyInfo const> infos, std::size_t hook) {
  std::uint64_t bits = 0;
  for (std::size_t i = 0; i < infos.size(); ++i) {
    bits |= std::uint64_t{(infos[i].listens >> hook) & 1U} << i;
  }
  return bits;
}

/// The position of set bit number `n`, counted from 0.
constexpr std::size_t nth_bit(std::uint64_t bits, std::size_t n) {
  while (n-- != 0) bits &= bits - 1;
  return static_cast<std::size_t>(std::countr_zero(bits));
}

template <std::uint64_t Bits, class Numbers>
struct positions_of;
template <std::uint64_t Bits, std::size_t... Ns>
struct positions_of<Bits, std::index_sequence<Ns...>> {
  using type = std::index_sequence<nth_bit(Bits, Ns)...>;
};

/// The positions of the set bits, as an index_sequence.
template <std::uint64_t Bits>
using set_bits = typename positions_of<Bits, std::make_index_sequence<std::popcount(Bits)>>::type;

}  // namespace frugal::detail
