// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/ATen.h>
#include <ATen/autocast_mode.h>
#include <ATen/core/grad_mode.h>
#include <torch/nn/modules/conv.h>
#include <torch/nn/modules/embedding.h>
#include <torch/nn/modules/linear.h>

#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <utility>
#include <vector>

#include <frugal/cluster/communicator.hpp>
#include <frugal/cluster/tensors/flat_tensors.hpp>
#include <frugal/core/libtorch/interception.hpp>

namespace frugal::detail {

/// The weights that a process can do without while their layers do not compute: trained ones of Linear,
/// Conv2d and Embedding, of at least so many elements. Other parameters may be read by any operator.
inline std::vector<at::Tensor> layer_weights(torch::nn::Module& root, std::int64_t least) {
  std::vector<at::Tensor> weights;
  auto const add = [&](at::Tensor const& weight) {
    if (weight.requires_grad() && weight.numel() >= least) weights.push_back(weight);
  };
  for (auto const& module : root.modules()) {
    if (auto const* linear = module->as<torch::nn::LinearImpl>()) add(linear->weight);
    if (auto const* conv = module->as<torch::nn::Conv2dImpl>()) add(conv->weight);
    if (auto const* embedding = module->as<torch::nn::EmbeddingImpl>()) add(embedding->weight);
  }
  return weights;
}

/// Weights of layers of which each process has a part, and the whole only while the layer computes:
/// collected before its forward pass and before its backward pass, and released after each.
///
/// What autograd has saved of a weight sees its storage, so that is emptied and filled again. Outside of
/// its layer the parameter is NaN: what reads it there is noticed.
class LayerWeights {
 public:
  explicit LayerWeights(Communicator& all) : all_(all) {}
  LayerWeights(LayerWeights const&) = delete;
  LayerWeights& operator=(LayerWeights const&) = delete;
  ~LayerWeights() {
    for (auto const& unit : units_) end(*unit);
  }

  /// `flat` has the parameter alone. Returns this process's part of it.
  at::Tensor add(at::Tensor const& parameter, FlatTensors& flat) {
    at::NoGradGuard const no_gradients;
    auto unit = std::make_unique<Unit>();
    unit->parameter = parameter;
    unit->flat = flat.flat();
    unit->view = flat.views().front();
    unit->own = flat.part(all_.rank()).clone();
    unit->absent = at::full({}, std::numeric_limits<double>::quiet_NaN(), unit->view.options())
                       .expand(parameter.sizes());
    unit->number = static_cast<std::int32_t>(units_.size());
    unit->hook = std::make_shared<Hook>(*this, *unit);
    empty(*unit);
    intercept(parameter, unit->hook);
    units_.push_back(std::move(unit));
    return units_.back()->own;
  }

  std::size_t size() const { return units_.size(); }

  /// A parameter has its gradient: nothing more of its layers' backward passes comes.
  void has_gradient(std::size_t number) {
    units_[number]->in_backward = false;
    empty(*units_[number]);
  }
  /// After the passes of a micro-batch: a weight without a gradient is still there.
  void empty_all() {
    for (std::size_t i = 0; i < units_.size(); ++i) has_gradient(i);
  }

  /// Takes part in the collection of a weight for which this process has no use.
  void serve(std::int32_t number) {
    fill(*units_[static_cast<std::size_t>(number)]);
    empty(*units_[static_cast<std::size_t>(number)]);
  }
  /// Gets the numbers of the weights that are collected from here on; null: nothing.
  void record(std::vector<std::int32_t>* order) { order_ = order; }

  /// Gives each parameter memory of its own without values, for load_weights() after an error.
  void give_up() {
    at::NoGradGuard const no_gradients;
    for (auto const& unit : units_) {
      empty(*unit);
      unit->parameter.set_data(at::empty_strided(unit->view.sizes(), unit->view.strides(),
                                                 unit->own.options().requires_grad(false))
                                   .fill_(std::numeric_limits<double>::quiet_NaN()));
      end(*unit);
    }
    units_.clear();
  }
  /// Gives each parameter the whole weight, in memory of its own. All processes call it.
  void give_back() {
    at::NoGradGuard const no_gradients;
    for (auto const& unit : units_) {
      fill(*unit);
      at::Tensor const whole = unit->view.clone(at::MemoryFormat::Preserve);
      empty(*unit);
      unit->parameter.set_data(whole);
      end(*unit);
    }
    units_.clear();
  }

 private:
  class Hook;
  struct Unit {
    at::Tensor parameter{};
    at::Tensor flat{};    ///< the whole; its storage is empty unless `is_here`
    at::Tensor view{};    ///< of it, in the shape of the parameter
    at::Tensor own{};     ///< this process's part
    at::Tensor absent{};  ///< NaN, in the shape of the parameter
    std::shared_ptr<Hook> hook{};
    std::int32_t number = 0;
    bool is_here = true;
    bool in_backward = false;
  };

  class Hook final : public LayerHook, public std::enable_shared_from_this<Hook> {
   public:
    Hook(LayerWeights& owner, Unit& unit) : owner_(&owner), unit_(&unit) {}
    /// A graph may live longer than the weights' parts.
    void end() { owner_ = nullptr; }
    /// Outermost: hooks further in read the weight.
    Place place() const override { return Place::observe; }
    at::Tensor call(LayerCall const& call, LayerRest const& rest) override {
      Lent const lent(*owner_, *unit_);
      at::Tensor result = rest(call);
      if (result.requires_grad() && at::GradMode::is_enabled()) {
        result.register_hook(
            [self = shared_from_this()](at::Tensor const&) { self->begin_backward(); });
      }
      return result;
    }

   private:
    void begin_backward() {
      if (owner_ == nullptr) return;
      owner_->fill(*unit_);
      unit_->in_backward = true;
    }

    LayerWeights* owner_;
    Unit* unit_;
  };

  /// The parameter has its values for the time of a call.
  class [[nodiscard]] Lent {
   public:
    Lent(LayerWeights& owner, Unit& unit) : owner_(owner), unit_(unit) {
      // A cast weight would be kept until the end of the forward pass.
      at::autocast::set_autocast_cache_enabled(false);
      owner_.fill(unit_);
    }
    Lent(Lent const&) = delete;
    Lent& operator=(Lent const&) = delete;
    ~Lent() {
      if (!unit_.in_backward) owner_.empty(unit_);
      at::autocast::set_autocast_cache_enabled(cached_);
    }

   private:
    LayerWeights& owner_;
    Unit& unit_;
    bool cached_ = at::autocast::is_autocast_cache_enabled();
  };

  static void end(Unit& unit) {
    unit.hook->end();
    frugal::release(unit.parameter, *unit.hook);
  }

  void fill(Unit& unit) {
    if (unit.is_here) return;
    at::NoGradGuard const no_gradients;
    c10::StorageImpl& storage = *unit.flat.storage().unsafeGetStorageImpl();
    auto const bytes = static_cast<std::size_t>(unit.flat.numel() * unit.flat.element_size());
    storage.set_data_ptr_noswap(storage.allocator()->allocate(bytes));
    storage.set_nbytes(bytes);
    unit.is_here = true;
    if (order_ != nullptr) order_->push_back(unit.number);
    all_.collect(unit.flat, unit.own, "the collection of a layer's weight");
    // Autograd saves a leaf as the tensor that it is, and views of it by their storage.
    unit.parameter.set_data(unit.view);
  }
  void empty(Unit& unit) {
    if (!std::exchange(unit.is_here, false)) return;
    unit.parameter.set_data(unit.absent);
    c10::StorageImpl& storage = *unit.flat.storage().unsafeGetStorageImpl();
    storage.set_data_ptr_noswap(c10::DataPtr(nullptr, unit.flat.device()));
    storage.set_nbytes(0);
  }

  Communicator& all_;
  std::vector<std::unique_ptr<Unit>> units_;
  std::vector<std::int32_t>* order_ = nullptr;
};

}  // namespace frugal::detail
