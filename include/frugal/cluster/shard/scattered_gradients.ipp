// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/cluster/shard/scattered_gradients.hpp>

#include <frugal/inline.hpp>

#include <ATen/core/grad_mode.h>
#include <torch/csrc/autograd/variable.h>

#include <memory>
#include <span>

namespace frugal::detail {

FRUGAL_INLINE void ScatteredGradients::begin(std::vector<at::Tensor> const& parameters,
                                             ShardedParameters* sharded) {
  if (!fits(parameters, sharded)) make(parameters, sharded);
  has_.assign(parameters_.size(), false);
  whole_.take();
  travelling_.clear();
  for (Bucket& bucket : buckets_) bucket.sum.take();
  rounds_ = 0;
  window_order_.clear();
}

FRUGAL_INLINE void ScatteredGradients::before(bool, double const& unit) {
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

FRUGAL_INLINE void ScatteredGradients::after() {
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

FRUGAL_INLINE void ScatteredGradients::begin_rest() {
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

FRUGAL_INLINE at::Tensor ScatteredGradients::exchange(at::Tensor const& message) {
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

FRUGAL_INLINE std::vector<at::Tensor> ScatteredGradients::own_sum(std::vector<bool> const&,
                                                                  ShardedParameters const&) {
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

FRUGAL_INLINE void ScatteredGradients::take(std::size_t i) {
  if (!takes_) return;
  at::NoGradGuard const no_gradients;
  if (came_[i]) {
    throw ModuleError(
        {.what = "a parameter gets a second gradient in one micro-batch",
         .where = settings_.name,
         .why = "the objective calls backward() itself, and the first gradient may travel already",
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

FRUGAL_INLINE void ScatteredGradients::add_whole(bool any) {
  if (!any) return whole_.add_nothing();
  std::vector<at::Tensor> gradients;
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    at::Tensor gradient = std::exchange(kept_[i], at::Tensor());
    gradients.push_back(gradient.defined() ? std::move(gradient) : at::zeros_like(parameters_[i]));
  }
  whole_.add(std::move(gradients));
}

FRUGAL_INLINE void ScatteredGradients::start(Bucket& bucket, bool any) {
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

FRUGAL_INLINE void ScatteredGradients::receive() {
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

FRUGAL_INLINE void ScatteredGradients::serve(std::size_t from) {
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

FRUGAL_INLINE void ScatteredGradients::refuse_order() const {
  throw ModuleError(
      {.what = "the processes have collected weights of other layers at the same time",
       .where = settings_.name,
       .why = "micro-batches that are trained at the same time must call the same layers in the "
              "same order, and a forward pass depends on its data",
       .fix = "Use Shard<States, Grads>, which leaves weights whole."});
}

FRUGAL_INLINE void ScatteredGradients::refuse_unknown_order() const {
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

FRUGAL_INLINE void ScatteredGradients::make(std::vector<at::Tensor> const& parameters,
                                            ShardedParameters* sharded) {
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

FRUGAL_INLINE void ScatteredGradients::forget() {
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

}  // namespace frugal::detail
