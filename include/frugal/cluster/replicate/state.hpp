// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/ATen.h>
#include <ATen/Context.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <frugal/base/hash.hpp>
#include <frugal/cluster/agreement/same_replicas.hpp>
#include <frugal/cluster/agreement/same_run.hpp>
#include <frugal/cluster/agreement/verdicts.hpp>
#include <frugal/cluster/agreement/window_message.hpp>
#include <frugal/cluster/batch_norm.hpp>
#include <frugal/cluster/communicator.hpp>
#include <frugal/cluster/shard/sharded_parameters.hpp>
#include <frugal/cluster/tensor_parallel/sharded_module.hpp>
#include <frugal/cluster/tensors/block_norms.hpp>
#include <frugal/core/measure/measured_parts.hpp>
#include <frugal/core/run/phases.hpp>
#include <frugal/core/run/recipe_traits.hpp>
#include <frugal/core/run/scalars.hpp>
#include <frugal/core/run/window_phases.hpp>
#include <frugal/core/state/cut_tensors.hpp>
#include <frugal/error.hpp>
#include <frugal/model/module_identity.hpp>

namespace frugal::detail {

/// The scalars of losses as text, for read_scalars().
inline std::string written_scalars(std::vector<MicroBatchRecord> const& records) {
  CountedWriter out;
  for (MicroBatchRecord const& each : records) {
    out.put(static_cast<std::uint64_t>(std::distance(each.scalars.begin(), each.scalars.end())));
    for (Scalars::Value const& scalar : each.scalars) {
      out.put_text(scalar.name);
      // One of weight 0 is never read.
      bool const reads = !scalar.is_number && each.weight != 0;
      out.put(reads ? scalar.tensor.item<double>() : scalar.number);
    }
  }
  return out.take();
}
/// Of all processes, to the records of all: `places` has where those of each process are, process by
/// process.
inline void read_scalars(std::vector<std::string> const& texts,
                         std::vector<std::size_t> const& places,
                         std::vector<MicroBatchRecord>& records) {
  std::string whole;
  for (std::string const& text : texts) whole += text;
  CountedReader in(whole);
  for (std::size_t const place : places) {
    for (auto left = in.get<std::uint64_t>(); left != 0; --left) {
      std::string name = in.text();
      records[place].scalars.add({std::move(name), in.get<double>()});
    }
  }
}

/// The State of Replicate with each way of adding up gradients. `Gradients` takes those of a window:
///
///   void begin(parameters, sharded)         of a window; `sharded` is null without Shard
///   void before(bool is_last, unit)         the passes of a micro-batch of this process begin
///   void after()                            they have ended
///   void begin_rest()                       begins what it has not begun to exchange
///   at::Tensor exchange(message)            sends a message to all processes, returns all messages
///   std::vector<bool> const& has() const    which parameters have got a gradient here
///   std::vector<at::Tensor> sum(counts)     over all processes, in the order of the parameters;
///                                           `counts`: which of them have a micro-batch that counts
///   std::vector<at::Tensor> own_sum(counts, sharded)  this process's parts of them
///   void weigh(weight, scale, has)          if it is there: after the message, of all processes, the
///                                           window's weight, what losses are multiplied by, and which
///                                           parameters have got a gradient
/// `shards`: the processes divide the optimizer's moments (Shard). `BatchNorms`: what becomes of the
/// statistics of BatchNorm layers, BatchNormStatistics or SyncedBatchNorms.
template <class Context, class Gradients, bool shards, class BatchNorms = BatchNormStatistics>
class ReplicateState {
  /// Whether the processes have the same weights and moments in a window.
  static constexpr bool has_replicas = !requires { requires bool(Gradients::are_local); };

 public:
  static constexpr bool carries_scalars = true;

  /// Of parameters whose parts are cut and exchanged together.
  struct Groups {
    std::int64_t bytes = 0;  ///< as of FlatGroups
    /// Layers' weights of at least so many elements are there in part (LayerWeights); 0: none.
    std::int64_t layers = 0;
  };

  template <class... More>
  ReplicateState(Communicator& all, MicroBatches own, char const* name, Groups const& groups,
                 More const&... more)
      : all_(all),
        everyone_(all.everyone() ? *all.everyone() : all),
        gradients_(all, more...),
        own_(own),
        name_(name),
        groups_(groups),
        batch_norms_(all) {}

  void on_fit_begin(FitBegin& phase) {
    batch_norms_.begin(base_module(phase.module()));
    if (everyone_.size() == 1) return;
    refuse_renormalized(base_module(phase.module()), name_);
    require_same_run(everyone_, run_values<Context>(phase));
  }

  void on_ready(Ready& phase) {
    if (everyone_.size() > 1) require_same_run(everyone_, phase.run_state().set_up.compared());
    require_same_module(phase, "the module");
    // All have the same layers.
    if constexpr (requires { batch_norms_.message_bytes(); }) {
      all_.set_message_room(batch_norms_.message_bytes());
    }
    if (cut_) cut_->require_different_shards();
    replicas_.begin(phase.run_state());
    saved_.reset();
  }
  /// Not after a preemption: it has saved, and machines are going away.
  void on_fit_end(FitEnd& phase) {
    if (!phase.preempted()) require_same_module(phase, "the trained module");
  }

  template <class Next>
  void around_fit(FitRun& phase, Next&& next) {
    RunState& run = phase.run_state();
    run.together.busy = [this] { return everyone_.busy(); };
    run.together.first_says = [this](std::string const& text) {
      return everyone_.first_says(text);
    };
    as_run(
        all_, run,
        [&] {
          all_.set_place({});
          // Here and not in the first window, where one may take long and another wait without a name
          // for it.
          if (phase.settings().device.is_cpu()) all_.connect_links();
          cut(phase);
          shard(phase);
          next();
          if (sharded_) sharded_->give_back();
        },
        [&] {
          all_.reset_message_room();
          unshard(phase);
        });
  }

  bool is_first() const { return everyone_.rank() == 0; }
  Processes processes() const {
    return {.count = static_cast<unsigned>(everyone_.size()),
            .machines = everyone_.machines(),
            .in_rounds = in_rounds()};
  }
  EqualShare measures() const {
    // Layers whose weights are collected must be called equally often in all processes.
    if (groups_.layers != 0) return {};
    return {.index = static_cast<unsigned>(all_.rank()),
            .count = static_cast<unsigned>(all_.size())};
  }
  std::vector<std::string> texts_of_all(std::string const& text) {
    return gather_texts(all_, text, "the sums of measurements");
  }
  std::string from_first(std::string const& text) {
    return gather_texts(everyone_, text, "a text of the first process").front();
  }

  /// The first text that is not empty, of the first rank that has one; cut to 63 bytes.
  std::string first_of(std::string const& text) {
    if (everyone_.size() == 1) return text;
    constexpr std::int64_t most = 64;
    at::Tensor const mine = at::zeros({most}, at::kByte);
    text.copy(static_cast<char*>(mine.mutable_data_ptr()), most - 1);
    at::Tensor const rows = everyone_.gather(mine, "a verdict");
    for (std::int64_t rank = 0; rank < everyone_.size(); ++rank) {
      std::string const each = static_cast<char const*>(rows[rank].const_data_ptr());
      if (!each.empty()) return each;
    }
    return {};
  }

  template <class Next>
  void around_micro_batch(MicroBatchRun const& phase, Next&& next) {
    all_.at_step(phase.counters().step);
    if (phase.first) begin_window(phase);
    at::manual_seed(key(phase, own_.first + trained_++ * own_.stride));
    gradients_.before(phase.last, phase.gradient_unit());
    {
      typename BatchNorms::Part part(batch_norms_, phase.gradient_unit());
      next();
      part.take();
    }
    gradients_.after();
  }

  void join(SharedWindow& phase) {
    if (trained_ == 0) begin_window(phase);  // it had no micro-batch here
    if (trained_ > own_.count) refuse_whole_windows();
    batch_norms_.end_passes();
    gradients_.begin_rest();
    has_gradient_ = gradients_.has();
    std::vector<bool> counts{true};
    if (all_.size() > 1) counts = exchange_records(phase);
    if (cut_) agree_with_shards(phase);
    if constexpr (requires { gradients_.weigh(1.0, 1.0, has_gradient_); }) {
      double weight = 0;
      for (MicroBatchRecord const& each : phase.records) weight += each.weight;
      gradients_.weigh(weight, phase.run_state().window.loss_scale(), has_gradient_);
    }
    if (sharded_) {
      sharded_->set_gradients(gradients_.own_sum(counts, *sharded_), has_gradient_);
    } else {
      std::vector<at::Tensor> const gradients = gradients_.sum(counts);
      for (std::size_t i = 0; i < gradients.size(); ++i) {
        if (has_gradient_[i]) parameters_[i].mutable_grad() = gradients[i];
      }
    }
    batch_norms_.join(in_rounds());
    if (cut_) cut_->require_same_gradients();
    trained_ = 0;
    // What draws random numbers until the next window draws the same in every process.
    at::manual_seed(key(phase, static_cast<std::uint64_t>(phase.facts().batches)));
  }

  std::vector<at::Tensor> norms(Parameters const& updated) {
    if (cut_) return {cut_->norms(BlockNorms::of(cut_->counted(updated), nullptr))};
    at::Tensor all = BlockNorms::of(updated, sharded_ ? &sharded_->parts() : nullptr);
    if (sharded_) {
      // Each number is of one process, and 0 in the others: no order of a sum changes it.
      if (auto const work = all_.start_sum(all)) all_.complete(work, "the norm of gradients");
    }
    return {all};
  }

  void collect_parts() {
    if (!sharded_) return;
    sharded_->reset_gradients();
    sharded_->collect();
  }

  /// The sums are of the copies of the module, and the verdicts of all processes.
  double reduce(Quantity what, double value) {
    return joined_number(is_verdict(what) ? everyone_ : all_, what, value);
  }
  at::Tensor reduce(Quantity what, at::Tensor value) {
    return joined_numbers(is_verdict(what) ? everyone_ : all_, what, value);
  }

 protected:
  Communicator& all_;       ///< processes that have the same weights
  Communicator& everyone_;  ///< of a Grid also those that have other shards; otherwise the same
  Gradients gradients_;

  SameReplicas replicas_;
  /// The step of a save after which the copies have not been compared: where they differ in a window.
  std::optional<std::uint64_t> saved_;

 private:
  /// Of a Grid: this process has shards of the module, and others of its copy the rest.
  void cut(FitRun& phase) {
    require_whole_world();
    if (!all_.tensor() || all_.tensor()->size() == 1) {
      require_whole(base_module(phase.module()), name_,
                    "Set Replicate's member `with` to the `data` of the Grid whose `tensor` the "
                    "layers have.");
      return;
    }
    std::string const other(not_for_shards(typename Context::policies{}));
    constexpr bool knows_shards = requires { requires bool(Gradients::knows_shards); };
    if (shards || !knows_shards || !other.empty()) {
      refuse_with_shards(shards          ? "Replicate's option Shard"
                         : !knows_shards ? std::string(name_) + " as it is"
                                         : "a policy of the kind " + other);
    }
    cut_.emplace(*all_.tensor(), phase.parameters(), all_.rank() == 0);
    phase.update_parts(&cut_->parts());
    RunState& run = phase.run_state();
    run.together.whole_tensor = [this, &run](at::Tensor const& mine, TensorPart const& which) {
      return cut_->whole(mine, which, run.together.side_by_side);
    };
    run.together.board = everyone_.save_board();
  }

  void require_whole_world() const {
    int const shards_of_copy = all_.tensor() ? all_.tensor()->size() : 1;
    if (all_.size() * shards_of_copy == everyone_.size()) return;
    throw SettingsError(
        {.what = "`with` has " + std::to_string(all_.size()) + " of the run's " +
                 std::to_string(everyone_.size()) + " processes",
         .where = name_,
         .why = "the others would train the same run once more",
         .fix = "Set it to the `data` of a Grid with stages = 1. Stages are Pipeline's."});
  }
  [[noreturn]] void refuse_with_shards(std::string const& what) const {
    throw SettingsError(
        {.what = "a recipe with " + what + " trains a module that is cut over processes",
         .where = name_,
         .why = "it takes each process's shard of a weight for the whole",
         .fix = "Remove it, or use a Grid with tensor = 1. Optimizers and clipping "
                "must treat each element by itself: AdamW, Adam, SGD, Adagrad, "
                "ClipNorm, ClipValue. In a policy of your own that does, write "
                "`using properties = frugal::list<frugal::property::works_on_parts>;`."});
  }

  /// What a rank knows alone: it may have got a notice. All ranks of a copy must have the same loss.
  void agree_with_shards(SharedWindow& phase) {
    double loss = 0;
    for (MicroBatchRecord const& each : phase.records) {
      if (each.weight != 0) loss += each.loss.template item<double>() * each.weight;
    }
    ShardedModule::Verdict const all =
        cut_->agree({.preempts = phase.preempts, .fails = phase.fails, .loss = loss});
    phase.preempts = all.preempts;
    phase.fails = all.fails;
  }

  void shard(FitRun& phase) {
    if constexpr (shards) {
      if (all_.size() == 1) return;
      ShardedParameters::Settings settings{.bucket = groups_.bytes};
      if (groups_.layers != 0) {
        require_same_module(phase, "the module");  // later their weights are not there
        settings.layers = layer_weights(base_module(phase.module()), groups_.layers);
        phase.run_state().together.held_parts = [this](at::Tensor const& parameter) {
          return sharded_->held(parameter);
        };
      }
      sharded_.emplace(all_, phase.parameters(), std::move(settings));
      phase.update_parts(&sharded_->parts());
      RunState& run = phase.run_state();
      run.together.whole_tensor = [this, &run](at::Tensor const& mine, TensorPart const& which) {
        return sharded_->whole(mine, which, run.together.side_by_side);
      };
      run.together.board = everyone_.save_board();
    }
  }
  void unshard(FitRun& phase) {
    phase.update_parts(nullptr);
    phase.run_state().together.busy = nullptr;
    phase.run_state().together.first_says = nullptr;
    phase.run_state().together.whole_tensor = nullptr;
    phase.run_state().together.board = nullptr;
    phase.run_state().together.held_parts = nullptr;
    if (sharded_) sharded_->release();
    sharded_.reset();
    cut_.reset();
  }

  void require_same_module(Phase const& phase, char const* what) {
    if (cut_) cut_->require_same_copies(base_module(phase.module()), what);
    if (all_.size() == 1) return;
    require_same_run(all_, {{what, module_identity(base_module(phase.module()))}});
  }

  [[noreturn]] void refuse_whole_windows() const {
    throw SettingsError({.what = "a process has trained " + std::to_string(trained_) +
                                 " micro-batches of a window, and its share is " +
                                 std::to_string(own_.count),
                         .where = name_,
                         .why = "this caller of the loop does not divide its source",
                         .fix = "Train with Trainer::fit."});
  }

  void begin_window(Phase const& phase) {
    parameters_.clear();
    for (at::Tensor const& each : phase.parameters().tensors) {
      if (each.requires_grad()) parameters_.push_back(each);
    }
    if (sharded_) require_sharded();
    Counters const& now = phase.counters();
    all_.set_place({.epoch = now.epoch, .position = now.position, .step = now.step});
    gradients_.begin(parameters_, sharded_ ? &*sharded_ : nullptr);
    batch_norms_.begin_window();
    trained_ = 0;
  }

  void require_sharded() const {
    if (sharded_->holds(parameters_)) [[likely]]
      return;
    throw ModuleError(
        {.what = "a step trains other parameters than the run began with, or they have moved",
         .where = "Shard",
         .why = "requires_grad or the memory of a parameter (set_data, to) has changed, and the "
                "processes have divided the parameters",
         .fix = "Do that before fit, or leave Shard out."});
  }

  /// In all processes, in the window after a save of one of them.
  void has_saved(RunState const& run) {
    std::uint64_t const step = run.counters().step;
    if constexpr (has_replicas) {
      bool const divided = shards || cut_;  // each process has the moments of its own parts
      replicas_.compare(all_, run, step,
                        divided ? CommonMoments{} : SameReplicas::of_optimizer(run));
    } else if (!saved_) {
      saved_ = step;
    }
  }

  /// The one message of a step beside the gradients. Says of each rank whether it has gradients.
  std::vector<bool> exchange_records(SharedWindow& phase) {
    WindowMessage const message(own_.count, parameters_.size());
    std::vector<MicroBatchRecord>& records = phase.records;
    std::vector<MicroBatchNumbers> own;
    bool has_scalars = false;
    for (MicroBatchRecord const& each : records) {
      own.push_back({.loss = each.weight == 0 ? 0.0 : each.loss.template item<double>(),
                     .weight = each.weight,
                     .samples = each.samples,
                     .tokens = each.tokens});
      has_scalars = has_scalars || !each.scalars.empty();
    }
    std::string const scalars = written_scalars(records);
    at::Tensor const rows =
        gradients_.exchange(message.pack(own, has_gradient_, phase.preempts, phase.fails,
                                         has_scalars, replicas_.has_saved(phase.run_state()),
                                         WindowStamp::of(windows_, all_.place(), phase.consumed)));
    has_scalars = false;
    std::vector<bool> counts;
    std::vector<WindowMessage::Part> parts;
    for (std::int64_t rank = 0; rank < all_.size(); ++rank) {
      WindowMessage::Part const& part = parts.emplace_back(message.unpack(rows[rank]));
      counts.push_back(part.counts());
      phase.preempts = phase.preempts || part.preempts;
      phase.fails = phase.fails || part.fails;
      has_scalars = has_scalars || part.has_scalars;
      for (std::size_t i = 0; i < has_gradient_.size(); ++i) {
        has_gradient_[i] = has_gradient_[i] || part.has_gradient[i];
      }
    }
    require_one_window(all_, parts, phase.consumed);
    ++windows_;
    if (std::ranges::any_of(parts,
                            [](WindowMessage::Part const& each) { return each.has_saved; })) {
      has_saved(phase.run_state());
    }
    std::vector<std::size_t> const places = places_in_window(parts);
    records.clear();
    records.resize(places.size());
    auto place = places.begin();
    for (WindowMessage::Part const& part : parts) {
      for (MicroBatchNumbers const& each : part.micro_batches) {
        MicroBatchRecord& record = records[*place++];
        record.loss = at::full({}, each.loss, at::TensorOptions(at::kDouble));
        record.weight = each.weight;
        record.samples = each.samples;
        record.tokens = each.tokens;
      }
    }
    if (has_scalars) {
      read_scalars(gather_texts(all_, scalars, "the scalars of losses"), places, records);
    }
    return counts;
  }

  bool in_rounds() const { return own_.stride != 1; }
  /// Where the micro-batches of each process are in the window, process by process.
  std::vector<std::size_t> places_in_window(std::vector<WindowMessage::Part> const& parts) const {
    std::vector<std::size_t> places;
    for (std::size_t rank = 0; rank < parts.size(); ++rank) {
      for (std::size_t k = 0; k < parts[rank].micro_batches.size(); ++k) {
        // Rounds before an incomplete one are complete, so this numbers all without a gap.
        places.push_back(in_rounds() ? k * parts.size() + rank : places.size());
      }
    }
    return places;
  }

  /// Of random numbers: a micro-batch draws the same in whatever process it is trained.
  std::uint64_t key(Phase const& phase, std::uint64_t micro_batch) const {
    Counters const& at = phase.counters();
    std::array<std::uint64_t, 4> const all{phase.settings().seed, at.epoch, at.position,
                                           micro_batch};
    return Hash::of(std::as_bytes(std::span(all)));
  }

  MicroBatches own_;
  char const* name_;
  Groups groups_;
  BatchNorms batch_norms_;
  std::vector<at::Tensor> parameters_;  // those that are trained, in this window
  std::vector<bool> has_gradient_;
  std::optional<ShardedParameters> sharded_;
  std::optional<ShardedModule> cut_;
  std::uint64_t trained_ = 0;  // own micro-batches of this window so far
  std::uint64_t windows_ = 0;  // of this fit, before this one
};

}  // namespace frugal::detail
