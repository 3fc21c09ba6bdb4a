// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/ATen.h>
#include <ATen/Context.h>
#include <ATen/core/grad_mode.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <span>
#include <string>
#include <typeinfo>
#include <utility>
#include <vector>

#include <frugal/base/hash.hpp>
#include <frugal/cluster/communicator.hpp>
#include <frugal/cluster/exact_sum.hpp>
#include <frugal/cluster/knows_ranks.hpp>
#include <frugal/cluster/pairwise_sum.hpp>
#include <frugal/cluster/same_run.hpp>
#include <frugal/cluster/window_message.hpp>
#include <frugal/core/compose/about.hpp>
#include <frugal/core/compose/policy.hpp>
#include <frugal/core/libtorch/batch_norms.hpp>
#include <frugal/core/loop/recipe_traits.hpp>
#include <frugal/core/run/phases.hpp>
#include <frugal/core/run/window_phases.hpp>
#include <frugal/data/data_identity.hpp>
#include <frugal/error.hpp>
#include <frugal/model/module_identity.hpp>
#include <frugal/policy/kinds.hpp>
#include <frugal/policy/replicate/none.hpp>

namespace frugal {

/// Option of Replicate: gradients are added up in one fixed order, whatever the number of processes.
struct Exact;

namespace detail {

/// The processes that the launcher has started, joined once.
inline std::shared_ptr<Communicator> communicator_of_environment() {
  // Not destroyed: its threads would outlive what they use.
  static auto const& one =
      *new std::shared_ptr<Communicator>(Communicator::join(World::from_environment()));
  return one;
}

/// Those of a window that a rank trains. SettingsError unless the division leaves each a block that
/// is a node of the tree of PairwiseSum.
inline MicroBatches exact_share(World const& world, int micro_batches) {
  int const each = micro_batches / world.size;
  bool const divides = each * world.size == micro_batches;
  bool const is_node = world.size == 1 || std::has_single_bit(static_cast<unsigned>(each));
  if (!divides || !is_node) {
    throw SettingsError(
        {.what = std::to_string(world.size) + " processes cannot share windows of " +
                 std::to_string(micro_batches) + " micro-batches",
         .where = "Replicate<Exact>",
         .why = divides ? "each would have " + std::to_string(each) +
                              ", and the order of the sums is fixed for 1, 2, 4, 8 and so on"
                        : "each must have the same number of them",
         .fix = "Use Accumulate<N> with N = processes x 1, 2, 4 or 8; N is the number of "
                "micro-batches of a step in all processes."});
  }
  return {.first = static_cast<std::uint64_t>(world.rank * each),
          .count = static_cast<std::uint64_t>(each)};
}

}  // namespace detail

/// Trains one module in several processes, which share each window's micro-batches: the same weights
/// come out, bit for bit, of 1, 2, 4 or 8 processes.
///
/// `Accumulate<N>` is the number of micro-batches of a step in all processes together. Rank r of W
/// trains the N/W from r N/W on. Gradients are added up in a fixed tree over the N micro-batches,
/// random numbers are keyed by seed, position and micro-batch, and losses are added in the window's
/// order. So schedules, cadences, cursors and losses do not depend on the number of processes.
///
/// Bits    equal if micro-batches, thread counts (OMP_NUM_THREADS) and kernels are equal: the same
///         kind of processor, or of GPU.
/// Cost    sends 2 (W - 1) / W of the gradients' bytes per step; memory: two copies of the
///         gradients, and log2(N / W) more.
/// State   none.
/// Errors  SettingsError for an N that the processes cannot share, ModuleError for BatchNorm in
///         training, ClusterError for ranks with other seeds, data, recipes or weights, for one
///         that ends, and if a module's buffers come out different. A policy that knows no ranks
///         does not compile.
template <>
struct Replicate<Exact> {
  using kind = kinds::replicate;
  using listens = list<on::fit_begin, on::ready, on::fit_end, around::micro_batch>;
  using provides = list<service::reduce, service::share>;
  using demands = list<detail::KnowsRanks>;

  static constexpr bool has_ranks = true;
  static constexpr About about{Term::hours_per_run, "an exchange of all gradients per step"};

  /// The processes; null: those that the launcher has started (World::from_environment).
  std::shared_ptr<Communicator> with{};

  MicroBatches own(int micro_batches) const {
    return detail::exact_share(communicator().world(), micro_batches);
  }
  Communicator& communicator() const {
    return with ? *with : *detail::communicator_of_environment();
  }

  template <class Context>
  class State;
};

template <class Context>
class Replicate<Exact>::State {
  static constexpr int window = detail::traits_of<Context>::batches;

 public:
  using transient = void;

  explicit State(Replicate const& settings)
      : all_(settings.communicator()), sum_(all_), own_(settings.own(window)) {}

  void on_fit_begin(FitBegin<Context>& phase) {
    refuse_batch_norm(base_module(phase.module()));
    if (all_.size() == 1) return;
    std::vector<std::pair<std::string, std::string>> values{
        {"the seed", std::to_string(phase.settings().seed)},
        {"the number of steps", std::to_string(phase.horizon().steps)},
        {"the recipe", std::string(typeid(typename Context::policies).name())}};
    std::string data;
    DataIdentity const identity = phase.run_state().loop->identify_data();
    for (auto const& [name, value] : identity.values()) {
      data += (data.empty() ? "" : ", ") + name + " " + value;
    }
    values.emplace_back("the data", data);
    detail::require_same_run(all_, values);
  }

  void on_ready(Ready<Context>& phase) { require_same_module(phase, "the module"); }
  void on_fit_end(FitEnd<Context>& phase) { require_same_module(phase, "the trained module"); }

  bool is_first() const { return all_.rank() == 0; }
  std::string from_first(std::string const& text) {
    return detail::gather_texts(all_, text, "a text of the first process").front();
  }

  template <class Next>
  void around_micro_batch(MicroBatchRun<Context> const& phase, Next&& next) {
    if (phase.first) begin_window(phase);
    at::manual_seed(key(phase, own_.first + trained_++));
    next();
    take_gradients();
  }

  void join(SharedWindow<Context>& phase) {
    if (trained_ == 0) begin_window(phase);  // it had no micro-batch here
    if (trained_ > own_.count) refuse_whole_windows();
    detail::WindowMessage const message(own_.count, parameters_.size());
    std::vector<bool> counts;
    if (all_.size() == 1) {
      counts = {true};
    } else {
      counts = exchange_records(message, phase.records);
    }
    std::vector<at::Tensor> gradients = tree_.take();
    bool const any = std::ranges::find(counts, true) != counts.end();
    if (all_.size() > 1 && any) gradients = sum_.sum(parameters_, gradients, counts);
    for (std::size_t i = 0; i < gradients.size(); ++i) {
      if (has_gradient_[i]) parameters_[i].mutable_grad() = gradients[i];
    }
    trained_ = 0;
    // What draws random numbers until the next window draws the same in every process.
    at::manual_seed(key(phase, static_cast<std::uint64_t>(window)));
  }

  double reduce(Quantity what, double value) {
    at::Tensor const values = all_.gather(at::full({1}, value, at::kDouble), "a verdict");
    double result = is_verdict(what) ? -std::numeric_limits<double>::infinity() : 0;
    for (std::int64_t rank = 0; rank < all_.size(); ++rank) {
      double const each = values[rank].template item<double>();
      if (std::isnan(each)) return each;
      result = is_verdict(what) ? std::max(result, each) : result + each;
    }
    return result;
  }
  at::Tensor reduce(Quantity what, at::Tensor value) {
    if (all_.size() == 1) return value;
    at::Tensor mine = value.contiguous().view(-1);
    at::Tensor all = at::empty({all_.size() * mine.numel()}, mine.options());
    all_.collect(all, mine, "a flag");
    at::Tensor const rows = all.view({all_.size(), -1});
    return (is_verdict(what) ? rows.amax(0) : rows.sum(0)).view(value.sizes()).to(value.dtype());
  }

 private:
  static void refuse_batch_norm(torch::nn::Module& module) {
    detail::each_batch_norm(module, [](auto const& layer) {
      if (!layer.is_training()) return;
      throw ModuleError(
          {.what = "the module has BatchNorm in training",
           .where = "Replicate<Exact>",
           .why = "its statistics are those of the samples that one process has, so "
                  "they would differ between processes",
           .fix = "Use LayerNorm or GroupNorm, or put the layer in evaluation mode."});
    });
  }

  void require_same_module(Phase<Context> const& phase, char const* what) {
    if (all_.size() == 1) return;
    detail::require_same_run(all_, {{what, module_identity(base_module(phase.module()))}});
  }

  [[noreturn]] void refuse_whole_windows() const {
    throw SettingsError({.what = "a process has trained " + std::to_string(trained_) +
                                 " micro-batches of a window, and its share is " +
                                 std::to_string(own_.count),
                         .where = "Replicate<Exact>",
                         .why = "this caller of the loop does not divide its source",
                         .fix = "Train with Trainer::fit."});
  }

  void begin_window(Phase<Context> const& phase) {
    parameters_.clear();
    for (at::Tensor const& each : phase.parameters().tensors) {
      if (each.requires_grad()) parameters_.push_back(each);
    }
    has_gradient_.assign(parameters_.size(), false);
    trained_ = 0;
  }

  /// A micro-batch without any gradient is a mean over nothing: it has its place in the tree.
  void take_gradients() {
    std::vector<at::Tensor> gradients;
    bool any = false;
    for (std::size_t i = 0; i < parameters_.size(); ++i) {
      at::Tensor& gradient = parameters_[i].mutable_grad();
      any = any || gradient.defined();
      has_gradient_[i] = has_gradient_[i] || gradient.defined();
      gradients.push_back(gradient.defined() ? std::exchange(gradient, at::Tensor())
                                             : at::zeros_like(parameters_[i]));
    }
    if (any) {
      tree_.add(std::move(gradients));
    } else {
      tree_.add_nothing();
    }
  }

  /// Says of each rank whether it has gradients.
  std::vector<bool> exchange_records(detail::WindowMessage const& message,
                                     std::vector<MicroBatchRecord>& records) {
    std::vector<detail::MicroBatchNumbers> own;
    for (MicroBatchRecord const& each : records) {
      own.push_back({.loss = each.weight == 0 ? 0.0 : each.loss.template item<double>(),
                     .weight = each.weight,
                     .samples = each.samples,
                     .tokens = each.tokens});
    }
    at::Tensor const rows = all_.gather(message.pack(own, has_gradient_), "the losses of a step");
    records.clear();
    std::vector<bool> counts;
    for (std::int64_t rank = 0; rank < all_.size(); ++rank) {
      detail::WindowMessage::Part const part = message.unpack(rows[rank]);
      counts.push_back(part.counts());
      for (detail::MicroBatchNumbers const& each : part.micro_batches) {
        records.push_back({.loss = at::full({}, each.loss, at::TensorOptions(at::kDouble)),
                           .weight = each.weight,
                           .samples = each.samples,
                           .tokens = each.tokens});
      }
      for (std::size_t i = 0; i < has_gradient_.size(); ++i) {
        has_gradient_[i] = has_gradient_[i] || part.has_gradient[i];
      }
    }
    return counts;
  }

  /// Of random numbers: a micro-batch draws the same in whatever process it is trained.
  std::uint64_t key(Phase<Context> const& phase, std::uint64_t micro_batch) const {
    Counters const& at = phase.counters();
    std::array<std::uint64_t, 4> const all{phase.settings().seed, at.epoch, at.position,
                                           micro_batch};
    return Hash::of(std::as_bytes(std::span(all)));
  }

  Communicator& all_;
  detail::ExactSum sum_;
  MicroBatches own_;
  PairwiseSum tree_;
  std::vector<at::Tensor> parameters_;  // those that are trained, in this window
  std::vector<bool> has_gradient_;
  std::uint64_t trained_ = 0;  // own micro-batches of this window so far
};

}  // namespace frugal
