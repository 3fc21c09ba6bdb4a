// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/ATen.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include <frugal/cluster/communicator.hpp>
#include <frugal/error.hpp>

namespace frugal::detail {

/// The texts of all ranks.
inline std::vector<std::string> gather_texts(Communicator& all, std::string const& mine,
                                             char const* what) {
  at::Tensor const own_length = at::full({1}, static_cast<std::int64_t>(mine.size()), at::kLong);
  at::Tensor const lengths = all.gather(own_length, what);
  at::Tensor row =
      at::zeros({std::max<std::int64_t>(lengths.max().item<std::int64_t>(), 1)}, at::kByte);
  std::memcpy(row.mutable_data_ptr(), mine.data(), mine.size());
  at::Tensor const rows = all.gather(row, what);
  std::vector<std::string> texts;
  for (std::int64_t rank = 0; rank < all.size(); ++rank) {
    at::Tensor const one = rows[rank];
    texts.emplace_back(static_cast<char const*>(one.const_data_ptr()),
                       static_cast<std::size_t>(lengths[rank].item<std::int64_t>()));
  }
  return texts;
}

/// Throws ClusterError, in every rank, if a value differs between ranks. `values` has the same names
/// in all.
inline void require_same_run(Communicator& all,
                             std::vector<std::pair<std::string, std::string>> const& values) {
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
