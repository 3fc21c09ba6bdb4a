// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/ATen.h>
#include <c10/core/ScalarType.h>
#include <torch/csrc/autograd/function_hook.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
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
  void begin(std::vector<at::Tensor> const& parameters, ShardedParameters* sharded);

  /// The passes of a micro-batch begin. `unit` is what gradients are multiplied by when they come.
  void before(bool, double const& unit);
  /// They have ended: what has not begun to travel does.
  void after();

  std::vector<bool> const& has() const { return has_; }

  /// Takes part in the rounds for which this process has no micro-batch.
  void begin_rest();
  /// A message to all processes, while gradients travel: [processes, n].
  at::Tensor exchange(at::Tensor const& message);

  /// In which order a micro-batch collects weights, numbers from 0 on, and exchanges groups, from -1
  /// down: a checkpoint has it, for a process that begins with a round for which it has none.
  std::vector<std::int32_t>& order() { return complete_order_; }

  /// The sums of a world of one, in the order of the parameters.
  std::vector<at::Tensor> sum(std::vector<bool> const&) { return whole_.take(); }
  /// This process's parts of the sums.
  std::vector<at::Tensor> own_sum(std::vector<bool> const&, ShardedParameters const&);

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

  void take(std::size_t i);

  void keep(std::size_t i, at::Tensor gradient) {
    require_dense(gradient);
    came_[i] = has_[i] = true;
    kept_[i] = std::move(gradient);
  }

  void add_whole(bool any);

  /// `any`: whether this process has a micro-batch with gradients in this round. Without one it adds
  /// -0, which changes no number: not even -0, as 0 would.
  void start(Bucket& bucket, bool any);

  /// Adds up the round of the bucket that travels for the longest time.
  void receive();

  bool has_layers() const { return sharded_ != nullptr && sharded_->layers().size() != 0; }

  /// Exchanges what this pass has not exchanged yet.
  void exchange_rest(bool any) {
    for (Bucket& bucket : buckets_) {
      if (!bucket.travels) start(bucket, any);
    }
  }
  /// Takes part in what others do in a round, from this place of the order on, without gradients.
  void serve(std::size_t from);
  void note_order() { window_order_.insert(window_order_.end(), order_.begin(), order_.end()); }

  [[noreturn]] void refuse_order() const;
  [[noreturn]] void refuse_unknown_order() const;

  bool fits(std::vector<at::Tensor> const& parameters, ShardedParameters const* sharded) const {
    if (parameters.size() != parameters_.size() || sharded != sharded_) return false;
    for (std::size_t i = 0; i < parameters.size(); ++i) {
      if (!parameters[i].is_same(parameters_[i])) return false;
    }
    return true;
  }

  void make(std::vector<at::Tensor> const& parameters, ShardedParameters* sharded);
  void forget();

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

#ifndef FRUGAL_COMPILED
#include <frugal/cluster/shard/scattered_gradients.ipp>
#endif
