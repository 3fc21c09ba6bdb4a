// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <frugal/core/libtorch/parameters.hpp>
#include <frugal/core/state/save_board.hpp>
#include <frugal/core/state/tensor_part.hpp>

namespace frugal {

/// What policies have asked of a run in its first event (FitBegin).
class RunSetUp {
 public:
  using NamedValue = std::pair<std::string, std::string>;

  /// A setting of a policy that must be alike in all processes that train together.
  void compare(std::string name, std::string value) {
    compared_.emplace_back(std::move(name), std::move(value));
  }
  std::vector<NamedValue> const& compared() const { return compared_; }

  /// Validation batches to try before the first step.
  void try_validation(std::size_t batches) { validation_trial_ = batches; }
  std::size_t take_validation_trial() { return std::exchange(validation_trial_, 0); }

  /// Called when a resumed run is restored, or knows that it is not resumed.
  void when_restored(std::function<void()> then) { when_restored_.push_back(std::move(then)); }
  void restored() {
    for (auto const& then : std::exchange(when_restored_, {})) then();
  }

  /// A file that must be durable before a checkpoint is.
  void writes_to(std::filesystem::path file) { files_.push_back(std::move(file)); }
  std::vector<std::filesystem::path> const& files() const { return files_; }

  /// The lock of Settings::run_dir, once a policy writes there; as long as the run lives.
  void hold_folder(std::shared_ptr<void> lock) { folder_lock_ = std::move(lock); }
  std::shared_ptr<void> const& folder_lock() const { return folder_lock_; }

 private:
  std::vector<NamedValue> compared_;
  std::size_t validation_trial_ = 0;
  std::vector<std::function<void()>> when_restored_;
  std::vector<std::filesystem::path> files_;
  std::shared_ptr<void> folder_lock_;
};

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
