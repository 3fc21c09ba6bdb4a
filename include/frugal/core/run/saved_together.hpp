// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include <frugal/core/libtorch/parameters.hpp>
#include <frugal/core/state/save_board.hpp>
#include <frugal/core/state/tensor_part.hpp>
#include <frugal/core/state/tensor_places.hpp>

namespace frugal {

/// What a policy that trains in many processes leaves for the one that saves: which tensors are in parts, and
/// how the processes meet. Empty in one process.
struct SavedTogether {
  /// Where processes hold parts of the States' tensors: makes them whole for a checkpoint. Then all
  /// of them call persist() when one saves.
  WholeTensor whole_tensor{};
  /// Where processes hold parts of weights.
  HeldParts held_parts{};
  /// Where each process has other layers of the module. Then all of them call persist() when one saves.
  TensorPlaces places{};
  /// What they leave for each other while they write one checkpoint. Null: the first process writes all.
  std::shared_ptr<SaveBoard> board{};
  /// Set by the policy that saves: one of the processes that have parts of a tensor keeps and writes it,
  /// instead of the first one.
  bool side_by_side = false;
  /// Saves that the policy that saves has begun in this process.
  std::uint64_t begun = 0;
  /// While the result lives, this process reads or writes a checkpoint, and the others wait.
  std::function<std::shared_ptr<void>()> busy{};
  /// The text of the first process in all, although one may have ended.
  std::function<std::string(std::string const&)> first_says{};

  std::shared_ptr<void> is_busy() const { return busy ? busy() : nullptr; }
  /// Whether all processes take part when the run is saved, because each holds something that no other has.
  bool by_all() const { return whole_tensor || !places.empty(); }
};

}  // namespace frugal
