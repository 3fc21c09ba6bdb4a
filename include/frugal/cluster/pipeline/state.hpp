// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/ATen.h>
#include <ATen/Context.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <tuple>
#include <unordered_map>
#include <utility>
#include <vector>

#include <frugal/base/hash.hpp>
#include <frugal/cluster/agreement/same_replicas.hpp>
#include <frugal/cluster/agreement/same_run.hpp>
#include <frugal/cluster/agreement/verdicts.hpp>
#include <frugal/cluster/agreement/window_message.hpp>
#include <frugal/cluster/communicator.hpp>
#include <frugal/cluster/pipeline/layers.hpp>
#include <frugal/cluster/pipeline/stage_gradients.hpp>
#include <frugal/cluster/tensors/block_norms.hpp>
#include <frugal/cluster/world.hpp>
#include <frugal/core/libtorch/batch_norms.hpp>
#include <frugal/core/run/phases.hpp>
#include <frugal/core/run/recipe_traits.hpp>
#include <frugal/core/run/services.hpp>
#include <frugal/core/run/window_phases.hpp>
#include <frugal/core/source/tensor_identity.hpp>
#include <frugal/error.hpp>
#include <frugal/model/module_identity.hpp>

namespace frugal::detail {

/// The processes of a recipe with Pipeline.
struct PipelineProcesses {
  std::shared_ptr<Communicator> stages;    ///< that have one copy of the module
  std::shared_ptr<Communicator> copies;    ///< that have the same stages; null without Exact
  std::shared_ptr<Communicator> everyone;  ///< of all copies

  /// SettingsError if they are not of one Grid.
  static PipelineProcesses of(std::shared_ptr<Communicator> with,
                              std::shared_ptr<Communicator> copies, bool is_exact) {
    auto everyone = with->everyone() ? with->everyone() : with;
    int const number = copies ? copies->size() : 1;
    if (copies && !is_exact) {
      refuse(*everyone,
             "Pipeline::copies is set, and gradients are added up in the order of one copy",
             "the bits would depend on the number of copies",
             "Write Pipeline<OneForwardOneBackward, Exact>.");
    }
    if (with->size() * number != everyone->size()) {
      refuse(*everyone,
             "the run has " + std::to_string(everyone->size()) +
                 " processes, and Pipeline's copies x with are " + std::to_string(number) + " x " +
                 std::to_string(with->size()),
             "each process has stages of one copy",
             "Set Pipeline::with to the `stages` of a Grid, and Pipeline::copies to its `data`.");
    }
    int const first = everyone->rank() / with->size() * with->size();
    bool fits = true;
    for (int i = 0; i < with->size(); ++i) {
      fits = fits && with->rank_in_world(i) == everyone->rank_in_world(first + i);
    }
    for (int i = 0; copies && i < number; ++i) {
      int const rank = everyone->rank_in_world(i * with->size() + with->rank());
      fits = fits && copies->rank_in_world(i) == rank;
    }
    if (!fits) {
      refuse(*everyone,
             "Pipeline's `with` and `copies` are not the stages and the data of one Grid",
             "each process has stages of one copy, and exchanges gradients with those of the same "
             "stages",
             "Set Pipeline::with to the `stages` of a Grid, and Pipeline::copies to its `data`.");
    }
    if (is_exact && !copies) copies = std::make_shared<Communicator>(nullptr, World{});
    return {
        .stages = std::move(with), .copies = std::move(copies), .everyone = std::move(everyone)};
  }

 private:
  [[noreturn]] static void refuse(Communicator const& all, std::string what, std::string why,
                                  std::string fix) {
    throw SettingsError({.what = std::move(what),
                         .where = "Pipeline, " + all.world().text(),
                         .why = std::move(why),
                         .fix = std::move(fix)});
  }
};

/// The State of Pipeline: divides the module, and makes losses, norms and verdicts those of all stages and
/// copies.
template <class Context>
class PipelineState {
 public:
  PipelineState(PipelineProcesses const& processes, MicroBatches own, int chunks,
                std::vector<int> layers)
      : all_(processes.stages),
        copies_(processes.copies),
        everyone_(processes.everyone),
        own_(own),
        chunks_(all_->size() == 1 ? 1 : chunks),
        given_(std::move(layers)),
        gradients_(copies_) {}

  DividedLayers& layers() const { return *layers_; }
  StageGradients& gradients() { return gradients_; }

  /// A mark: a recipe without Pipeline draws other random numbers, so it does not go on with such a run.
  template <class Archive>
  void persist(Archive& archive) {
    bool draws_by_layer = true;
    archive("draws_by_layer", draws_by_layer);
  }

  void on_module(ModuleSetup const& phase) {
    torch::nn::Module& root = base_module(phase.module());
    LayerList list = LayerList::of(root);
    int const stages = all_->size() * chunks_;
    if ((layers_ = list.divided())) {
      if (&layers_->processes() != all_.get() || layers_->stages() != stages)
        refuse_other_division();
      return;
    }
    std::vector<std::int64_t> elements;
    int norms = 0;  // outside of the layers
    for (auto const& layer : list.container().children()) {
      std::int64_t trained = 0;
      for (at::Tensor const& each : layer->parameters()) {
        if (each.requires_grad()) trained += each.numel();
      }
      elements.push_back(trained);
      each_batch_norm(*layer, [&](auto const&) { --norms; });
    }
    if (number_of_copies() > 1) refuse_renormalized(root, "Pipeline");
    each_batch_norm(root, [&](auto const&) {
      if (number_of_copies() > 1) refuse_batch_norm_of_copies();
      ++norms;
    });
    if (norms != 0 && all_->size() > 1) refuse_batch_norm();
    auto const count = static_cast<std::size_t>(stages);
    std::vector<std::size_t> const begins = given_.empty() || all_->size() == 1
                                                ? balanced_cuts(elements, count)
                                                : given_cuts(elements, given_, count);
    std::string cuts;
    for (std::size_t const each : begins) cuts += (cuts.empty() ? "" : " ") + std::to_string(each);
    if (everyone_->size() > 1) {
      require_same_run(*everyone_, {{"the stages", cuts}, {"the module", module_identity(root)}});
    }
    layers_ = std::make_shared<DividedLayers>(all_, begins);
    list.divide(root, layers_);
  }

  void on_fit_begin(FitBegin& phase) {
    find_shared(phase.parameters());
    if (everyone_->size() == 1) return;
    require_same_run(*everyone_, run_values<Context>(phase));
  }
  void on_ready(Ready& phase) {
    if (everyone_->size() > 1) {
      require_same_run(*everyone_, phase.run_state().set_up.compared());
    }
    require_same_copies(phase, "the module");
    replicas_.begin(phase.run_state());
  }
  /// What several processes have must have come out the same.
  void on_fit_end(FitEnd& phase) {
    if (phase.preempted()) return;  // it has saved, and machines are going away
    require_same_copies(phase, "the trained module");
    if (all_->size() == 1) return;
    TensorHash hash;
    std::unordered_map<std::string, int> const stages = stage_of_names();
    auto const add = [&](auto const& item) {
      if (stages.at(item.key()) != DividedLayers::every_process) return;
      hash.add(item.key());
      hash.add(item.value());
    };
    torch::nn::Module const& root = base_module(phase.module());
    for (auto const& item : root.named_parameters()) add(item);
    for (auto const& item : root.named_buffers()) add(item);
    require_same_run(*everyone_, {{"what is outside of the stages", hex_of(hash.digest())}});
  }

  template <class Next>
  void around_fit(FitRun& phase, Next&& next) {
    RunState& run = phase.run_state();
    bool const several = all_->size() > 1;
    if (several) {
      run.together.places = layers_->places();
      run.together.places.writes = !copies_ || copies_->rank() == 0;
      run.together.board = everyone_->save_board();
    }
    run.together.busy = [this] { return everyone_->busy(); };
    run.together.first_says = [this](std::string const& text) {
      return everyone_->first_says(text);
    };
    as_run(
        *everyone_, run,
        [&] {
          everyone_->set_place({});
          all_->connect_links();
          if (copies_ && phase.settings().device.is_cpu()) copies_->connect_links();
          next();
        },
        [&] {
          run.together.places = {};
          run.together.board = nullptr;
          run.together.busy = nullptr;
          run.together.first_says = nullptr;
        });
  }

  bool is_first() const { return everyone_->rank() == 0; }
  Processes processes() const {
    return {.count = static_cast<unsigned>(everyone_->size()), .machines = everyone_->machines()};
  }
  std::string from_first(std::string const& text) { return texts(text).front(); }
  std::string first_of(std::string const& text) {
    for (std::string const& each : texts(text)) {
      if (!each.empty()) return each;
    }
    return {};
  }

  /// The processes with the last stage have the losses, and give them to all.
  void join(SharedWindow& phase) {
    Counters const& now = phase.counters();
    everyone_->set_place({.epoch = now.epoch, .position = now.position, .step = now.step});
    gradients_.finish_passes(phase.parameters());
    std::vector<bool> has;
    for (std::size_t const i : shared_) has.push_back(gradients_.has(i));
    if (everyone_->size() > 1) exchange_records(phase, has);
    gradients_.join();
    if (all_->size() > 1) sum_shared(phase, has);
    // What draws random numbers until the next window draws the same in every process.
    at::manual_seed(key(phase.run_state(), static_cast<std::uint64_t>(phase.facts().batches)));
  }

  /// Of this copy's micro-batch k of a window.
  std::uint64_t key_of_own(RunState const& run, std::uint64_t k) const {
    return key(run, own_.first + k);
  }
  /// Of random numbers: a micro-batch draws the same however many processes there are.
  static std::uint64_t key(RunState const& run, std::uint64_t micro_batch) {
    std::array<std::uint64_t, 4> const all{run.settings.seed, run.counters().epoch,
                                           run.counters().position, micro_batch};
    return Hash::of(std::as_bytes(std::span(all)));
  }

  /// Norms of the blocks of all stages' gradients.
  std::vector<at::Tensor> norms(Parameters const& updated) {
    Parameters own;
    for (std::size_t i = 0; i < updated.size(); ++i) {
      if (all_->rank() != 0 && std::ranges::find(shared_, i) != shared_.end()) continue;
      own.names.push_back(updated.names[i]);
      own.tensors.push_back(updated.tensors[i]);
    }
    at::Tensor mine = BlockNorms::of(own, nullptr).cpu().to(at::kDouble);
    if (all_->size() > 1) {
      at::Tensor const lengths =
          all_->gather(at::full({1}, mine.numel(), at::kLong), "the norm of gradients");
      std::int64_t const longest = lengths.max().template item<std::int64_t>();
      mine = at::constant_pad_nd(mine, {0, longest - mine.numel()});
      mine = all_->gather(mine, "the norm of gradients").flatten();
    }
    // In an order that does not depend on who has which layers.
    return {std::get<0>(mine.masked_select(mine != 0).sort())};
  }
  void collect_parts() {}

  /// The sums are of the stages, and the verdicts of all processes.
  double reduce(Quantity what, double value) {
    return joined_number(is_verdict(what) ? *everyone_ : *all_, what, value);
  }
  at::Tensor reduce(Quantity what, at::Tensor value) {
    Communicator& asked = is_verdict(what) ? *everyone_ : *all_;
    return joined_numbers(asked, what, value.cpu()).to(value.device());
  }

 private:
  std::vector<std::string> texts(std::string const& mine) {
    if (everyone_->size() == 1) return {mine};
    return gather_texts(*everyone_, mine, "a text of the first process");
  }

  std::unordered_map<std::string, int> stage_of_names() const {
    std::unordered_map<std::string, int> stages;
    for (DividedLayers::Part const& each : layers_->parts()) stages.emplace(each.name, each.stage);
    return stages;
  }

  int number_of_copies() const { return copies_ ? copies_->size() : 1; }

  void require_same_copies(Phase const& phase, char const* what) {
    if (number_of_copies() == 1) return;
    require_same_run(*copies_, {{what, module_identity(base_module(phase.module()))}});
  }

  /// Parameters outside of the list, which all processes have. They get gradients before the first stage
  /// and after the last one.
  void find_shared(Parameters const& parameters) {
    std::unordered_map<std::string, int> const stages = stage_of_names();
    std::vector<int> ends;
    for (int const end : {0, layers_->stages() - 1}) {
      if (layers_->is_own(end)) ends.push_back(end);
    }
    if (layers_->stages() == 1) ends.resize(1);
    std::vector<std::vector<int>> passes;
    shared_.clear();
    for (std::size_t i = 0; i < parameters.size(); ++i) {
      int const stage = stages.at(parameters.names[i]);
      bool const is_shared = stage == DividedLayers::every_process;
      if (is_shared) shared_.push_back(i);
      passes.push_back(!parameters.tensors[i].requires_grad() ? std::vector<int>()
                       : is_shared                            ? ends
                                                              : std::vector{stage});
    }
    gradients_.begin_fit(passes, parameters.names);
  }

  void exchange_records(SharedWindow& phase, std::vector<bool>& has) {
    WindowMessage const message(own_.count, shared_.size());
    std::vector<MicroBatchRecord>& records = phase.records;
    std::vector<MicroBatchNumbers> own;
    for (MicroBatchRecord const& each : records) {
      own.push_back({.loss = each.weight == 0 ? 0.0 : each.loss.template item<double>(),
                     .weight = each.weight,
                     .samples = each.samples,
                     .tokens = each.tokens});
    }
    at::Tensor const rows = everyone_->gather(
        message.pack(own, has, phase.preempts, phase.fails, false,
                     replicas_.has_saved(phase.run_state()),
                     WindowStamp::of(windows_, everyone_->place(), phase.consumed)),
        "the losses of a step");
    std::vector<WindowMessage::Part> parts;
    for (std::int64_t rank = 0; rank < everyone_->size(); ++rank) {
      parts.push_back(message.unpack(rows[rank]));
    }
    require_one_window(*everyone_, parts, phase.consumed);
    ++windows_;
    bool const saved =
        std::ranges::any_of(parts, [](WindowMessage::Part const& each) { return each.has_saved; });
    if (saved && number_of_copies() > 1) {
      replicas_.compare(*copies_, phase.run_state(), phase.counters().step);
    } else if (saved) {
      replicas_.begin(phase.run_state());
    }
    records.clear();
    // Copy by copy, so in the window's order.
    for (WindowMessage::Part const& part : parts) {
      phase.preempts = phase.preempts || part.preempts;
      phase.fails = phase.fails || part.fails;
      for (MicroBatchNumbers const& each : part.micro_batches) {
        records.push_back({.loss = at::full({}, each.loss, at::TensorOptions(at::kDouble)),
                           .weight = each.weight,
                           .samples = each.samples,
                           .tokens = each.tokens});
      }
      for (std::size_t i = 0; i < has.size(); ++i) has[i] = has[i] || part.has_gradient[i];
    }
  }

  /// The first stage has gradients of what comes before the list, the last one of what follows it.
  void sum_shared(SharedWindow& phase, std::vector<bool> const& has) {
    at::NoGradGuard const no_gradients;
    for (std::size_t i = 0; i < shared_.size(); ++i) {
      if (!has[i]) continue;
      at::Tensor const& parameter = phase.parameters().tensors[shared_[i]];
      at::Tensor& gradient = parameter.mutable_grad();
      at::Tensor sum = gradient.defined() ? gradient.contiguous() : at::zeros_like(parameter);
      sum = sum.contiguous();
      if (auto const work = all_->start_sum(sum)) all_->complete(work, "a sum of gradients");
      gradient = sum;
    }
  }

  [[noreturn]] static void refuse_batch_norm() {
    throw ModuleError({.what = "the module has BatchNorm outside of the layers that are divided",
                       .where = "Pipeline",
                       .why = "all processes have these layers, and not all call them in training, "
                              "so their statistics would differ",
                       .fix = "Put it into the list of layers, or use LayerNorm or GroupNorm."});
  }
  [[noreturn]] static void refuse_batch_norm_of_copies() {
    throw ModuleError({.what = "the module has BatchNorm, and there are several copies of it",
                       .where = "Pipeline",
                       .why = "each copy would have the statistics of its own micro-batches",
                       .fix = "Use LayerNorm or GroupNorm, or one copy."});
  }
  [[noreturn]] void refuse_other_division() const {
    throw ModuleError(
        {.what = "the module is divided into " + std::to_string(layers_->stages()) +
                 " stages already, by another Pipeline",
         .where = "Pipeline",
         .why = "this process has freed the layers of the others",
         .fix = "Make the module again, or train on with the same processes and schedule."});
  }

  std::shared_ptr<Communicator> all_;       ///< that have the stages of this copy
  std::shared_ptr<Communicator> copies_;    ///< that have these stages of each copy; may be null
  std::shared_ptr<Communicator> everyone_;  ///< of all copies
  MicroBatches own_;
  int chunks_;
  std::vector<int> given_;
  StageGradients gradients_;
  std::shared_ptr<DividedLayers> layers_;
  std::vector<std::size_t> shared_;  ///< indices of parameters
  SameReplicas replicas_;
  std::uint64_t windows_ = 0;  ///< of this fit, before this one
};

}  // namespace frugal::detail
