// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>
#include <torch/csrc/autograd/function_hook.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include <frugal/cluster/agreement/window_message.hpp>
#include <frugal/cluster/communicator.hpp>
#include <frugal/cluster/shard/sharded_parameters.hpp>
#include <frugal/cluster/tensors/flat_tensors.hpp>

namespace frugal::detail {

/// Messages of 64-bit numbers in a bucket of floating-point gradients that is summed over processes.
/// Each number is cut into small integers, which the bucket's type holds exactly; a process fills its
/// own row, and the others have zeros there. So the sum has every row as it was.
class BucketMessage {
 public:
  /// `type`: in which the bucket is summed. Nothing for a type that holds no such integers.
  static std::optional<BucketMessage> of(at::ScalarType type, std::int64_t processes,
                                         std::int64_t words);

  /// Elements of the bucket that they take.
  std::int64_t lanes() const { return processes_ * words_ * lanes_of_a_word_; }
  /// Where they are.
  void set_lanes(at::Tensor const& lanes) { rows_ = lanes.view({processes_, -1}); }

  /// `message`: the process's own, of the given number of words.
  void write(at::Tensor const& message, std::int64_t process) {
    rows_.zero_();
    rows_[process].copy_(message.view(lane_));
  }
  /// Those of all, after the sum: [processes, words].
  at::Tensor read() const { return rows_.to(lane_).view(at::kLong); }

 private:
  BucketMessage(at::ScalarType lane, std::int64_t processes, std::int64_t words)
      : lane_(lane),
        processes_(processes),
        words_(words),
        lanes_of_a_word_(8 / static_cast<std::int64_t>(at::elementSize(lane))) {}

  at::ScalarType lane_;  ///< a small integer
  std::int64_t processes_;
  std::int64_t words_;
  std::int64_t lanes_of_a_word_;
  at::Tensor rows_;  ///< [processes, lanes of a message]
};

/// A window's gradients in buckets, which the backend adds up over the processes while the backward
/// pass of the last micro-batch goes on.
///
/// The buckets hold the parameters from the last one on, which is about the order in which their
/// gradients come. Their sums begin in one order in all processes, as backends demand: a bucket
/// waits for those before it, and one whose gradients do not come begins after the pass.
class RingGradients {
 public:
  /// Each process may have shards of the weights (Grid): sums are taken of each element by itself.
  static constexpr bool knows_shards = true;

  struct Settings {
    std::int64_t first_bucket = std::int64_t{1} << 20;  ///< bytes: its sum begins early
    std::int64_t bucket = std::int64_t{25} << 20;       ///< bytes of the others
    bool overlaps = true;
    /// In which floating-point gradients travel; Undefined: their own type.
    at::ScalarType wire = at::ScalarType::Undefined;
    std::size_t micro_batches = 1;  ///< of a process in a window: its message has all of them
  };

  RingGradients(Communicator& all, Settings const& settings) : all_(all), settings_(settings) {
    settings_.first_bucket = std::min(settings_.first_bucket, settings_.bucket);
  }
  RingGradients(RingGradients const&) = delete;
  RingGradients& operator=(RingGradients const&) = delete;
  ~RingGradients() { forget(); }

  /// `words`: of a message of this window, if it is of other length than a window's of these
  /// parameters.
  void begin(std::vector<at::Tensor> const& parameters, ShardedParameters const*,
             std::size_t words = 0);

  /// The passes of a micro-batch begin. After the last one of this process nothing is added to a
  /// gradient, so its sum may begin. `unit` is what gradients are multiplied by when they come.
  void before(bool is_last, double const& unit) {
    takes_ = is_last && overlaps_;
    unit_ = &unit;
  }
  /// Takes the gradients that are left.
  void after();

  std::vector<bool> const& has() const { return has_; }

  /// Begins the sums that the backward pass has not begun, but for a bucket that takes the message. To
  /// be called before this process waits for another one in any other way: that one may wait for
  /// these.
  void begin_rest() {
    if (all_.size() == 1) return;
    while (next_ < early_buckets()) start(buckets_[next_++]);
  }

  /// A message to all processes: [processes, n]. In host memory it travels in the last bucket, where a
  /// process has numbers and the others zeros, so that a step has no exchange for it alone.
  at::Tensor exchange(at::Tensor const& message);

  /// The sums, in the order of the parameters. They are memory of the buckets, which the next window
  /// overwrites.
  std::vector<at::Tensor> sum(std::vector<bool> const&) {
    at::NoGradGuard const no_gradients;
    for (Bucket& bucket : buckets_) complete(bucket);
    return places_;
  }
  /// Likewise this process's parts of the sums.
  std::vector<at::Tensor> own_sum(std::vector<bool> const& counts, ShardedParameters& sharded) {
    return sharded.parts_of(sum(counts));
  }

 private:
  struct Bucket {
    std::vector<std::size_t> members{};  ///< indices of parameters
    std::optional<FlatTensors> flat{};
    at::Tensor sent{};        ///< what travels, if it is of another type
    std::size_t missing = 0;  ///< gradients that have not come in the last pass
    c10::intrusive_ptr<c10d::Work> work{};
  };

  /// Called by autograd when a parameter has its gradient.
  class Hook final : public torch::autograd::PostAccumulateGradHook {
   public:
    Hook(RingGradients& owner, std::size_t index) : owner_(owner), index_(index) {}
    void operator()(torch::autograd::Variable const&) override { owner_.take(index_); }

   private:
    RingGradients& owner_;
    std::size_t index_;
  };

  void take(std::size_t i);

  /// Those whose sums may begin during the backward pass.
  std::size_t early_buckets() const { return buckets_.size() - (message_ ? 1 : 0); }

  void complete(Bucket& bucket) {
    if (!bucket.work) return;
    all_.complete(bucket.work, "the sum of gradients");
    bucket.work.reset();
    if (bucket.sent.defined()) bucket.flat->flat().copy_(bucket.sent);
  }

  void start(Bucket& bucket);
  bool fits(std::vector<at::Tensor> const& parameters) const;
  void make(std::vector<at::Tensor> const& parameters, std::size_t words);

  /// Gives the last bucket room for the processes' messages.
  void add_message(std::vector<at::Tensor>& like);
  void forget();

  Communicator& all_;
  Settings settings_;
  std::vector<at::Tensor> parameters_;
  std::vector<at::Tensor> places_;  ///< in the buckets, of each parameter
  std::vector<std::size_t> bucket_of_;
  std::vector<Bucket> buckets_;
  std::optional<BucketMessage> message_;  ///< in the last bucket
  std::size_t words_ = 0;                 ///< of a message; 0: that of a window
  std::vector<bool> has_;                 ///< a gradient, in this window
  std::vector<bool> came_;                ///< in the pass that is watched
  std::size_t next_ = 0;                  ///< the first bucket whose sum has not begun
  bool overlaps_ = false;
  bool takes_ = false;
  double const* unit_ = nullptr;
};

}  // namespace frugal::detail

#ifndef FRUGAL_COMPILED
#include <frugal/cluster/replicate/ring_gradients.ipp>
#endif
