// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/cluster/replicate/ring_gradients.hpp>

#include <frugal/error.hpp>
#include <frugal/inline.hpp>

#include <torch/csrc/autograd/variable.h>

#include <memory>
#include <utility>

namespace frugal::detail {

FRUGAL_INLINE std::optional<BucketMessage> BucketMessage::of(at::ScalarType type,
                                                             std::int64_t processes,
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

FRUGAL_INLINE void RingGradients::begin(std::vector<at::Tensor> const& parameters,
                                        ShardedParameters const*, std::size_t words) {
  if (words != words_ || !fits(parameters)) make(parameters, words);
  has_.assign(parameters_.size(), false);
  came_.assign(parameters_.size(), false);
  next_ = 0;
  for (Bucket& bucket : buckets_) {
    bucket.missing = bucket.members.size();
    bucket.work.reset();
  }
}

FRUGAL_INLINE void RingGradients::after() {
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

FRUGAL_INLINE at::Tensor RingGradients::exchange(at::Tensor const& message) {
  if (!message_) return all_.gather(message, "the losses of a step", /*after_tensors=*/true);
  at::NoGradGuard const no_gradients;
  message_->write(message, all_.rank());
  start(buckets_[next_++]);
  complete(buckets_.back());
  return message_->read();
}

FRUGAL_INLINE void RingGradients::take(std::size_t i) {
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

FRUGAL_INLINE void RingGradients::start(Bucket& bucket) {
  at::NoGradGuard const no_gradients;
  for (std::size_t const i : bucket.members) {
    if (!has_[i]) places_[i].zero_();
  }
  at::Tensor& flat = bucket.flat->flat();
  if (bucket.sent.defined()) bucket.sent.copy_(flat);
  bucket.work = all_.start_sum(bucket.sent.defined() ? bucket.sent : flat);
}

FRUGAL_INLINE bool RingGradients::fits(std::vector<at::Tensor> const& parameters) const {
  if (parameters.size() != parameters_.size()) return false;
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    bool const same = parameters[i].is_same(parameters_[i]) &&
                      parameters[i].device() == places_[i].device() &&
                      parameters[i].scalar_type() == places_[i].scalar_type();
    if (!same) return false;
  }
  return true;
}

FRUGAL_INLINE void RingGradients::make(std::vector<at::Tensor> const& parameters,
                                       std::size_t words) {
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

FRUGAL_INLINE void RingGradients::add_message(std::vector<at::Tensor>& like) {
  at::Tensor const& first = like.front();
  if (all_.size() == 1 || !first.is_cpu()) return;
  std::size_t const words =
      words_ == 0 ? WindowMessage(settings_.micro_batches, parameters_.size()).size() : words_;
  bool const is_narrow = settings_.wire != at::ScalarType::Undefined;
  message_ = BucketMessage::of(is_narrow ? settings_.wire : first.scalar_type(), all_.size(),
                               static_cast<std::int64_t>(words));
  if (message_) like.push_back(at::empty({message_->lanes()}, first.options()));
}

FRUGAL_INLINE void RingGradients::forget() {
  message_.reset();
  if (overlaps_) {
    for (at::Tensor const& each : parameters_) {
      torch::autograd::impl::set_post_acc_grad_hooks(each, nullptr);
    }
  }
  parameters_.clear();
  buckets_.clear();
}

}  // namespace frugal::detail
