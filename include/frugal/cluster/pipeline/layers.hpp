// SPDX-License-Identifier: Apache-2.0
// p processes, S stages: stage s is in process s % p.
#pragma once

#include <ATen/ATen.h>
#include <ATen/Context.h>
#include <torch/nn/module.h>
#include <torch/nn/modules/container/modulelist.h>
#include <torch/nn/modules/container/sequential.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <frugal/base/hash.hpp>
#include <frugal/cluster/communicator.hpp>
#include <frugal/cluster/pipeline/links.hpp>
#include <frugal/core/libtorch/recompute/frame.hpp>
#include <frugal/core/state/cut_tensors.hpp>
#include <frugal/core/state/tensor_part.hpp>
#include <frugal/error.hpp>
#include <frugal/policy/recompute/segments.hpp>

namespace frugal::detail {

/// Where stages begin: the first layer of each, and the number of layers.
///
/// Cuts a list so that the largest stage has as few elements of parameters as possible. `elements`:
/// of each layer; a stage has at least one layer with parameters. ModuleError if these are too few.
std::vector<std::size_t> balanced_cuts(std::vector<std::int64_t> const& elements,
                                       std::size_t stages);

/// The same of stages whose numbers of layers are given. SettingsError unless they are all layers,
/// and each stage trains one.
std::vector<std::size_t> given_cuts(std::vector<std::int64_t> const& elements,
                                    std::vector<int> const& layers, std::size_t stages);

/// A forward pass of training through one stage of this process.
struct StagePass {
  int stage = 0;
  std::uint64_t key = 0;  ///< of the micro-batch's random numbers
  at::Tensor input{};     ///< of the first stage: what the layers are called with
  at::Tensor output{};    ///< of a stage but the last
  bool ran = false;
};

/// The pass of this thread; null outside of one.
inline thread_local StagePass* stage_pass = nullptr;

/// Ends a forward pass at the end of its stage: another process goes on with it.
struct StageEnd {};

/// Layers of a module that are in several processes. It stands in their place from the first fit on,
/// and knows where each is.
class DividedLayers {
 public:
  using Call = std::function<at::Tensor(std::size_t layer, at::Tensor input)>;

  /// A tensor of the whole module.
  struct Part {
    std::string name{};
    std::vector<std::int64_t> sizes{};
    at::ScalarType type = at::kFloat;
    bool trained = true;
    int stage = every_process;
    bool is_parameter = false;
    bool is_first_name = true;  ///< of its tensor
  };
  static constexpr int every_process = -1;

  DividedLayers(std::shared_ptr<Communicator> all, std::vector<std::size_t> begins)
      : all_(std::move(all)), begins_(std::move(begins)) {}

  Communicator& processes() const { return *all_; }
  int stages() const { return static_cast<int>(begins_.size()) - 1; }
  int rank_of(int stage) const { return stage % all_->size(); }
  bool is_own(int stage) const { return rank_of(stage) == all_->rank(); }
  int stage_of(std::size_t layer) const {
    int stage = 0;
    while (begins_[static_cast<std::size_t>(stage) + 1] <= layer) ++stage;
    return stage;
  }
  std::size_t layers() const { return begins_.back(); }
  std::vector<Part>& parts() { return parts_; }
  /// For a run in several processes.
  TensorPlaces places() const;

  /// The layers' output for an input: one stage of it if the executor asks for that, otherwise all
  /// stages, one after the other, in all processes at once.
  at::Tensor run(at::Tensor input, Call const& call);

  /// Seeds the generators for one layer of a micro-batch: it draws the same in whatever process it is.
  static void seed(std::uint64_t micro_batch, std::uint64_t layer) {
    std::array<std::uint64_t, 2> const both{micro_batch, layer};
    at::manual_seed(Hash::of(std::as_bytes(std::span(both))));
  }

 private:
  at::Tensor train(StagePass& pass, at::Tensor input, Call const& call);
  at::Tensor through(int stage, at::Tensor x, Call const& call, std::uint64_t const* key) const;
  at::Tensor infer(at::Tensor x, Call const& call);
  at::Tensor infer(at::Tensor x, Call const& call, std::uint64_t key);
  [[noreturn]] static void refuse_second_call();
  [[noreturn]] static void refuse_gradients();
  [[noreturn]] static void refuse_undefined(std::size_t layer);

  std::shared_ptr<Communicator> all_;
  std::vector<std::size_t> begins_;  ///< the first layer of each stage, and the number of layers
  std::vector<Part> parts_;          ///< of the module before it was divided
};

/// The stand-in for the layers of a Sequential: the first one calls all, the others pass on.
struct StageMember : torch::nn::Module {
  // AnyModule requires it; the holder below is what gets called.
  at::Tensor forward(at::Tensor x) { return x; }

  std::shared_ptr<DividedLayers> divided;
  std::vector<AnyModule> layers{};  ///< of the first one; those of other processes are empty
};

}  // namespace frugal::detail

/// AnyModule's holder for StageMember: takes one tensor.
template <class... Inputs>
struct torch::nn::AnyModuleHolder<frugal::detail::StageMember, Inputs...>
    : torch::nn::AnyModulePlaceholder {
  using Member = frugal::detail::StageMember;

  explicit AnyModuleHolder(std::shared_ptr<Member>&& member)
      : AnyModulePlaceholder(typeid(Member)), module(std::move(member)) {}

  torch::nn::AnyValue forward(frugal::detail::Arguments&& arguments) override {
    using frugal::detail::Arguments;
    at::Tensor* const input =
        arguments.size() == 1 ? arguments.front().try_get<at::Tensor>() : nullptr;
    if (!input) refuse("is called with other arguments than one tensor");
    if (module->layers.empty()) return torch::nn::AnyValue(std::move(*input));
    auto const call = [&](std::size_t layer, at::Tensor x) -> at::Tensor {
      Arguments one;
      one.emplace_back(std::move(x));
      torch::nn::AnyValue value = frugal::detail::call_any(module->layers[layer], std::move(one));
      at::Tensor* const output = value.try_get<at::Tensor>();
      if (!output) refuse("has a layer that returns another thing than a tensor");
      return std::move(*output);
    };
    return torch::nn::AnyValue(module->divided->run(std::move(*input), call));
  }
  std::shared_ptr<torch::nn::Module> ptr() override { return module; }
  std::unique_ptr<torch::nn::AnyModulePlaceholder> copy() const override {
    return std::make_unique<AnyModuleHolder>(*this);
  }
  std::unique_ptr<torch::nn::AnyModulePlaceholder> clone_module(
      std::optional<c10::Device>) const override {
    TORCH_CHECK(false, "frugal: a Sequential cannot be cloned when Pipeline has divided it");
  }

  [[noreturn]] static void refuse(std::string const& what) {
    throw frugal::ModuleError({.what = "a divided Sequential " + what,
                               .where = "Pipeline",
                               .why = "one tensor travels from a stage to the next one",
                               .fix = "Pass one tensor from layer to layer."});
  }

  std::shared_ptr<Member> module;
};

namespace frugal::detail {

/// The Sequential or ModuleList of a module that Pipeline divides.
struct LayerList {
  std::string name{};  ///< empty: the module itself
  torch::nn::SequentialImpl* sequential = nullptr;
  torch::nn::ModuleListImpl* list = nullptr;

  torch::nn::Module& container() const {
    return sequential != nullptr ? static_cast<torch::nn::Module&>(*sequential) : *list;
  }

  /// What stands in its place already; null if it is whole.
  std::shared_ptr<DividedLayers> divided() const;
  static LayerList of(torch::nn::Module& root);

  /// Puts stand-ins in the place of the layers, and frees those of other processes.
  void divide(torch::nn::Module& root, std::shared_ptr<DividedLayers> const& divided);

 private:
  using Children = torch::OrderedDict<std::string, std::shared_ptr<torch::nn::Module>>;

  static void visit(torch::nn::Module& module, std::string const& name,
                    std::vector<LayerList>& found);

  /// The tensors of the whole module. ModuleError for one that two stages share, or, of several
  /// processes, a stage and a layer outside of the list.
  std::vector<DividedLayers::Part> parts_of(torch::nn::Module& root, Children const& children,
                                            std::vector<int> const& stages, bool several) const;
  void stand_in(std::shared_ptr<DividedLayers> const& divided, std::vector<int> const& stages);

  /// Whoever else holds the layer does not keep its memory.
  static void release(torch::nn::Module& layer);
  [[noreturn]] static void refuse_shared();
};

}  // namespace frugal::detail

#ifndef FRUGAL_COMPILED
#include <frugal/cluster/pipeline/layers.ipp>
#endif
