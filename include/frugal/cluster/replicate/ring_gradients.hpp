// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>
#include <torch/csrc/autograd/function_hook.h>
#include <torch/csrc/autograd/variable.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include <frugal/cluster/agreement/window_message.hpp>
#include <frugal/cluster/communicator.hpp>
#include <frugal/cluster/shard/sharded_parameters.hpp>
#include <frugal/cluster/tensors/flat_tensors.hpp>
#include <frugal/error.hpp>

namespace frugal::detail {

/// Messages of 64-bit numbers in a bucket of floating-point gradients that is summed over processes.
/// Each number is cut into small integers, which the bucket's type holds exactly; a process fills its
/// own row, and the others have zeros there. So the sum has every row as it was.
class BucketMessage {
 public:
  /// `type`: in which the bucket is summed. Nothing for a type that holds no such integers.
  static std::optional<BucketMessage> of(at::ScalarType type, std::int64_t processes,
                                         std::int64_t words) {
    switch (type) {
      case at::kFloat:
      case at::kDouble:
        return BucketMessage(at::kShort, processes, words);
      case at::kBFloat16:
      case at::kHalf:
        return BucketMessage(at::kChar, processes, words);
      default:
        return std::nullopt;
    }
  }

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
             std::size_t words = 0) {
    if (words != words_ || !fits(parameters)) make(parameters, words);
    has_.assign(parameters_.size(), false);
    came_.assign(parameters_.size(), false);
    next_ = 0;
    for (Bucket& bucket : buckets_) {
      bucket.missing = bucket.members.size();
      bucket.work.reset();
    }
  }

  /// The passes of a micro-batch begin. After the last one of this process nothing is added to a
  /// gradient, so its sum may begin. `unit` is what gradients are multiplied by when they come.
  void before(bool is_last, double const& unit) {
    takes_ = is_last && overlaps_;
    unit_ = &unit;
  }
  /// Takes the gradients that are left.
  void after() {
    takes_ = false;
    at::NoGradGuard const no_gradients;
    std::vector<at::Tensor> fresh, from_fresh, more, from_more;
    for (std::size_t i = 0; i < parameters_.size(); ++i) {
      at::Tensor& gradient = parameters_[i].mutable_grad();
      if (!gradient.defined()) continue;
      require_dense(gradient);
      (has_[i] ? more : fresh).push_back(places_[i]);
      (has_[i] ? from_more : from_fresh).push_back(std::exchange(gradient, at::Tensor()));
      has_[i] = true;
    }
    if (!fresh.empty()) at::_foreach_copy_(fresh, from_fresh);
    if (!more.empty()) at::_foreach_add_(more, from_more);
  }

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
  at::Tensor exchange(at::Tensor const& message) {
    if (!message_) return all_.gather(message, "the losses of a step", /*after_tensors=*/true);
    at::NoGradGuard const no_gradients;
    message_->write(message, all_.rank());
    start(buckets_[next_++]);
    complete(buckets_.back());
    return message_->read();
  }

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

  void take(std::size_t i) {
    if (!takes_) return;
    at::NoGradGuard const no_gradients;
    Bucket& bucket = buckets_[bucket_of_[i]];
    if (came_[i]) {
      throw ModuleError(
          {.what = "a parameter gets a second gradient in one micro-batch",
           .where = "Replicate<Ring>",
           .why =
               "the objective calls backward() itself, and the sum of the first one may have begun",
           .fix = "Set Replicate<Ring>{.overlaps = false}, or use Replicate<Exact>."});
    }
    came_[i] = true;
    at::Tensor const gradient = std::exchange(parameters_[i].mutable_grad(), at::Tensor());
    require_dense(gradient);
    if (has_[i]) {
      places_[i].add_(gradient, *unit_);
    } else if (*unit_ == 1) {
      places_[i].copy_(gradient);
    } else {
      at::mul_out(places_[i], gradient, at::scalar_tensor(*unit_, gradient.options()));
    }
    has_[i] = true;
    --bucket.missing;
    while (next_ < early_buckets() && buckets_[next_].missing == 0) start(buckets_[next_++]);
  }

  /// Those whose sums may begin during the backward pass.
  std::size_t early_buckets() const { return buckets_.size() - (message_ ? 1 : 0); }

  void complete(Bucket& bucket) {
    if (!bucket.work) return;
    all_.complete(bucket.work, "the sum of gradients");
    bucket.work.reset();
    if (bucket.sent.defined()) bucket.flat->flat().copy_(bucket.sent);
  }

  void start(Bucket& bucket) {
    at::NoGradGuard const no_gradients;
    for (std::size_t const i : bucket.members) {
      if (!has_[i]) places_[i].zero_();
    }
    at::Tensor& flat = bucket.flat->flat();
    if (bucket.sent.defined()) bucket.sent.copy_(flat);
    bucket.work = all_.start_sum(bucket.sent.defined() ? bucket.sent : flat);
  }

  bool fits(std::vector<at::Tensor> const& parameters) const {
    if (parameters.size() != parameters_.size()) return false;
    for (std::size_t i = 0; i < parameters.size(); ++i) {
      bool const same = parameters[i].is_same(parameters_[i]) &&
                        parameters[i].device() == places_[i].device() &&
                        parameters[i].scalar_type() == places_[i].scalar_type();
      if (!same) return false;
    }
    return true;
  }

  void make(std::vector<at::Tensor> const& parameters, std::size_t words) {
    forget();
    words_ = words;
    parameters_ = parameters;
    places_.resize(parameters_.size());
    bucket_of_.resize(parameters_.size());
    std::vector<std::size_t> members;
    std::int64_t bytes = 0;
    auto const close = [&](bool is_last) {
      if (members.empty()) return;
      std::vector<at::Tensor> like;
      for (std::size_t const i : members) like.push_back(parameters_[i]);
      if (is_last) add_message(like);
      Bucket bucket{.members = std::exchange(members, {}), .flat = FlatTensors(like, all_.size())};
      for (std::size_t k = 0; k < bucket.members.size(); ++k) {
        places_[bucket.members[k]] = bucket.flat->views()[k];
        bucket_of_[bucket.members[k]] = buckets_.size();
      }
      at::ScalarType const type = bucket.flat->flat().scalar_type();
      if (settings_.wire != at::ScalarType::Undefined && all_.size() > 1 &&
          at::elementSize(type) > at::elementSize(settings_.wire)) {
        bucket.sent = at::empty_like(bucket.flat->flat(), settings_.wire);
      }
      buckets_.push_back(std::move(bucket));
      bytes = 0;
    };
    for (std::size_t i = parameters_.size(); i-- > 0;) {
      at::Tensor const& each = parameters_[i];
      std::int64_t const limit = buckets_.empty() ? settings_.first_bucket : settings_.bucket;
      auto const size = static_cast<std::int64_t>(each.nbytes());
      bool const alike =
          members.empty() || (parameters_[members.back()].scalar_type() == each.scalar_type() &&
                              parameters_[members.back()].device() == each.device());
      if (!alike || (bytes != 0 && bytes + size > limit)) close(false);
      members.push_back(i);
      bytes += size;
    }
    close(true);
    if (message_) message_->set_lanes(buckets_.back().flat->views().back());
    // By way of host memory a sum waits for the others, who may still be in their backward pass.
    overlaps_ = settings_.overlaps && all_.size() > 1 && !parameters_.empty() &&
                !all_.goes_by_host(parameters_.front());
    if (!overlaps_) return;
    for (std::size_t i = 0; i < parameters_.size(); ++i) {
      torch::autograd::impl::set_post_acc_grad_hooks(parameters_[i],
                                                     std::make_unique<Hook>(*this, i));
    }
  }

  /// Gives the last bucket room for the processes' messages.
  void add_message(std::vector<at::Tensor>& like) {
    at::Tensor const& first = like.front();
    if (all_.size() == 1 || !first.is_cpu()) return;
    std::size_t const words =
        words_ == 0 ? WindowMessage(settings_.micro_batches, parameters_.size()).size() : words_;
    bool const is_narrow = settings_.wire != at::ScalarType::Undefined;
    message_ = BucketMessage::of(is_narrow ? settings_.wire : first.scalar_type(), all_.size(),
                                 static_cast<std::int64_t>(words));
    if (message_) like.push_back(at::empty({message_->lanes()}, first.options()));
  }

  void forget() {
    message_.reset();
    if (overlaps_) {
      for (at::Tensor const& each : parameters_) {
        torch::autograd::impl::set_post_acc_grad_hooks(each, nullptr);
      }
    }
    parameters_.clear();
    buckets_.clear();
  }

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
