// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/core/state/module_tensors.hpp>

#include <frugal/inline.hpp>

#include <map>
#include <utility>

namespace frugal::detail {

FRUGAL_INLINE void BufferCopies::take(torch::nn::Module& module) {
  if (!looked_) look_at(module);
  for (Group const& group : groups_) at::_foreach_copy_(group.kept, group.buffers);
}

FRUGAL_INLINE void BufferCopies::look_at(torch::nn::Module& module) {
  looked_ = true;
  std::map<std::pair<at::ScalarType, std::string>, Group> groups;
  for (at::Tensor const& buffer : module.buffers()) {
    if (!buffer.defined()) continue;
    Group& group = groups[{buffer.scalar_type(), buffer.device().str()}];
    group.buffers.push_back(buffer);
    group.kept.push_back(at::empty_like(buffer));
  }
  for (auto& [type, group] : groups) groups_.push_back(std::move(group));
}

}  // namespace frugal::detail
