// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/policy/skipped_windows.hpp>

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <tuple>
#include <utility>

#include <frugal/core/libtorch/finite.hpp>
#include <frugal/inline.hpp>

namespace frugal::detail {

FRUGAL_INLINE void KeptBuffers::begin(torch::nn::Module& module) {
  buffers_.clear();
  finite_.clear();
  groups_.clear();
  for (at::Tensor const& buffer : module.buffers()) {
    if (!numbers_of(buffer).defined() || buffer.layout() != at::kStrided) continue;
    buffers_.push_back(buffer);
    finite_.push_back(!first_non_finite({buffer}));
  }
}

FRUGAL_INLINE void KeptBuffers::take() {
  if (buffers_.empty()) return;
  at::NoGradGuard const no_gradients;
  if (groups_.empty() || groups_.front().kept.device() != buffers_.front().device()) group();
  for (Group& each : groups_) at::cat_out(each.kept, flat(each.buffers));
}

FRUGAL_INLINE void KeptBuffers::put_back(at::Tensor const& skipped) {
  at::NoGradGuard const no_gradients;
  // A copy to the host that does not block could be read before it has arrived.
  auto const on = [](at::Tensor const& flag, at::Device device) {
    return flag.to(device, /*non_blocking=*/device.is_cuda());
  };
  std::vector<at::Tensor> all_now, all_kept;
  at::Tensor bad;
  for (Group const& each : groups_) {
    at::Tensor const& now = all_now.emplace_back(at::cat(flat(each.buffers)));
    // The module may have moved since.
    at::Tensor const& kept = all_kept.emplace_back(each.kept.to(now.device()));
    at::Tensor const one = each.good(now, kept).all().logical_not_();
    bad = bad.defined() ? bad.logical_or(on(one, bad.device())) : one;
  }
  if (!bad.defined()) return;
  bad = bad.logical_and(on(skipped, bad.device()));
  for (std::size_t i = 0; i < groups_.size(); ++i) {
    at::Tensor const chosen = at::where(on(bad, all_now[i].device()), all_kept[i], all_now[i]);
    at::_foreach_copy_(groups_[i].buffers, parts(chosen, groups_[i].buffers));
  }
}

FRUGAL_INLINE bool KeptBuffers::is_bad() const {
  at::NoGradGuard const no_gradients;
  for (Group const& each : groups_) {
    if (!first_non_finite(each.buffers)) continue;
    if (each.finite) return true;
    at::Tensor const now = at::cat(flat(each.buffers));
    if (!each.good(now, each.kept.to(now.device())).all().item<bool>()) return true;
  }
  return false;
}

FRUGAL_INLINE void KeptBuffers::put_back(bool bad) {
  if (!bad) return;
  at::NoGradGuard const no_gradients;
  for (Group const& each : groups_) {
    at::_foreach_copy_(each.buffers, parts(each.kept, each.buffers));
  }
}

FRUGAL_INLINE at::Tensor KeptBuffers::Group::good(at::Tensor const& now,
                                                  at::Tensor const& before) const {
  at::Tensor const is_finite = at::isfinite(now);
  if (finite) return is_finite;
  return is_finite.logical_or(now == before).logical_or(before.isnan());
}

FRUGAL_INLINE void KeptBuffers::group() {
  std::map<std::tuple<at::ScalarType, std::string, bool>, Group> groups;
  for (std::size_t i = 0; i < buffers_.size(); ++i) {
    at::Tensor const& buffer = buffers_[i];
    groups[{buffer.scalar_type(), buffer.device().str(), finite_[i]}].buffers.push_back(buffer);
  }
  groups_.clear();
  for (auto& [type, group] : groups) {
    group.finite = std::get<2>(type);
    std::int64_t elements = 0;
    for (at::Tensor const& buffer : group.buffers) elements += buffer.numel();
    group.kept = at::empty({elements}, group.buffers.front().options().requires_grad(false));
    groups_.push_back(std::move(group));
  }
}

FRUGAL_INLINE std::vector<at::Tensor> KeptBuffers::flat(std::vector<at::Tensor> const& tensors) {
  std::vector<at::Tensor> all;
  all.reserve(tensors.size());
  for (at::Tensor const& tensor : tensors) all.push_back(tensor.flatten());
  return all;
}

FRUGAL_INLINE std::vector<at::Tensor> KeptBuffers::parts(at::Tensor const& all,
                                                         std::vector<at::Tensor> const& like) {
  std::vector<at::Tensor> views;
  views.reserve(like.size());
  std::int64_t at = 0;
  for (at::Tensor const& tensor : like) {
    views.push_back(all.narrow(0, at, tensor.numel()).view(tensor.sizes()));
    at += tensor.numel();
  }
  return views;
}

FRUGAL_INLINE bool FlagQueue::next(at::Tensor const& flag) {
  if (flag.is_cpu() && lag_ == 0) return host_scalar(flag) != 0;
  if (flag.is_cpu()) {
    waiting_.push_back({.known = host_scalar(flag) != 0});
  } else {
    waiting_.push_back({.slot = begin_reading(flag)});
  }
  if (waiting_.size() <= lag_) return false;
  bool const set = value(waiting_.front());
  waiting_.pop_front();
  return set;
}

FRUGAL_INLINE std::size_t FlagQueue::begin_reading(at::Tensor const& flag) {
  if (slots_.size() <= lag_) {
    turn_ = slots_.size();
    slots_.push_back({at::empty({}, flag.options().device(at::kCPU).pinned_memory(true)),
                      c10::Event(flag.device().type())});
  } else {
    turn_ = (turn_ + 1) % slots_.size();
  }
  Slot& slot = slots_[turn_];
  slot.host.copy_(flag, /*non_blocking=*/true);
  c10::impl::VirtualGuardImpl const device(flag.device().type());
  slot.copied.record(device.getStream(flag.device()));
  return turn_;
}

FRUGAL_INLINE bool FlagQueue::value(Waiting const& waiting) const {
  if (waiting.known) return *waiting.known;
  Slot const& slot = slots_[waiting.slot];
  slot.copied.synchronize();
  return host_scalar(slot.host) != 0;
}

}  // namespace frugal::detail
