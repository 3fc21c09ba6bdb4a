// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/cluster/agreement/same_run.hpp>

#include <frugal/error.hpp>
#include <frugal/inline.hpp>

#include <ATen/ATen.h>

#include <algorithm>
#include <cstdint>

namespace frugal::detail {

FRUGAL_INLINE std::vector<std::string> gather_texts(Communicator& all, std::string const& mine,
                                                    char const* what) {
  // The length and the beginning, in one message of one size; then what is left of the longest.
  constexpr std::int64_t word = sizeof(std::int64_t), begin = ControlFrame::room() - word;
  auto const part_of = [](std::string const& text, std::int64_t from, char* to, std::int64_t most) {
    auto const length = static_cast<std::int64_t>(text.size());
    if (from < length) {
      std::memcpy(to, text.data() + from, static_cast<std::size_t>(std::min(most, length - from)));
    }
  };
  auto const length = static_cast<std::int64_t>(mine.size());
  at::Tensor const first = at::zeros({word + begin}, at::kByte);
  auto* const own = static_cast<char*>(first.mutable_data_ptr());
  std::memcpy(own, &length, word);
  part_of(mine, 0, own + word, begin);
  at::Tensor const firsts = all.gather(first, what);
  std::vector<std::int64_t> lengths;
  for (std::int64_t rank = 0; rank < all.size(); ++rank) {
    std::int64_t one = 0;
    std::memcpy(&one, firsts[rank].const_data_ptr(), word);
    lengths.push_back(one);
  }
  std::int64_t const longest = *std::ranges::max_element(lengths) - begin;
  at::Tensor rests;
  if (longest > 0) {
    at::Tensor const rest = at::zeros({longest}, at::kByte);
    part_of(mine, begin, static_cast<char*>(rest.mutable_data_ptr()), longest);
    rests = all.gather(rest, what);
  }
  std::vector<std::string> texts;
  for (std::int64_t rank = 0; rank < all.size(); ++rank) {
    std::int64_t const whole = lengths[static_cast<std::size_t>(rank)];
    at::Tensor const row = firsts[rank];
    std::string text(static_cast<char const*>(row.const_data_ptr()) + word,
                     static_cast<std::size_t>(std::min(whole, begin)));
    if (whole > begin) {
      at::Tensor const rest = rests[rank];
      text.append(static_cast<char const*>(rest.const_data_ptr()),
                  static_cast<std::size_t>(whole - begin));
    }
    texts.push_back(std::move(text));
  }
  return texts;
}

FRUGAL_INLINE void require_same_run(
    Communicator& all, std::vector<std::pair<std::string, std::string>> const& values) {
  std::string mine = std::to_string(values.size()) + '\0';
  for (auto const& [name, value] : values) mine += value + '\0';
  std::vector<std::string> const texts = gather_texts(all, mine, "the comparison of the runs");
  auto const value_of = [](std::string const& text, std::size_t which) {
    std::size_t begin = 0;
    for (std::size_t i = 0; i < which && begin < text.size(); ++i) {
      begin = std::min(text.find('\0', begin), text.size() - 1) + 1;
    }
    return text.substr(begin, text.find('\0', begin) - begin);
  };
  // The number of values comes first: where it differs all ranks find that, whatever they have.
  for (std::size_t which = 0; which < values.size() + 1; ++which) {
    std::string const first = value_of(texts.front(), which);
    for (std::size_t rank = 1; rank < texts.size(); ++rank) {
      std::string const other = value_of(texts[rank], which);
      if (other == first) continue;
      std::string const name = which == 0 ? "the number of settings" : values[which - 1].first;
      auto const named = [&](std::size_t which_rank) {
        return "rank " + std::to_string(all.rank_in_world(static_cast<int>(which_rank)));
      };
      throw ClusterError({.what = "ranks train different runs: " + name + " of " + named(rank) +
                                  " is '" + other + "', and of " + named(0) + " '" + first + "'",
                          .where = all.hosts()[rank],
                          .why = "their gradients would be added up, and mean nothing",
                          .fix = "Start all ranks with the same program, settings and data."});
    }
  }
}

}  // namespace frugal::detail
