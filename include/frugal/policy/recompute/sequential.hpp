// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <c10/util/Exception.h>
#include <torch/nn/modules/container/any.h>
#include <torch/nn/modules/container/modulelist.h>
#include <torch/nn/modules/container/sequential.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include <frugal/core/libtorch/recompute/chain.hpp>
#include <frugal/inline.hpp>
#include <frugal/policy/recompute/each.hpp>

namespace frugal::detail {

/// A Sequential whose members record chains for the duration of a forward pass.
///
/// Members do not require a call through Sequential::forward: a member whose input is what the
/// previous member of its segment has just returned continues that chain, any other begins a new
/// one. A forward that calls the members by hand is therefore correct, and saves memory if it is a
/// plain chain.
class SegmentedSequential {
 public:
  inline SegmentedSequential(torch::nn::SequentialImpl& sequential, Plan const& plan);
  SegmentedSequential(SegmentedSequential const&) = delete;
  SegmentedSequential& operator=(SegmentedSequential const&) = delete;

  /// Swaps the stand-ins in, or the members back.
  FRUGAL_INLINE void swap() {
    open_ = {};
    std::size_t index = 0;
    for (AnyModule& member : *sequential_) {
      if (index == others_.size()) break;
      if (segments_[index]) std::swap(member, others_[index]);
      ++index;
    }
  }

  FRUGAL_INLINE AnyValue call(std::size_t index, Arguments arguments) {
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

 private:
  /// The chain that the next member may continue, identified by the tensor that would be its input.
  struct Open {
    std::size_t next = 0;
    std::shared_ptr<ChainFrame> frame;  ///< null if the segment is kept
    at::Tensor last;
    std::int64_t version = 0;
  };

  FRUGAL_INLINE bool continues(std::size_t index, Arguments& arguments) const {
    if (!open_.last.defined() || open_.next != index || arguments.size() != 1) return false;
    at::Tensor const* const given = arguments.front().try_get<at::Tensor>();
    return given && given->is_same(open_.last) && given->_version() == open_.version;
  }

  FRUGAL_INLINE void leave_open(std::size_t index, std::shared_ptr<ChainFrame> frame,
                                AnyValue& result) {
    bool const more = index + 1 < segments_.size() && segments_[index + 1] == segments_[index];
    at::Tensor const* const last = result.try_get<at::Tensor>();
    if (!more || !last || !last->defined()) return;
    open_ = {index + 1, std::move(frame), *last, last->_version()};
  }

  torch::nn::SequentialImpl* sequential_;
  Members members_;
  SegmentNumbers segments_;
  std::vector<AnyModule> others_;  ///< the stand-ins; the members, while swapped
  Open open_;
};

/// The stand-in for a member of a segmented Sequential. Names come from the registered children,
/// which are unchanged.
struct SegmentMember : torch::nn::Module {
  // AnyModule requires it; the holder below is what gets called.
  at::Tensor forward(at::Tensor x) { return x; }

  SegmentedSequential* owner = nullptr;
  std::size_t index = 0;
  std::shared_ptr<torch::nn::Module> original;
};

}  // namespace frugal::detail

/// AnyModule's holder for SegmentMember: accepts any arguments, and exposes the original module.
template <class... Inputs>
struct torch::nn::AnyModuleHolder<frugal::detail::SegmentMember, Inputs...>
    : torch::nn::AnyModulePlaceholder {
  using Member = frugal::detail::SegmentMember;

  explicit AnyModuleHolder(std::shared_ptr<Member>&& member)
      : AnyModulePlaceholder(typeid(Member)), module(std::move(member)) {}

  torch::nn::AnyValue forward(frugal::detail::Arguments&& arguments) override {
    return module->owner->call(module->index, std::move(arguments));
  }
  std::shared_ptr<torch::nn::Module> ptr() override { return module->original; }
  std::unique_ptr<torch::nn::AnyModulePlaceholder> copy() const override {
    return std::make_unique<AnyModuleHolder>(*this);
  }
  std::unique_ptr<torch::nn::AnyModulePlaceholder> clone_module(
      std::optional<c10::Device>) const override {
    TORCH_CHECK(false,
                "frugal: a Sequential cannot be cloned while Recompute has split it into segments");
  }

  std::shared_ptr<Member> module;
};

namespace frugal::detail {

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

/// The Sequentials of a module for which a plan has segments; of nested ones the outermost, unless
/// their members were named one by one.
class SegmentedModule {
 public:
  SegmentedModule(torch::nn::Module& root, Plan const& plan, bool outermost) {
    visit(root, plan, outermost);
  }

  /// For the duration of a forward pass, also one that throws.
  class [[nodiscard]] SwappedIn {
   public:
    explicit SwappedIn(SegmentedModule& module) : module_(module) {
      for (auto& each : module_.sequentials_) each->swap();
    }
    SwappedIn(SwappedIn const&) = delete;
    SwappedIn& operator=(SwappedIn const&) = delete;
    ~SwappedIn() {
      for (auto& each : module_.sequentials_) each->swap();
    }

   private:
    SegmentedModule& module_;
  };

 private:
  FRUGAL_INLINE void visit(torch::nn::Module& module, Plan const& plan, bool outermost) {
    auto* const sequential = dynamic_cast<torch::nn::SequentialImpl*>(&module);
    if (sequential && !sequential->is_empty()) {
      sequentials_.push_back(std::make_unique<SegmentedSequential>(*sequential, plan));
    }
    bool const list = dynamic_cast<torch::nn::ModuleListImpl*>(&module) != nullptr;
    if (outermost && (sequential || list)) return;
    for (auto const& child : module.children()) visit(*child, plan, outermost);
  }

  std::vector<std::unique_ptr<SegmentedSequential>> sequentials_;
};

}  // namespace frugal::detail
