// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>
#include <c10/core/ScalarType.h>
#include <torch/csrc/autograd/function_hook.h>
#include <torch/csrc/autograd/variable.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include <frugal/base/hash.hpp>
#include <frugal/cluster/communicator.hpp>
#include <frugal/cluster/replicate/state.hpp>
#include <frugal/cluster/shard/sharded_parameters.hpp>
#include <frugal/cluster/tensors/exact_sum.hpp>
#include <frugal/cluster/tensors/flat_tensors.hpp>
#include <frugal/core/run/services.hpp>
#include <frugal/error.hpp>

namespace frugal::detail {

/// A window's gradients, of which each process keeps the sums of its own part (ZeRO, stage 2).
///
/// Every micro-batch is exchanged by itself, while its backward pass goes on, in the groups of
/// ShardedParameters. The processes train micro-batches 0 to W - 1 at one time, then W to 2 W - 1, and so on: what a process
/// receives of one round is a branch of the tree of PairwiseSum, if W is a power of two.
///
/// Where they have parts of weights, too (LayerWeights), collections of these come in between. A process
/// without a micro-batch in a round takes part in all that as in its last micro-batch.
///
/// Memory  1/W of the gradients, and log2(rounds) more; the gradients of one group, and two groups
///         that travel.
class ScatteredGradients {
 public:
  struct Settings {
    std::size_t micro_batches = 1;  ///< of a process in a window
    /// In which floating-point gradients travel; Undefined: their own type.
    at::ScalarType wire = at::ScalarType::Undefined;
    char const* name = "Replicate";  ///< for errors
  };

  ScatteredGradients(Communicator& all, Settings const& settings)
      : all_(all), settings_(settings) {}
  ScatteredGradients(ScatteredGradients const&) = delete;
  ScatteredGradients& operator=(ScatteredGradients const&) = delete;
  ~ScatteredGradients() { forget(); }

  /// `sharded` has these parameters; null in a world of one.
  void begin(std::vector<at::Tensor> const& parameters, ShardedParameters* sharded) {
    if (!fits(parameters, sharded)) make(parameters, sharded);
    has_.assign(parameters_.size(), false);
    whole_.take();
    travelling_.clear();
    for (Bucket& bucket : buckets_) bucket.sum.take();
    rounds_ = 0;
    window_order_.clear();
  }

  /// The passes of a micro-batch begin. `unit` is what gradients are multiplied by when they come.
  void before(bool, double const& unit) {
    takes_ = overlaps_;
    unit_ = &unit;
    came_.assign(parameters_.size(), false);
    next_ = 0;
    for (Bucket& bucket : buckets_) {
      bucket.missing = bucket.group->indices.size();
      bucket.travels = false;
    }
    if (!has_layers()) return;
    order_.clear();
    sharded_->layers().record(&order_);
  }
  /// They have ended: what has not begun to travel does.
  void after() {
    takes_ = false;
    bool any = false;
    for (std::size_t i = 0; i < parameters_.size(); ++i) {
      at::Tensor gradient = std::exchange(parameters_[i].mutable_grad(), at::Tensor());
      if (gradient.defined()) keep(i, std::move(gradient));
      any = any || came_[i];
    }
    if (all_.size() == 1) {
      add_whole(any);
    } else if (has_layers()) {
      sharded_->layers().empty_all();
      sharded_->layers().record(nullptr);
      if (any) {
        exchange_rest(true);
        complete_order_ = order_;
      } else {
        // A loss of weight 0 has no backward pass, and the others collect weights for theirs.
        serve(order_.size());
      }
      note_order();
    } else {
      exchange_rest(any);
    }
    ++rounds_;
  }

  std::vector<bool> const& has() const { return has_; }

  /// Takes part in the rounds for which this process has no micro-batch.
  void begin_rest() {
    if (all_.size() == 1) return;
    for (; rounds_ < settings_.micro_batches; ++rounds_) {
      for (Bucket& bucket : buckets_) bucket.travels = false;
      if (has_layers()) {
        order_.clear();
        serve(0);
        note_order();
      } else {
        exchange_rest(/*any=*/false);
      }
    }
  }
  /// A message to all processes, while gradients travel: [processes, n].
  at::Tensor exchange(at::Tensor const& message) {
    if (!has_layers()) return all_.gather(message, "the losses of a step", /*after_tensors=*/true);
    // Processes that have collected other weights at the same time have computed with wrong ones.
    at::Tensor const order =
        at::full({1}, static_cast<std::int64_t>(Hash::of(std::as_bytes(std::span(window_order_)))),
                 message.options());
    at::Tensor const rows =
        all_.gather(at::cat({message, order}), "the losses of a step", /*after_tensors=*/true);
    at::Tensor const orders = rows.select(1, message.numel());
    if (!orders.eq(orders[0]).all().item<bool>()) refuse_order();
    return rows.narrow(1, 0, message.numel()).contiguous();
  }

  /// In which order a micro-batch collects weights, numbers from 0 on, and exchanges groups, from -1
  /// down: a checkpoint has it, for a process that begins with a round for which it has none.
  std::vector<std::int32_t>& order() { return complete_order_; }

  /// The sums of a world of one, in the order of the parameters.
  std::vector<at::Tensor> sum(std::vector<bool> const&) { return whole_.take(); }
  /// This process's parts of the sums.
  std::vector<at::Tensor> own_sum(std::vector<bool> const&, ShardedParameters const&) {
    while (!travelling_.empty()) receive();
    std::vector<at::Tensor> sums(parameters_.size());
    for (Bucket& bucket : buckets_) {
      at::Tensor const part = bucket.sum.take().front();
      for (std::size_t k = 0; k < bucket.group->indices.size(); ++k) {
        sums[bucket.group->indices[k]] = bucket.group->flat.layout().slice(k, all_.rank(), part);
      }
    }
    return sums;
  }

 private:
  struct Bucket {
    FlatGroups::Group* group = nullptr;
    std::optional<std::size_t> layer{};  ///< whose weight it is, in LayerWeights
    PairwiseSum sum{};                   ///< over rounds, of the own part
    std::size_t missing = 0;             ///< gradients that have not come in this pass
    bool travels = false;                ///< has begun to in this pass
  };
  /// A bucket of one micro-batch, on its way.
  struct Travelling {
    Bucket* bucket = nullptr;
    at::Tensor sent{};
    at::Tensor received{};  ///< the own part, of each process
    c10::intrusive_ptr<c10d::Work> work{};
  };
  static constexpr std::size_t most_travelling = 2;

  /// Called by autograd when a parameter has its gradient.
  class Hook final : public torch::autograd::PostAccumulateGradHook {
   public:
    Hook(ScatteredGradients& owner, std::size_t index) : owner_(owner), index_(index) {}
    void operator()(torch::autograd::Variable const&) override { owner_.take(index_); }

   private:
    ScatteredGradients& owner_;
    std::size_t index_;
  };

  void take(std::size_t i) {
    if (!takes_) return;
    at::NoGradGuard const no_gradients;
    if (came_[i]) {
      throw ModuleError(
          {.what = "a parameter gets a second gradient in one micro-batch",
           .where = settings_.name,
           .why =
               "the objective calls backward() itself, and the first gradient may travel already",
           .fix = "Let the objective return one loss, or use Shard<States>."});
    }
    at::Tensor gradient = std::exchange(parameters_[i].mutable_grad(), at::Tensor());
    if (*unit_ != 1) gradient.mul_(*unit_);
    keep(i, std::move(gradient));
    Bucket& bucket = buckets_[bucket_of_[i]];
    --bucket.missing;
    if (bucket.layer) sharded_->layers().has_gradient(*bucket.layer);
    if (has_layers()) {
      // The others collect the same weights in the same order, and may lack another gradient: it would
      // hold up a collection that they wait for.
      if (bucket.layer) start(bucket, /*any=*/true);
      return;
    }
    while (next_ < buckets_.size() && buckets_[next_].missing == 0) {
      start(buckets_[next_++], /*any=*/true);
    }
  }

  void keep(std::size_t i, at::Tensor gradient) {
    require_dense(gradient);
    came_[i] = has_[i] = true;
    kept_[i] = std::move(gradient);
  }

  void add_whole(bool any) {
    if (!any) return whole_.add_nothing();
    std::vector<at::Tensor> gradients;
    for (std::size_t i = 0; i < parameters_.size(); ++i) {
      at::Tensor gradient = std::exchange(kept_[i], at::Tensor());
      gradients.push_back(gradient.defined() ? std::move(gradient)
                                             : at::zeros_like(parameters_[i]));
    }
    whole_.add(std::move(gradients));
  }

  /// `any`: whether this process has a micro-batch with gradients in this round. Without one it adds
  /// -0, which changes no number: not even -0, as 0 would.
  void start(Bucket& bucket, bool any) {
    at::NoGradGuard const no_gradients;
    bucket.travels = true;
    if (travelling_.size() == most_travelling) receive();
    if (has_layers()) order_.push_back(-1 - static_cast<std::int32_t>(&bucket - buckets_.data()));
    std::vector<std::size_t> const& members = bucket.group->indices;
    FlatLayout const& layout = bucket.group->flat.layout();
    at::Tensor const& like = parameters_[members.front()];
    bool const is_narrow = settings_.wire != at::ScalarType::Undefined &&
                           at::elementSize(like.scalar_type()) > at::elementSize(settings_.wire);
    auto const options =
        like.options().requires_grad(false).dtype(is_narrow ? settings_.wire : like.scalar_type());
    Travelling one{.bucket = &bucket};
    if (any) {
      one.sent = at::zeros({layout.length()}, options);
      std::vector<at::Tensor> places, gradients;
      for (std::size_t k = 0; k < members.size(); ++k) {
        std::size_t const i = members[k];
        if (!kept_[i].defined()) continue;
        places.push_back(layout.view(k, one.sent, bucket.group->flat.views()[k]));
        gradients.push_back(std::exchange(kept_[i], at::Tensor()));
      }
      if (!places.empty()) at::_foreach_copy_(places, gradients);
    } else {
      one.sent = at::full({layout.length()}, -0.0, options);
    }
    one.received = at::empty_like(one.sent);
    one.work = all_.start_exchange(one.received, one.sent, name);
    travelling_.push_back(std::move(one));
  }

  /// Adds up the round of the bucket that travels for the longest time.
  void receive() {
    at::NoGradGuard const no_gradients;
    Travelling one = std::move(travelling_.front());
    travelling_.pop_front();
    if (one.work) all_.complete(one.work, name);
    at::Tensor const all =
        one.received.to(parameters_[one.bucket->group->indices.front()].scalar_type());
    std::int64_t const length = one.bucket->group->flat.layout().part_length();
    PairwiseSum tree;
    for (std::int64_t rank = 0; rank < all_.size(); ++rank) {
      tree.add({all.narrow(0, rank * length, length)});
    }
    // A copy: what was received is not kept.
    one.bucket->sum.add({tree.take().front().clone()});
  }

  bool has_layers() const { return sharded_ != nullptr && sharded_->layers().size() != 0; }

  /// Exchanges what this pass has not exchanged yet.
  void exchange_rest(bool any) {
    for (Bucket& bucket : buckets_) {
      if (!bucket.travels) start(bucket, any);
    }
  }
  /// Takes part in what others do in a round, from this place of the order on, without gradients.
  void serve(std::size_t from) {
    if (complete_order_.size() <= from) refuse_unknown_order();
    for (std::size_t k = from; k < complete_order_.size(); ++k) {
      std::int32_t const each = complete_order_[k];
      if (each < 0) {
        auto const bucket = static_cast<std::size_t>(-1 - each);
        if (bucket >= buckets_.size()) refuse_unknown_order();
        start(buckets_[bucket], /*any=*/false);
      } else {
        if (static_cast<std::size_t>(each) >= sharded_->layers().size()) refuse_unknown_order();
        order_.push_back(each);
        sharded_->layers().serve(each);
      }
    }
  }
  void note_order() { window_order_.insert(window_order_.end(), order_.begin(), order_.end()); }

  [[noreturn]] void refuse_order() const {
    throw ModuleError(
        {.what = "the processes have collected weights of other layers at the same time",
         .where = settings_.name,
         .why = "micro-batches that are trained at the same time must call the same layers in the "
                "same order, and a forward pass depends on its data",
         .fix = "Use Shard<States, Grads>, which leaves weights whole."});
  }
  [[noreturn]] void refuse_unknown_order() const {
    throw SettingsError(
        {.what = "process " + std::to_string(all_.rank()) +
                 " does not know which weights the others collect, and when",
         .where = settings_.name,
         .why =
             "it has had no micro-batch with gradients yet in this run, and none in this window; a "
             "checkpoint has the order if its run had Params, several processes and a window",
         .fix = "Resume with Shard<States, Grads> until the epoch ends, or give an epoch as many "
                "batches as a multiple of Accumulate<N>."});
  }

  bool fits(std::vector<at::Tensor> const& parameters, ShardedParameters const* sharded) const {
    if (parameters.size() != parameters_.size() || sharded != sharded_) return false;
    for (std::size_t i = 0; i < parameters.size(); ++i) {
      if (!parameters[i].is_same(parameters_[i])) return false;
    }
    return true;
  }

  void make(std::vector<at::Tensor> const& parameters, ShardedParameters* sharded) {
    forget();
    parameters_ = parameters;
    sharded_ = sharded;
    kept_.resize(parameters_.size());
    bucket_of_.resize(parameters_.size());
    if (sharded_ == nullptr) return;
    for (FlatGroups::Group& group : sharded_->groups()) {
      for (std::size_t const i : group.indices) bucket_of_[i] = buckets_.size();
      buckets_.push_back({.group = &group, .layer = sharded_->layer_of(group)});
    }
    // By way of host memory an exchange waits for the others, who may still be in their backward pass.
    overlaps_ = !parameters_.empty() && !all_.goes_by_host(parameters_.front());
    if (!overlaps_) return;
    for (std::size_t i = 0; i < parameters_.size(); ++i) {
      torch::autograd::impl::set_post_acc_grad_hooks(parameters_[i],
                                                     std::make_unique<Hook>(*this, i));
    }
  }

  void forget() {
    if (overlaps_) {
      for (at::Tensor const& each : parameters_) {
        torch::autograd::impl::set_post_acc_grad_hooks(each, nullptr);
      }
    }
    overlaps_ = false;
    parameters_.clear();
    kept_.clear();
    travelling_.clear();
    buckets_.clear();
  }

  static constexpr char const* name = "the exchange of gradients";

  Communicator& all_;
  Settings settings_;
  std::vector<at::Tensor> parameters_;
  ShardedParameters* sharded_ = nullptr;
  std::vector<at::Tensor> kept_;  ///< gradients whose group waits for others
  std::vector<std::size_t> bucket_of_;
  std::vector<Bucket> buckets_;
  std::deque<Travelling> travelling_;
  PairwiseSum whole_;                         ///< in a world of one
  std::vector<bool> has_;                     ///< a gradient, in this window
  std::vector<bool> came_;                    ///< in this pass
  std::size_t next_ = 0;                      ///< the first bucket that does not travel yet
  std::size_t rounds_ = 0;                    ///< begun in this window
  std::vector<std::int32_t> order_;           ///< of a micro-batch: see order()
  std::vector<std::int32_t> complete_order_;  ///< of the last one that had gradients
  std::vector<std::int32_t> window_order_;    ///< those of a window
  bool overlaps_ = false;
  bool takes_ = false;
  double const* unit_ = nullptr;
};

/// The State of both Replicates with Shard<States, Grads> and Shard<States, Grads, Params>: what they
/// differ in is the worlds that they allow.
template <class Context>
class ScatteringState : public ReplicateState<Context, ScatteredGradients, /*shards=*/true> {
 public:
  using Base = ReplicateState<Context, ScatteredGradients, true>;

  template <class Settings>
  ScatteringState(Settings const& settings, MicroBatches const& own, char const* name, bool gathers,
                  c10::ScalarType wire)
      : Base(settings.communicator(), own, name,
             {.bytes = positive(settings.bucket_bytes, name),
              .layers = gathers ? std::max<std::int64_t>(settings.whole_below, 1) : 0},
             ScatteredGradients::Settings{.micro_batches = own.count, .wire = wire, .name = name}) {
  }

 private:
  static std::int64_t positive(std::int64_t bytes, char const* name) {
    if (bytes > 0) return bytes;
    throw SettingsError({.what = "bucket_bytes is " + std::to_string(bytes),
                         .where = name,
                         .why = "a bucket has at least one gradient",
                         .fix = "Set 1 or more; 25 MiB is the default."});
  }
};

/// Without parts of weights it has nothing to save.
template <class Context>
struct TransientScatteringState : ScatteringState<Context> {
  using transient = void;

  template <class Settings>
  TransientScatteringState(Settings const& settings, MicroBatches const& own, char const* name,
                           c10::ScalarType wire = c10::ScalarType::Undefined)
      : ScatteringState<Context>(settings, own, name, false, wire) {}
};

/// With parts of weights a process that resumes in the last window of an epoch must know what the
/// others collect.
template <class Context>
struct GatheringState : ScatteringState<Context> {
  using dispensable = void;

  template <class Settings>
  GatheringState(Settings const& settings, MicroBatches const& own, char const* name,
                 c10::ScalarType wire = c10::ScalarType::Undefined)
      : ScatteringState<Context>(settings, own, name, true, wire) {}

  template <class Archive>
  void persist(Archive& archive) {
    archive("order", this->gradients_.order());
  }
};

template <class Context, bool gathers>
using scattering_state =
    std::conditional_t<gathers, GatheringState<Context>, TransientScatteringState<Context>>;

}  // namespace frugal::detail
