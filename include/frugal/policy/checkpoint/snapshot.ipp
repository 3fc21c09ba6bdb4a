// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/policy/checkpoint/snapshot.hpp>

#include <frugal/base/hash.hpp>
#include <frugal/checkpoint/tensor_files.hpp>
#include <frugal/core/compose/scope.hpp>
#include <frugal/core/run/run_state.hpp>
#include <frugal/core/state/module_tensors.hpp>
#include <frugal/core/state/state_dict.hpp>
#include <frugal/data/tensor_dtype.hpp>
#include <frugal/error.hpp>
#include <frugal/inline.hpp>
#include <frugal/policy/checkpoint/state_file.hpp>
#include <frugal/policy/checkpoint/weights.hpp>
#include <frugal/policy/kinds.hpp>

#include <ATen/Parallel.h>

#include <cstddef>
#include <exception>
#include <span>
#include <system_error>
#include <utility>
#include <variant>

namespace frugal::detail {

FRUGAL_INLINE void StoredSnapshot::begin(RunState const& run) {
  finite_.begin(run.root, run.together.places);
  places_ = run.together.places;
  compared_.clear();
  if (!places_.empty()) {
    for (SavedScope const& each : run.links.policies().scopes()) {
      bool const differs =
          each.dispensable || each.once_per_run ||
          each.name == kinds::checkpoint::name;  // it has its folder in one process
      if (!differs) compared_.push_back(each.name);
    }
  }
}

FRUGAL_INLINE void StoredSnapshot::take(RunState& run, Slots const& recipe) {
  state_.with_kept = true;
  if (run.together.whole_tensor) {
    // Another process may keep a tensor this time.
    state_.run.tensors.clear();
    state_.module.tensors.clear();
  }
  state_.parts_alone = run.together.side_by_side && run.together.board->rank() != 0;
  has_parts_of_others_ = static_cast<bool>(run.together.whole_tensor);
  state_.take(run, Part::resumable, copies_, weights_);
  StateWriter record(state_.run);
  record.scope("run", [&](auto& inner) { run.observed.persist_warnings(inner); });
  header_ = {.seed = run.settings.seed,
             .seconds = run.seconds(),
             .recipe = recipe,
             .weights = {},
             .environment = environment_of(run),
             .data = run.progress.data(),
             .values = {}};
  if (auto const type = stored_type(weights_)) header_.weights = dtype_name(*type);
  at_ = {run.counters().epoch, LossError::Window::elsewhere, run.counters().step};
  files_ = run.set_up.files();
  fixed_ = run.fixed.identify(run.root);
  note_averages(run);
  // The weights of a step may change after its validation, at the epoch's end: an average, or the
  // statistics of a window that was skipped. The save of those that were validated stays.
  replaces_ = run.is_judged() || judged_step_ != at_.step;
  if (run.is_judged()) judged_step_ = at_.step;
  metrics_.clear();
  if (run.is_judged()) {
    for (auto const& [name, value] : run.observed.validations().back().metrics)
      metrics_[name] = value;
  }
}

FRUGAL_INLINE SavedCheckpoint StoredSnapshot::write(RunDirectory& directory) {
  begin_write(directory);
  CheckpointWriter writer = directory.begin(at_.step);
  for (TensorFile const& each : files()) {
    SafetensorsWriter const file = each.writer();
    writer.add(each.name, [&](auto& sink) { file.write(sink); }, file.size());
  }
  return finish(directory, writer);
}

FRUGAL_INLINE SavedCheckpoint StoredSnapshot::write(RunDirectory& directory, SharedSave& shared) {
  std::optional<CheckpointWriter> writer;
  {
    SharedSave::Beginning beginning(shared);  // the others wait for it
    begin_write(directory);
    writer.emplace(directory.begin(at_.step));
    beginning.announce(writer->folder());
  }
  std::vector<PartReport> reports(1);
  std::exception_ptr failure;
  try {
    reports.front().parts = write_part(writer->folder(), 0);
  } catch (...) {
    failure = std::current_exception();
  }
  // Also after a failure: the others still write into the folder, which goes with the writer.
  for (PartReport& each : shared.reports()) reports.push_back(std::move(each));
  if (failure) std::rethrow_exception(failure);
  for (PartReport const& each : reports) {
    if (!each.bad.empty()) throw non_finite_weights(each.bad, at_, at_.step);
  }
  shared.require_written(reports);
  join(reports);
  require_each_once(reports);
  seal(*writer, reports);
  return finish(directory, *writer);
}

FRUGAL_INLINE void StoredSnapshot::write(SharedSave& shared) {
  std::filesystem::path const folder = shared.folder(at_.step);
  if (folder.empty()) return;  // the first process has failed
  PartReport report;
  try {
    require_finite();
    if (!places_.empty()) report_own_state(state_.run, places_, compared_, report);
    report.parts = write_part(folder, shared.rank());
  } catch (NonFiniteWeightsError const&) {
    report.bad = finite_.first_bad(state_.module, state_.run).value_or("");
  } catch (std::exception const& error) {
    report.error = error.what();
  }
  state_.run.tensors.clear();
  state_.module.tensors.clear();
  shared.report(report);
}

FRUGAL_INLINE SafetensorsWriter StoredSnapshot::TensorFile::writer() const {
  SafetensorsWriter::Metadata all = about;
  // "pt": the format key that tools of PyTorch's users look for.
  all.emplace("format", "pt");
  return SafetensorsWriter(tensors, all, name);
}

FRUGAL_INLINE void StoredSnapshot::begin_write(RunDirectory const& directory) const {
  require_finite();
  directory.require_lock();  // before the files below are looked for where they no longer are
  // Files that the checkpoint refers to must be on disk before it is. A file that was moved, such
  // as a rotated log, is skipped: a resume does not rely on it.
  for (auto const& file : files_) {
    std::error_code ignored;
    if (std::filesystem::is_regular_file(file, ignored)) File::open(file).sync();
  }
}

FRUGAL_INLINE std::vector<StoredSnapshot::TensorFile> StoredSnapshot::files() const {
  TensorFile weights{.name = "model.safetensors"};
  TensorFile averaged{.name = averages_file};
  TensorFile rest{.name = "optimizer.safetensors"};
  for (auto const& [name, tensor] : state_.module.tensors) {
    weights.tensors.push_back(stored_view(name, tensor));
    if (!averages_.empty() && !averages_.contains(name)) {
      averaged.tensors.push_back(weights.tensors.back());
    }
  }
  for (auto const& [name, path] : averages_) {
    auto const average = state_.run.tensors.find(path);
    if (average == state_.run.tensors.end()) continue;  // another process has it
    averaged.tensors.push_back(stored_view(name, average->second));
  }
  for (auto const& [path, tensor] : state_.run.tensors) {
    if (!path.starts_with(averages_path)) rest.tensors.push_back(stored_view(path, tensor));
  }
  if (!fixed_.empty()) weights.about.emplace(fixed_key, fixed_);
  averaged.about = weights.about;
  averaged.about.emplace(validated_key, validated_ ? "true" : "false");
  std::vector<TensorFile> all{std::move(weights), std::move(rest)};
  if (!averages_.empty()) all.push_back(std::move(averaged));
  return all;
}

FRUGAL_INLINE SavedCheckpoint StoredSnapshot::finish(RunDirectory& directory,
                                                     CheckpointWriter& writer) {
  header_.values = std::move(state_.run.values);
  std::string const text = header_.text();
  writer.add(StateFile::file_name, [&](auto& sink) { sink.write(bytes_of(text)); }, text.size());
  SavedCheckpoint saved = directory.commit(writer, metrics_, replaces_);
  // This process has no other copy of the parts of the others.
  if (has_parts_of_others_) {
    state_.run.tensors.clear();
    state_.module.tensors.clear();
  }
  return saved;
}

FRUGAL_INLINE std::vector<PartReport::Part> StoredSnapshot::write_part(
    std::filesystem::path const& folder, unsigned rank) const {
  std::vector<PartReport::Part> parts;
  for (TensorFile const& each : files()) {
    if (rank != 0 && each.tensors.empty()) continue;
    PartReport::Part& part = parts.emplace_back();
    part.of = each.name;
    for (TensorView const& tensor : each.tensors) {
      part.tensors.emplace_back(tensor.name);
      part.bytes += tensor.bytes.size();
    }
    SafetensorsWriter const file = each.writer();
    part.file = CheckpointWriter::write(
        folder, part_name(rank, each.name), [&](auto& sink) { file.write(sink); }, file.size());
  }
  return parts;
}

FRUGAL_INLINE void StoredSnapshot::join(std::vector<PartReport> const& reports) {
  for (std::string& path : join_states(state_.run, places_, compared_, reports)) {
    state_.run_elsewhere.push_back(std::move(path));
  }
  for (auto const& [name, tensor] : places_.tensors) {
    if (tensor.place == PlacedTensor::Place::elsewhere) state_.module_elsewhere.push_back(name);
  }
}

FRUGAL_INLINE void StoredSnapshot::require_each_once(std::vector<PartReport> const& reports) const {
  std::map<std::string, std::map<std::string, int>> files;  // by file and tensor
  for (PartReport const& report : reports) {
    for (PartReport::Part const& part : report.parts) {
      for (std::string const& tensor : part.tensors) ++files[part.of][tensor];
    }
  }
  auto const refuse = [](std::string const& file, std::string const& tensor, int times) {
    throw StoreError({.what = "the processes' parts of a checkpoint do not fit together",
                      .where = file + ", tensor '" + tensor + "'",
                      .why = std::to_string(times) + " processes have written it",
                      .fix = "Please report this: it is a fault of frugal."});
  };
  for (auto const& [file, tensors] : files) {
    for (auto const& [tensor, times] : tensors) {
      if (times != 1) refuse(file, tensor, times);
    }
  }
  for (std::string const& name : state_.module_elsewhere) {
    if (!files["model.safetensors"].contains(name)) refuse("model.safetensors", name, 0);
  }
  for (std::string const& path : state_.run_elsewhere) {
    bool const averages = path.starts_with(averages_path);
    std::string const file = averages ? averages_file : "optimizer.safetensors";
    std::string const name = averages ? path.substr(averages_path.size()) : path;
    if (!files[file].contains(name)) refuse(file, name, 0);
  }
}

FRUGAL_INLINE void StoredSnapshot::seal(CheckpointWriter& writer,
                                        std::vector<PartReport> const& reports) {
  for (PartReport::Part const& first : reports.front().parts) {
    std::vector<PartReport::Part const*> parts;
    for (PartReport const& report : reports) {
      for (PartReport::Part const& each : report.parts) {
        if (each.of == first.of && !each.tensors.empty()) parts.push_back(&each);
      }
    }
    if (parts.empty()) parts.push_back(&first);
    if (first.tensors.empty() && parts.front() != &first) {
      try_remove_tree(writer.folder() / first.file.name);
    }
    if (parts.size() == 1) {
      writer.adopt(parts.front()->file, first.of);
      continue;
    }
    TensorIndex index;
    for (std::size_t i = 0; i < parts.size(); ++i) {
      std::string const name = shard_name(first.of, i, parts.size());
      writer.adopt(parts[i]->file, name);
      index.total_size += parts[i]->bytes;
      for (std::string const& tensor : parts[i]->tensors) index.weight_map.emplace(tensor, name);
    }
    std::string const text = index.text();
    writer.add(
        first.of + std::string(TensorIndex::ending),
        [&](auto& sink) { sink.write(bytes_of(text)); }, text.size());
  }
}

FRUGAL_INLINE void StoredSnapshot::note_averages(RunState& run) {
  averages_.clear();
  validated_ = run.observed.averaged() != 0;
  // By the values: another process may have the tensor.
  auto const& values = state_.run.values;
  auto const first = values.lower_bound(std::string(averages_path));
  if (first == values.end() || !first->first.starts_with(averages_path)) return;
  std::map<at::TensorImpl const*, std::string> paths;
  visit_tensors(run.root, [&](std::string const& name, at::Tensor const& tensor) {
    std::string path = std::string(averages_path) + name;
    auto const value = values.find(path);
    if (value != values.end() && !std::holds_alternative<std::monostate>(value->second)) {
      paths.emplace(tensor.unsafeGetTensorImpl(), std::move(path));
    }
    auto const average = paths.find(tensor.unsafeGetTensorImpl());
    if (average != paths.end()) averages_.emplace(name, average->second);
  });
}

FRUGAL_INLINE void StoredSnapshot::require_finite() const {
  auto const bad = finite_.first_bad(state_.module, state_.run);
  if (!bad) return;
  auto const weight = state_.module.tensors.find(*bad);
  bool const rounded = weights_ == at::ScalarType::Half && weight != state_.module.tensors.end();
  // A weight that FP16 cannot hold became infinite, and never NaN.
  if (!rounded || weight->second.isnan().any().item<bool>()) {
    throw non_finite_weights(*bad, at_, at_.step);
  }
  throw WeightRangeError({.what = "the weights do not fit into 16 bits",
                          .where = "tensor '" + *bad + "', step " + std::to_string(at_.step),
                          .why = "the largest FP16 number is 65504",
                          .fix = "Use WeightsIn<BF16>, which has the range of float."});
}

FRUGAL_INLINE std::map<std::string, std::uint64_t> common_hashes(
    StateDict const& run, TensorPlaces const& places, std::vector<std::string> const& scopes) {
  std::map<std::string, std::uint64_t> hashes;
  for (std::string const& scope : scopes) {
    std::string const start = "policies/" + scope + "/";
    StateFile file;
    Hash tensors;
    for (auto each = run.values.lower_bound(start);
         each != run.values.end() && each->first.starts_with(start); ++each) {
      if (places.find(each->first) != nullptr) continue;
      file.values.insert(*each);
      auto const tensor = run.tensors.find(each->first);
      if (tensor != run.tensors.end()) {
        tensors.update(stored_view(each->first, tensor->second).bytes);
      }
    }
    std::string const text = file.text() + hex_of(tensors.digest());
    hashes.emplace(scope, Hash::of(std::as_bytes(std::span(text))));
  }
  return hashes;
}

FRUGAL_INLINE void report_own_state(StateDict& run, TensorPlaces const& places,
                                    std::vector<std::string> const& scopes, PartReport& report) {
  report.common = common_hashes(run, places, scopes);
  for (auto const& [path, value] : run.values) {
    if (places.saves(path)) report.values.emplace(path, value);
  }
  std::erase_if(run.tensors, [&](auto const& entry) { return !places.saves(entry.first); });
}

FRUGAL_INLINE std::vector<std::string> join_states(StateDict& run, TensorPlaces const& places,
                                                   std::vector<std::string> const& scopes,
                                                   std::vector<PartReport> const& reports) {
  auto const own = common_hashes(run, places, scopes);
  std::vector<std::string> tensors;
  for (std::size_t rank = 1; rank < reports.size(); ++rank) {
    for (auto const& [scope, hash] : own) {
      auto const theirs = reports[rank].common.find(scope);
      if (theirs != reports[rank].common.end() && theirs->second == hash) continue;
      throw StateError({.what = "the State of " + scope + " differs between the processes",
                        .where = "rank " + std::to_string(rank),
                        .why = "they have different layers, and a checkpoint has one value of each "
                               "path",
                        .fix = "In its persist(), save what belongs to a parameter under the "
                               "parameter's name: archive(name, value)."});
    }
    for (auto const& [path, value] : reports[rank].values) {
      run.values.insert_or_assign(path, value);
      auto const* const text = std::get_if<std::string>(&value);
      if (text != nullptr && *text == "tensor") tensors.push_back(path);
    }
  }
  return tensors;
}

FRUGAL_INLINE Environment environment_of(RunState const& run) {
  Environment all;
  all["threads"] = static_cast<std::uint64_t>(at::get_num_threads());
  all["interop_threads"] = static_cast<std::uint64_t>(at::get_num_interop_threads());
  RunLimits const& horizon = run.progress.horizon();
  if (horizon.steps_per_epoch) all["steps_per_epoch"] = *horizon.steps_per_epoch;
  if (horizon.samples_per_epoch) all["samples_per_epoch"] = *horizon.samples_per_epoch;
  return all;
}

FRUGAL_INLINE void compare_environments(RunState& run, Environment const& saved) {
  Environment const here = environment_of(run);
  auto const differs = [&](char const* name) {
    auto const there = saved.find(name);
    auto const now = here.find(name);
    return there != saved.end() && now != here.end() && there->second != now->second;
  };
  auto const both = [&](char const* name, std::string const& unit) {
    return std::to_string(saved.at(name)) + unit + " and continues with " +
           std::to_string(here.at(name));
  };
  if (differs("threads")) {
    run.warn("the checkpoint was made with " + both("threads", " threads") +
             ": sums over threads may differ in their last bits; at::set_num_threads or "
             "OMP_NUM_THREADS gives it the former number");
  }
  if (differs("interop_threads")) {
    run.warn("the checkpoint was made with " +
             both("interop_threads", " threads between operators") +
             ": parallel tasks of a module (at::launch) may end in another order");
  }
  if (differs("samples_per_epoch")) {
    run.warn("the checkpoint was made with " + both("samples_per_epoch", " samples in an epoch") +
             ": the training data has changed, and so has its order");
  } else if (differs("steps_per_epoch")) {
    run.warn("the checkpoint was made with " + both("steps_per_epoch", " steps in an epoch") +
             ": its batches or the training data have changed, and so has their order");
  }
}

}  // namespace frugal::detail
