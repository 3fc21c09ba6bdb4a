// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include <frugal/checkpoint/commit.hpp>
#include <frugal/checkpoint/dtype.hpp>
#include <frugal/checkpoint/run_directory.hpp>
#include <frugal/checkpoint/safetensors_writer.hpp>
#include <frugal/core/run/run_snapshot.hpp>
#include <frugal/core/state/state_dict.hpp>
#include <frugal/core/state/state_writer.hpp>
#include <frugal/core/state/tensor_part.hpp>
#include <frugal/error.hpp>
#include <frugal/policy/checkpoint/saved_recipe.hpp>
#include <frugal/policy/checkpoint/shared_save.hpp>
#include <frugal/policy/checkpoint/state_file.hpp>
#include <frugal/policy/finite_state.hpp>

namespace frugal {
struct RunState;
}  // namespace frugal

namespace frugal::detail {

/// The complete state of a run at one moment, in host memory: the contents of a checkpoint, or this
/// process's share of it. Kept between saves, so that only the first one allocates; not where processes
/// have parts.
///
/// Nothing that is not finite is written: its resumed run could only end again, and the checkpoints
/// before it would be pruned.
class StoredSnapshot {
 public:
  /// `weights`: a type of 16 bits for the module's floating-point tensors, or Undefined.
  StoredSnapshot(CopyTarget copies, at::ScalarType weights) : copies_(copies), weights_(weights) {}

  /// Call it when the fit begins, before a resume.
  void begin(RunState const& run);
  FiniteState const& finite() const { return finite_; }

  /// Copies the run, with the policies in its slots. When this returns, the step may continue.
  void take(RunState& run, Slots const& recipe);

  /// The checkpoint that the run has resumed from has metrics.
  void resumed_judged(std::uint64_t step) { judged_step_ = step; }

  /// Writes the copy, in any thread; no step has to wait. NonFiniteWeightsError, or WeightRangeError,
  /// before anything is written.
  SavedCheckpoint write(RunDirectory& directory);

  /// Likewise with the other processes of the run, in the first one.
  SavedCheckpoint write(RunDirectory& directory, SharedSave& shared);
  /// In a process that is not the first.
  void write(SharedSave& shared);

 private:
  /// The tensors of one file.
  struct TensorFile {
    std::string name;
    std::vector<TensorView> tensors{};
    SafetensorsWriter::Metadata about{};

    SafetensorsWriter writer() const;
  };

  void begin_write(RunDirectory const& directory) const;

  std::vector<TensorFile> files() const;

  /// What is not in the others' files, and the manifest.
  SavedCheckpoint finish(RunDirectory& directory, CheckpointWriter& writer);

  std::vector<PartReport::Part> write_part(std::filesystem::path const& folder,
                                           unsigned rank) const;

  /// Makes the State that of all processes, if these have different layers.
  void join(std::vector<PartReport> const& reports);

  /// StoreError unless the files of all processes have each tensor of the state once.
  void require_each_once(std::vector<PartReport> const& reports) const;

  /// Makes the files of all processes those of the checkpoint: one file, if only one process has tensors
  /// of this kind, and otherwise several and their index.
  static void seal(CheckpointWriter& writer, std::vector<PartReport> const& reports);

  /// The averages' paths in the state, by the names of the module's tensors: both names of a tied
  /// tensor have its average.
  void note_averages(RunState& run);

  void require_finite() const;

  CopyTarget copies_;
  at::ScalarType weights_;
  RunSnapshot state_;
  StateFile header_;
  FiniteState finite_;
  LossError::Window at_{};  ///< the moment; which window has made a weight bad is not known
  std::vector<std::filesystem::path> files_;
  std::map<std::string, double> metrics_;
  std::optional<std::uint64_t> judged_step_;  ///< of the last save with metrics
  bool replaces_ = true;
  bool has_parts_of_others_ = false;
  TensorPlaces places_;  ///< of the module's tensors, if processes have different ones
  std::vector<std::string> compared_;  ///< then: scopes of States that all have alike
  std::string fixed_;                  ///< the identity of the tensors that are not in it
  std::map<std::string, std::string> averages_;
  bool validated_ = false;  ///< validations measure the averages
};

// The State of a run whose processes have different layers: each has values of its own layers, which the
// first process puts together.

/// By scope: a hash of what all processes must have alike, because it belongs to no layer. `scopes`: of
/// policies.
std::map<std::string, std::uint64_t> common_hashes(StateDict const& run, TensorPlaces const& places,
                                                   std::vector<std::string> const& scopes);

/// In a process that is not the first: the values of its own layers go into the report, and hashes of
/// what all have. `run` keeps the tensors of its layers.
void report_own_state(StateDict& run, TensorPlaces const& places,
                      std::vector<std::string> const& scopes, PartReport& report);

/// In the first process: adds the values of the others' layers. Returns the paths of their tensors.
/// StateError if something differs that belongs to no layer.
std::vector<std::string> join_states(StateDict& run, TensorPlaces const& places,
                                     std::vector<std::string> const& scopes,
                                     std::vector<PartReport> const& reports);

/// Environment outside of a run that change its bits or its data, by name. A checkpoint records
/// the known ones, and a resume under others reports that.
using Environment = std::map<std::string, std::uint64_t>;

/// Call it in the training thread: OpenMP has a thread count for each.
Environment environment_of(RunState const& run);

/// Reports each difference that matters. A source may not know how long an epoch is.
void compare_environments(RunState& run, Environment const& saved);

}  // namespace frugal::detail

#ifndef FRUGAL_COMPILED
#include <frugal/policy/checkpoint/snapshot.ipp>
#endif
