// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/grad_mode.h>
#include <c10/util/Exception.h>

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include <frugal/checkpoint/checkpoint.hpp>
#include <frugal/checkpoint/dtype.hpp>
#include <frugal/checkpoint/tensor_files.hpp>
#include <frugal/core/run/counters.hpp>
#include <frugal/core/state/state_dict.hpp>
#include <frugal/core/state/tensor_part.hpp>
#include <frugal/policy/checkpoint/saved_recipe.hpp>
#include <frugal/policy/checkpoint/state_file.hpp>
#include <frugal/policy/finite_state.hpp>
#include <frugal/policy/kinds.hpp>

namespace frugal {
struct RunState;
}  // namespace frugal

namespace frugal::detail {

/// Throws the first difference between a module and a file of weights.
void require_same_tensors(torch::nn::Module& module, TensorFiles const& file, bool half,
                          TensorPlaces const& places);

/// Keeps only the generators of a run on `device`. Returns the kind of device of the saved run.
std::string forget_other_generators(StateDict& memory, c10::Device device);

/// Keeps what States of this process have saved, of a run whose processes have different layers.
void forget_elsewhere(StateDict& memory, TensorPlaces const& places);

/// Throws at the first slot that differs and must not.
void require_recipe(std::vector<SlotChange> const& slots, RecipeRules const& rules,
                    std::filesystem::path const& where);

/// For a value of the checkpoint that this run lacks, or the reverse.
[[noreturn]] void refuse_value(std::filesystem::path const& where, std::string_view path,
                               std::string what, std::string const& why);

std::string joined(std::vector<std::string> const& parts);

StateFile read_state(SavedCheckpoint const& checkpoint);

/// FormatError for generators' states that LibTorch would not take, before anything is changed.
void require_generators(StateDict const& memory, c10::Device device,
                        std::filesystem::path const& where);

at::Tensor state_tensor(TensorFiles const& file, TensorView const& view);

/// Takes the averages that the state has out of their file.
void read_averages(StateDict& memory, TensorFiles const& file);

/// FormatError for counters that no run reaches. Beyond these an epoch would be the last of all
/// epochs, and a count could overflow.
void require_counters(Counters const& counters, std::filesystem::path const& where);

/// Why a run must not resume a checkpoint: the first of its tensors that is not finite and has to
/// be. Empty if there is none. No save writes such a tensor; another program may.
std::string first_bad_in(SavedCheckpoint const& checkpoint, FiniteState const& finite);

/// The result of a resume.
struct LoadedRun {
  double seconds = 0;                      ///< of training, until the checkpoint
  std::vector<std::string> differences{};  ///< of the recipe and of the data, in words
};

/// Restores the run of a checkpoint. If it belongs to another run and `rules` do not allow that, a
/// StateError names the first difference. The module does not change before everything fits.
///
/// The checkpoint may come from another kind of device and have that one's generator: the run
/// continues, with a warning. `moves`: StartOn has announced the move, and there is no advice.
LoadedRun load_run(RunState& run, Slots const& recipe, RecipeRules const& rules, bool moves,
                   SavedCheckpoint const& checkpoint);

}  // namespace frugal::detail

#ifndef FRUGAL_COMPILED
#include <frugal/policy/checkpoint/resume.ipp>
#endif
