// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include <frugal/policy/checkpoint/circumstances.hpp>
#include <frugal/policy/checkpoint/recipe_name.hpp>
#include <frugal/policy/checkpoint/state_file.hpp>
#include <frugal/policy/checkpoint/stored_tensor.hpp>
#include <frugal/run/any_run.hpp>
#include <frugal/state/snapshot.hpp>
#include <frugal/state/state_dict.hpp>
#include <frugal/state/state_writer.hpp>
#include <frugal/store/commit.hpp>
#include <frugal/store/run_directory.hpp>
#include <frugal/store/safetensors_writer.hpp>

namespace frugal::detail {

/// The complete state of a run at one moment, in host memory: the contents of a checkpoint. Kept
/// between saves, so that only the first one allocates.
class StoredSnapshot {
 public:
  /// `weights`: a type of 16 bits for the module's floating-point tensors, or Undefined.
  StoredSnapshot(Copies copies, at::ScalarType weights) : copies_(copies), weights_(weights) {}

  /// Copies the run, with the policies in its slots. When this returns, the step may continue.
  void take(AnyRun& run, Slots const& recipe) {
    state_.with_kept = true;
    state_.take(run, Part::good, copies_, weights_);
    StateWriter record(state_.run);
    record.scope("run", [&](auto& inner) { run.persist_advice(inner); });
    header_ = {.seed = run.settings.seed,
               .seconds = run.seconds(),
               .recipe = {},
               .weights = {},
               .circumstances = circumstances_of(run),
               .data = run.data,
               .values = {}};
    for (auto const& [slot, filling] : recipe) header_.recipe.emplace(slot, filling.name);
    if (auto const type = stored_type(weights_)) header_.weights = dtype_name(*type);
    step_ = run.counters.step;
    files_ = run.files;
    metrics_.clear();
    if (!run.validations.empty() && run.validations.back().step == step_) {
      for (auto const& [name, value] : run.validations.back().metrics) metrics_[name] = value;
    }
  }

  /// Writes the copy, in any thread; no step has to wait.
  SavedCheckpoint write(RunDirectory& directory) {
    directory.require_lock();  // before the files below are looked for where they no longer are
    // Files that the checkpoint refers to must be on disk before it is. A file that was moved, such
    // as a rotated log, is skipped: a resume does not rely on it.
    for (auto const& file : files_) {
      std::error_code ignored;
      if (std::filesystem::is_regular_file(file, ignored)) File::open(file).sync();
    }
    CheckpointWriter writer = directory.begin(step_);
    require_finite();
    add_tensors(writer, "model.safetensors", state_.module);
    add_tensors(writer, "optimizer.safetensors", state_.run);
    header_.values = std::move(state_.run.values);
    std::string const text = header_.text();
    writer.add(StateFile::file_name, [&](auto& sink) { sink.write(bytes_of(text)); }, text.size());
    return directory.commit(writer, metrics_);
  }

 private:
  static void add_tensors(CheckpointWriter& writer, std::string const& name,
                          StateDict const& memory) {
    std::vector<TensorView> views;
    views.reserve(memory.tensors.size());
    for (auto const& [path, tensor] : memory.tensors) views.push_back(stored_view(path, tensor));
    // "pt": the format key that tools of PyTorch's users look for.
    SafetensorsWriter const file(std::move(views), {{"format", "pt"}}, name);
    writer.add(name, [&](auto& sink) { file.write(sink); }, file.size());
  }

  /// A weight that FP16 cannot hold became infinite.
  void require_finite() const {
    if (weights_ != at::ScalarType::Half) return;
    for (auto const& [name, tensor] : state_.module.tensors) {
      if (!tensor.is_floating_point() || tensor.isfinite().all().item<bool>()) continue;
      throw StoreError({.what = "the weights do not fit into 16 bits",
                        .where = "tensor '" + name + "', step " + std::to_string(step_),
                        .why = "the largest FP16 number is 65504",
                        .fix = "Use WeightsIn<BF16>, which has the range of float."});
    }
  }

  Copies copies_;
  at::ScalarType weights_;
  Snapshot<AnyRun> state_;
  StateFile header_;
  std::uint64_t step_ = 0;
  std::vector<std::filesystem::path> files_;
  std::map<std::string, double> metrics_;
};

}  // namespace frugal::detail
