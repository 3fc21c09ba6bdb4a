// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/policy/recompute.hpp>

#include <frugal/inline.hpp>

namespace frugal::detail {

FRUGAL_INLINE void SegmentedSequential::swap() {
  open_ = {};
  std::size_t index = 0;
  for (AnyModule& member : *sequential_) {
    if (index == others_.size()) break;
    if (segments_[index]) std::swap(member, others_[index]);
    ++index;
  }
}

FRUGAL_INLINE AnyValue SegmentedSequential::call(std::size_t index, Arguments arguments) {
  SegmentedPass* const pass = segmented_pass_here();
  AnyModule& member = others_[index];
  if (!pass) return call_any(member, std::move(arguments));
  bool const goes_on = continues(index, arguments);
  std::shared_ptr<ChainFrame> frame = goes_on ? open_.frame : nullptr;
  if (!goes_on && pass->recomputes()) {
    frame = std::make_shared<ChainFrame>(arguments);
  }
  open_ = {};
  if (!frame) {
    // The kept part is one segment as well.
    AnyValue result = [&] {
      Inside const inside;
      return call_any(member, std::move(arguments));
    }();
    leave_open(index, nullptr, result);
    return result;
  }
  Arguments inputs = goes_on ? Arguments{} : arguments;
  AnyValue result = frame->add(member, std::move(arguments));
  if (!goes_on) frame->require_unchanged(inputs, "'" + member.ptr()->name() + "'");
  leave_open(index, std::move(frame), result);
  return result;
}

FRUGAL_INLINE bool SegmentedSequential::continues(std::size_t index, Arguments& arguments) const {
  if (!open_.last.defined() || open_.next != index || arguments.size() != 1) return false;
  at::Tensor const* const given = arguments.front().try_get<at::Tensor>();
  return given && given->is_same(open_.last) && given->_version() == open_.version;
}

FRUGAL_INLINE void SegmentedSequential::leave_open(std::size_t index,
                                                   std::shared_ptr<ChainFrame> frame,
                                                   AnyValue& result) {
  bool const more = index + 1 < segments_.size() && segments_[index + 1] == segments_[index];
  at::Tensor const* const last = result.try_get<at::Tensor>();
  if (!more || !last || !last->defined()) return;
  open_ = {index + 1, std::move(frame), *last, last->_version()};
}

FRUGAL_INLINE SegmentedSequential::SegmentedSequential(torch::nn::SequentialImpl& sequential,
                                                       Plan const& plan)
    : sequential_(&sequential) {
  for (AnyModule const& member : sequential) members_.push_back(member.ptr().get());
  segments_ = plan.assign(members_);
  others_.resize(members_.size());
  for (std::size_t index = 0; index < members_.size(); ++index) {
    if (!segments_[index]) continue;
    auto stand_in = std::make_shared<SegmentMember>();
    stand_in->owner = this;
    stand_in->index = index;
    stand_in->original = sequential[index];
    others_[index] = AnyModule(std::move(stand_in));
  }
}

FRUGAL_INLINE void SegmentedModule::visit(torch::nn::Module& module, Plan const& plan,
                                          bool outermost) {
  auto* const sequential = dynamic_cast<torch::nn::SequentialImpl*>(&module);
  if (sequential && !sequential->is_empty()) {
    sequentials_.push_back(std::make_unique<SegmentedSequential>(*sequential, plan));
  }
  bool const list = dynamic_cast<torch::nn::ModuleListImpl*>(&module) != nullptr;
  if (outermost && (sequential || list)) return;
  for (auto const& child : module.children()) visit(*child, plan, outermost);
}

}  // namespace frugal::detail
