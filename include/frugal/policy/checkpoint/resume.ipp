// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/policy/checkpoint/resume.hpp>

#include <frugal/base/file.hpp>
#include <frugal/checkpoint/checkpoint.hpp>
#include <frugal/checkpoint/manifest.hpp>
#include <frugal/checkpoint/run_directory.hpp>
#include <frugal/core/libtorch/finite.hpp>
#include <frugal/core/libtorch/generators.hpp>
#include <frugal/core/run/run_state.hpp>
#include <frugal/core/state/cut_tensors.hpp>
#include <frugal/core/state/module_tensors.hpp>
#include <frugal/core/state/state_reader.hpp>
#include <frugal/error.hpp>
#include <frugal/inline.hpp>
#include <frugal/policy/checkpoint/find.hpp>
#include <frugal/policy/checkpoint/snapshot.hpp>
#include <frugal/policy/checkpoint/weights.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <iterator>
#include <optional>
#include <utility>

namespace frugal::detail {

FRUGAL_INLINE void require_same_tensors(torch::nn::Module& module, TensorFiles const& file,
                                        bool half, TensorPlaces const& places) {
  auto const saved_as = [&](std::string const& name) {
    auto const view = file.find(name);
    if (!view) refuse_checkpoint(file.name(), "it has no tensor '" + name + "'");
    return *view;
  };
  visit_tensors(module, [&](std::string const& name, at::Tensor const& tensor) {
    TensorView const view = saved_as(name);
    at::Tensor const saved = tensor_in_file(view);
    bool const same_type = saved.defined() && (saved.scalar_type() == tensor.scalar_type() ||
                                               (half && tensor.is_floating_point()));
    if (!same_type || saved.sizes() != whole_sizes(tensor)) {
      refuse_checkpoint(file.name(), "'" + name + "' is " +
                                         (saved.defined() ? type_and_shape(saved)
                                                          : std::string(dtype_name(view.dtype))) +
                                         " there and " + type_and_shape(tensor) + " here");
    }
  });
  // The process that has a tensor knows its type.
  for (auto const& [name, tensor] : places.tensors) {
    if (tensor.place != PlacedTensor::Place::elsewhere) continue;
    if (!std::ranges::equal(saved_as(name).shape, tensor.sizes, std::equal_to<>(),
                            [](std::uint64_t size) { return static_cast<std::int64_t>(size); })) {
      refuse_checkpoint(file.name(),
                        "'" + name + "' has another shape than in the process that has it");
    }
  }
  if (auto const names = names_not_in(module, file, places); !names.empty()) {
    refuse_checkpoint(file.name(),
                      "it has a tensor '" + names.front() + "', and this module has none");
  }
  visit_all_tensors(module, [&](std::string const& name, at::Tensor const& tensor) {
    if (!is_fixed(tensor) || !file.find(name)) return;
    refuse_checkpoint(file.name(), "it has the tensor '" + name +
                                       "', which its run trained and this run keeps fixed");
  });
}

FRUGAL_INLINE std::string forget_other_generators(StateDict& memory, c10::Device device) {
  std::string const scope = "generators/";
  std::string const host = scope + "cpu";
  std::string const here = scope + kind_of_device(device);
  std::string saved_on = "cpu";
  for (auto each = memory.values.lower_bound(scope);
       each != memory.values.end() && each->first.starts_with(scope);) {
    if (each->first != host) saved_on = each->first.substr(scope.size());
    bool const other = each->first != host && each->first != here;
    each = other ? memory.values.erase(each) : std::next(each);
  }
  return saved_on;
}

FRUGAL_INLINE void forget_elsewhere(StateDict& memory, TensorPlaces const& places) {
  if (places.empty()) return;
  auto const is_elsewhere = [&](auto const& entry) {
    return places.is(PlacedTensor::Place::elsewhere, entry.first);
  };
  std::erase_if(memory.values, is_elsewhere);
  std::erase_if(memory.tensors, is_elsewhere);
}

FRUGAL_INLINE void require_recipe(std::vector<SlotChange> const& slots, RecipeRules const& rules,
                                  std::filesystem::path const& where) {
  for (SlotChange const& each : slots) {
    if (rules.keeps() && each.slot != kinds::optimizer::name) continue;
    std::string why = each.slot;
    why.append(" is ").append(each.there).append(" there and ").append(each.here).append(" here");
    refuse_recipe(where, each.slot, std::move(why));
  }
}

FRUGAL_INLINE void refuse_value(std::filesystem::path const& where, std::string_view path,
                                std::string what, std::string const& why) {
  std::string_view const scope = scope_in(path);
  what += why;
  if (scope.empty()) refuse_checkpoint(where, std::move(what));
  refuse_recipe(where, scope, std::move(what));
}

FRUGAL_INLINE std::string joined(std::vector<std::string> const& parts) {
  std::string all;
  for (std::string const& part : parts) all += (all.empty() ? "" : "; ") + part;
  return all;
}

FRUGAL_INLINE StateFile read_state(SavedCheckpoint const& checkpoint) {
  auto const path = file_of(checkpoint, StateFile::file_name);
  MappedFile const file(path);
  auto const bytes = file.bytes();
  return StateFile::parse({reinterpret_cast<char const*>(bytes.data()), bytes.size()}, path);
}

FRUGAL_INLINE void require_generators(StateDict const& memory, c10::Device device,
                                      std::filesystem::path const& where) {
  for (auto const& [name, generator] : generators_of(device)) {
    auto const saved = memory.tensors.find("generators/" + name);
    if (saved == memory.tensors.end()) continue;
    at::Tensor const& state = saved->second;
    at::Tensor const here = state_of_generator(generator);
    std::string const entry = where.string() + ", tensor '" + saved->first + "'";
    if (state.scalar_type() != here.scalar_type() || state.sizes() != here.sizes()) {
      refuse_file(entry, "it is " + type_and_shape(state) + ", and a generator's state " +
                             type_and_shape(here));
    }
    if (name != "cpu") continue;
    try {
      at::Generator tried = generator.clone();
      tried.set_state(state);
    } catch (c10::Error const& error) {
      std::string const why = error.what_without_backtrace();
      refuse_file(entry, why.substr(0, why.find('\n')));
    }
  }
}

FRUGAL_INLINE at::Tensor state_tensor(TensorFiles const& file, TensorView const& view) {
  at::Tensor tensor = tensor_in_file(view);
  if (!tensor.defined()) {
    refuse_file(file.name(), "tensor '" + std::string(view.name) +
                                 "' is of a type that LibTorch lacks, " +
                                 std::string(dtype_name(view.dtype)));
  }
  return tensor;
}

FRUGAL_INLINE void read_averages(StateDict& memory, TensorFiles const& file) {
  for (auto each = memory.values.lower_bound(std::string(averages_path));
       each != memory.values.end() && each->first.starts_with(averages_path); ++each) {
    std::string const name = each->first.substr(averages_path.size());
    auto const view = file.find(name);
    if (!view) refuse_file(file.name(), "it has no tensor '" + name + "'");
    memory.tensors.insert_or_assign(each->first, state_tensor(file, *view));
  }
}

FRUGAL_INLINE void require_counters(Counters const& counters, std::filesystem::path const& where) {
  constexpr std::uint64_t most = std::uint64_t{1} << 62;
  auto const require = [&](char const* name, std::uint64_t value, std::uint64_t limit) {
    if (value <= limit) return;
    refuse_file(where, std::string("counters/") + name + " is " + std::to_string(value) +
                           ", and can be at most " + std::to_string(limit));
  };
  require("sample", counters.sample, most);
  require("token", counters.token, most);
  require("passed_over", counters.skipped_windows, most);
  require("micro_batch", counters.micro_batch, most);
  require("position", counters.position, most);
  // Each step has a micro-batch, and so has each epoch, unless a policy passed its windows over.
  require("step", counters.step, counters.micro_batch);
  require("skipped", counters.non_finite_windows, counters.micro_batch - counters.step);
  require("epoch", counters.epoch, counters.micro_batch + counters.skipped_windows);
  require("window_micro_batches", counters.window_micro_batches, counters.micro_batch);
  require("window_samples", counters.window_samples, counters.sample);
  require("window_tokens", counters.window_tokens, counters.token);
  require("window_skipped", counters.window_skipped, 1);
}

FRUGAL_INLINE std::string first_bad_in(SavedCheckpoint const& checkpoint,
                                       FiniteState const& finite) {
  auto const look = [&](char const* name, auto const& covers) -> std::string {
    TensorFiles const file = TensorFiles::open(tensors_of(checkpoint, name));
    for (std::size_t i = 0; i < file.size(); ++i) {
      std::string const tensor(file[i].name);
      if (!covers(tensor)) continue;
      if (first_non_finite({tensor_in_file(file[i])})) {
        return std::string(name) + ", tensor '" + tensor + "' holds NaN or infinity";
      }
    }
    return {};
  };
  std::string const bad = look("model.safetensors",
                               [&](std::string const& name) { return finite.covers_weight(name); });
  return bad.empty() ? look("optimizer.safetensors", FiniteState::covers_state) : bad;
}

FRUGAL_INLINE LoadedRun load_run(RunState& run, Slots const& recipe, RecipeRules const& rules,
                                 bool moves, SavedCheckpoint const& checkpoint) {
  auto const state_path = checkpoint.folder / StateFile::file_name;
  StateFile const state = read_state(checkpoint);
  if (state.seed != run.settings.seed) {
    refuse_checkpoint(state_path, "its seed is " + std::to_string(state.seed) +
                                      ", and here it is " + std::to_string(run.settings.seed));
  }
  if (rules.keeps() && !run.together.places.empty()) {
    throw SettingsError({.what = "ChangedRecipe::KeepWhatFits is set",
                         .where = "Checkpoint",
                         .why =
                             "each process has other layers, and what fits in one may not fit in "
                             "another",
                         .fix = "Resume with the recipe that saved it, or in one process."});
  }
  std::vector<SlotChange> const slots = changed_slots(state, recipe);
  require_recipe(slots, rules, state_path);
  TensorFiles const weights = TensorFiles::open(tensors_of(checkpoint, "model.safetensors"));
  require_same_tensors(run.root, weights, !state.weights.empty(), run.together.places);
  std::vector<std::string> const other_data =
      changed_data(run.progress.data(), state.data, rules.changed_data, state_path);

  TensorFiles const tensors = TensorFiles::open(tensors_of(checkpoint, "optimizer.safetensors"));
  StateDict memory;
  memory.values = state.values;
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    memory.tensors.emplace(tensors[i].name, state_tensor(tensors, tensors[i]));
  }
  std::optional<TensorFiles> averages;  // lies in the file, as `tensors` does
  if (has_tensors(checkpoint, averages_file)) {
    averages.emplace(TensorFiles::open(tensors_of(checkpoint, averages_file)));
    read_averages(memory, *averages);
  }
  forget_elsewhere(memory, run.together.places);
  auto const saved_on = forget_other_generators(memory, run.settings.device);
  require_generators(memory, run.settings.device, tensors.name());
  at::NoGradGuard const no_gradients;
  StateReader reader(memory);
  reader.other_validation =
      changed_sources(validation_texts(run.progress.data()), validation_texts(state.data));
  LoadedRun loaded{.seconds = state.seconds};
  try {
    if (rules.keeps()) {
      run.persist_progress(reader);
      FittingStates states(run, reader, memory, rules, recipe, slots);
      loaded.differences = states.load(state_path);
    } else {
      run.persist(reader);
    }
    reader.scope("run", [&](auto& inner) { run.observed.persist_warnings(inner); });
    persist_generators(reader, run.settings.device);
  } catch (StateError const& error) {
    if (error.fault().where == state_path.string()) throw;
    refuse_value(state_path, error.fault().where,
                 "'" + error.fault().where + "': ", error.fault().why);
  } catch (c10::Error const& error) {
    // A policy may accept any tensor, so that only LibTorch refuses a wrong one.
    std::string const why = error.what_without_backtrace();
    refuse_file(tensors.name(), why.substr(0, why.find('\n')));
  }
  if (run.counters().step != checkpoint.step()) {
    refuse_file(state_path, "it is of step " + std::to_string(run.counters().step) +
                                ", and the manifest says " + std::to_string(checkpoint.step()));
  }
  require_counters(run.counters(), state_path);
  if (auto const unread = reader.unread()) {
    refuse_value(state_path, *unread, "it has '" + *unread + "', ",
                 "for which this recipe has no place");
  }
  copy_weights(run.root, weights, run.together.held_parts, run.together.places);
  if (!loaded.differences.empty()) {
    run.warn("the checkpoint has another recipe; this run keeps what fits: " +
             joined(loaded.differences));
  }
  if (!other_data.empty()) {
    run.warn(
        "the checkpoint was made with other data, as Checkpoint::changed_data "
        "allows: " +
        joined(other_data));
    loaded.differences.insert(loaded.differences.end(), other_data.begin(), other_data.end());
  }
  if (!reader.forgotten().empty()) {
    run.warn(
        "the validation data are others, so the best values on the former ones are forgotten: " +
        joined({reader.forgotten().begin(), reader.forgotten().end()}));
  }
  compare_environments(run, state.environment);
  if (std::string const here = kind_of_device(run.settings.device); saved_on != here && !moves) {
    run.warn("the checkpoint was saved on " + saved_on + " and this run continues on " + here +
             ": random draws there, such as dropout, differ from those of the other device, and "
             "sums differ in their last bits");
  }
  if (!state.weights.empty()) {
    run.warn("the checkpoint's weights were stored as " + state.weights +
             ": this run is not bitwise identical to one that was not stopped");
  }
  return loaded;
}

}  // namespace frugal::detail
