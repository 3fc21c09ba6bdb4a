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
  void swap();

  AnyValue call(std::size_t index, Arguments arguments);

 private:
  /// The chain that the next member may continue, identified by the tensor that would be its input.
  struct Open {
    std::size_t next = 0;
    std::shared_ptr<ChainFrame> frame;  ///< null if the segment is kept
    at::Tensor last;
    std::int64_t version = 0;
  };

  bool continues(std::size_t index, Arguments& arguments) const;

  void leave_open(std::size_t index, std::shared_ptr<ChainFrame> frame, AnyValue& result);

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
  void visit(torch::nn::Module& module, Plan const& plan, bool outermost);

  std::vector<std::unique_ptr<SegmentedSequential>> sequentials_;
};

}  // namespace frugal::detail

#ifndef FRUGAL_COMPILED
#include <frugal/policy/recompute/sequential.ipp>
#endif
