// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>
#include <variant>
#include <vector>

#include <frugal/cluster/agreement/same_run.hpp>
#include <frugal/cluster/communicator.hpp>
#include <frugal/core/libtorch/finite.hpp>
#include <frugal/core/run/counters.hpp>
#include <frugal/core/state/state_dict.hpp>
#include <frugal/policy/checkpoint/state_file.hpp>

namespace frugal::detail {

/// An empty tensor in host memory over a file without a name in `folder`: the kernel writes its pages
/// out where memory is short, so that a save of many processes' tensors needs the disk rather than
/// memory. Small ones, and all where the file cannot be had, are plain memory.
at::Tensor scratch_tensor(std::filesystem::path const& folder,
                          std::vector<std::int64_t> const& sizes, at::ScalarType type,
                          std::size_t least = std::size_t{1} << 20);

/// What a row of a checkpoint needs to know of a tensor: its type and its sizes, as a text.
struct TensorShape {
  at::ScalarType type = at::kFloat;
  std::vector<std::int64_t> sizes{};

  static std::string text_of(at::Tensor const& tensor) {
    std::string text = std::to_string(static_cast<int>(tensor.scalar_type()));
    for (std::int64_t const size : tensor.sizes()) text += ' ' + std::to_string(size);
    return text;
  }
  static TensorShape of_text(std::string const& text);
};

[[noreturn]] void refuse_row(std::size_t rank, std::string const& tensor, Counters const& at);

/// Gives the first process what the others hold for themselves, so that one checkpoint has all of it:
/// first the numbers of all, then one tensor after the other. All processes call it at the same
/// moment, for a save.
///
/// `mine`: what this process holds, with its tensors where they are. In the first process
/// `value(rank, path, value)` and `tensor(rank, path, tensor)` are called for each of the others;
/// `value` is not for what says only that there is a tensor.
/// NonFiniteWeightsError, in all processes, if one of them holds a number that no checkpoint takes.
///
/// The first process receives tensors into files without a name in `folder`, and not into memory.
template <class OnValue, class OnTensor>
void collect_rows(Communicator& all, StateDict const& mine, Counters const& at,
                  std::filesystem::path const& folder, OnValue&& value, OnTensor&& tensor) {
  at::NoGradGuard const no_gradients;
  constexpr char const* what = "the state of a process for a checkpoint";
  static constexpr char const* bad_key = "bad";
  static constexpr char const* values_key = "value ";
  static constexpr char const* tensors_key = "tensor ";
  StateFile sent;
  for (auto const& [path, each] : mine.values) sent.values.emplace(values_key + path, each);
  std::vector<std::string> paths;
  std::vector<at::Tensor> tensors;
  for (auto const& [path, each] : mine.tensors) {
    sent.values.emplace(tensors_key + path, TensorShape::text_of(each));
    paths.push_back(path);
    tensors.push_back(each);
  }
  if (auto const bad = first_non_finite(tensors)) sent.values.emplace(bad_key, paths[*bad]);

  std::vector<std::string> const texts = gather_texts(all, sent.text(), what);
  std::vector<StateFile> rows;
  for (std::size_t rank = 0; rank < texts.size(); ++rank) {
    rows.push_back(StateFile::parse(texts[rank], "rank " + std::to_string(rank)));
    auto const bad = rows.back().values.find(bad_key);
    if (bad == rows.back().values.end()) continue;
    refuse_row(rank, std::get<std::string>(bad->second), at);
  }
  if (all.rank() != 0) {
    for (at::Tensor const& each : tensors) {
      if (each.numel() != 0) all.send_to_first(each.cpu().contiguous(), what);
    }
    return;
  }
  for (std::size_t rank = 1; rank < rows.size(); ++rank) {
    for (auto const& [key, each] : rows[rank].values) {
      if (!key.starts_with(values_key)) continue;
      std::string const path = key.substr(std::string(values_key).size());
      if (!rows[rank].values.contains(tensors_key + path)) value(rank, path, each);
    }
    for (auto const& [key, each] : rows[rank].values) {
      if (!key.starts_with(tensors_key)) continue;
      TensorShape const shape = TensorShape::of_text(std::get<std::string>(each));
      at::Tensor const received = scratch_tensor(folder, shape.sizes, shape.type);
      if (received.numel() != 0) all.receive(received, static_cast<int>(rank), what);
      tensor(rank, key.substr(std::string(tensors_key).size()), received);
    }
  }
}

}  // namespace frugal::detail

#ifndef FRUGAL_COMPILED
#include <frugal/cluster/local_steps/rank_rows.ipp>
#endif
