// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/TensorImpl.h>
#include <c10/util/intrusive_ptr.h>

#include <mutex>
#include <shared_mutex>
#include <unordered_map>
#include <utility>

namespace frugal::detail {

/// What is known of some tensors of the process, by identity: a tensor keeps its entry when its data
/// are replaced (set_data, Module::to), and a copy has none. Holds them weakly. Safe in threads.
template <class Value>
class TensorMap {
 public:
  /// Calls `change(value)` on the entry of a tensor, a new one if it has none.
  template <class Change>
  void change(at::Tensor const& tensor, Change&& change) {
    std::unique_lock const lock(mutex_);
    std::erase_if(entries_, [](auto const& each) { return each.second.tensor.expired(); });
    auto const [found, is_new] = entries_.try_emplace(tensor.unsafeGetTensorImpl());
    if (is_new) found->second.tensor = Weak(tensor.getIntrusivePtr());
    change(found->second.value);
  }

  /// The entry of a tensor, or an empty value.
  Value find(at::Tensor const& tensor) const {
    std::shared_lock const lock(mutex_);
    auto const found = entries_.find(tensor.unsafeGetTensorImpl());
    // The address may have been that of a tensor which is gone.
    return found == entries_.end() || found->second.tensor.expired() ? Value{}
                                                                     : found->second.value;
  }

 private:
  using Weak = c10::weak_intrusive_ptr<c10::TensorImpl, c10::UndefinedTensorImpl>;
  struct Entry {
    Weak tensor = Weak::reclaim(c10::UndefinedTensorImpl::singleton());
    Value value{};
  };

  mutable std::shared_mutex mutex_;
  std::unordered_map<c10::TensorImpl const*, Entry> entries_;
};

}  // namespace frugal::detail
