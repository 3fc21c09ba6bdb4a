// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/ATen.h>
#include <ATen/autocast_mode.h>
#include <ATen/core/grad_mode.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include <frugal/cluster/communicator.hpp>
#include <frugal/cluster/tensors/block_norms.hpp>
#include <frugal/cluster/tensors/flat_tensors.hpp>
#include <frugal/core/libtorch/interception.hpp>
#include <frugal/core/libtorch/quietly.hpp>
#include <frugal/core/run/run.hpp>
#include <frugal/core/state/tensor_part.hpp>

namespace frugal::detail {

/// The weights that a process can do without while their layers do not compute: trained ones of Linear,
/// Conv2d and Embedding, of at least so many elements. Other parameters may be read by any operator.
std::vector<at::Tensor> layer_weights(torch::nn::Module& root, std::int64_t least);

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
  at::Tensor add(at::Tensor const& parameter, FlatTensors& flat);

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
  void give_up();
  /// Gives each parameter the whole weight, in memory of its own. All processes call it.
  void give_back();

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

  void fill(Unit& unit);
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

/// The parameters of a run, each process updating one part of them.
///
/// While it lives, the parameters are views of a few flat tensors, so that the parts of all processes are
/// collected in place. Then each has memory of its own again. Those of LayerWeights are in parts.
class ShardedParameters {
 public:
  struct Settings {
    std::int64_t bucket = 0;           ///< as of FlatGroups
    std::vector<at::Tensor> layers{};  ///< parameters for LayerWeights; then `bucket` is not 0
  };

  ShardedParameters(Communicator& all, Parameters const& parameters)
      : ShardedParameters(all, parameters, Settings()) {}
  ShardedParameters(Communicator& all, Parameters const& parameters, Settings settings);
  ShardedParameters(ShardedParameters const&) = delete;
  ShardedParameters& operator=(ShardedParameters const&) = delete;
  ~ShardedParameters() {
    quietly([this] { release(); });
  }

  /// Gives each parameter memory of its own again. Those of layers are NaN, without give_back().
  void release();
  /// Gives each parameter of a layer its whole weight. All processes call it.
  void give_back() { layers_.give_back(); }

  /// Whether these are the parameters that have parts, where they were laid out.
  bool holds(std::vector<at::Tensor> const& parameters) const;

  std::vector<FlatGroups::Group>& groups() { return flats_.groups(); }
  LayerWeights& layers() { return layers_; }
  /// Which of the layers' weights this group has; nothing if it has other parameters.
  std::optional<std::size_t> layer_of(FlatGroups::Group const& group) const {
    auto const found = layer_of_.find(&group);
    return found == layer_of_.end() ? std::nullopt : std::optional(found->second);
  }
  /// This process's part of a parameter that is there in part alone.
  std::optional<HeldPart> held(at::Tensor const& parameter) const;

  ParameterParts const& parts() const { return parts_; }

  /// This process's elements of tensors that are laid out as the trained parameters.
  std::vector<at::Tensor> parts_of(std::vector<at::Tensor> const& whole);
  /// Sets the gradient of a part; `i` counts the trained parameters.
  void set_gradients(std::vector<at::Tensor> const& own, std::vector<bool> const& has);
  void reset_gradients() const { parts_.parameters.reset_gradients(); }

  /// After an update: every process gets the parts of the others.
  void collect();

  /// The tensor of which each process has a part, in the first process, or `side_by_side` in one that has
  /// much of it; undefined in the others. All call it at the same moments.
  at::Tensor whole(at::Tensor const& mine, TensorPart const& which, bool side_by_side = false);

 private:
  /// Where a parameter is.
  struct Place {
    FlatGroups::Group* group = nullptr;
    std::size_t index = 0;  ///< in the group
    int keeper = 0;
  };

  /// Which process keeps each parameter in a checkpoint: of those with half of its largest part or more,
  /// the one that keeps the least so far.
  void choose_keepers();

  Communicator& all_;
  FlatGroups flats_;
  LayerWeights layers_;
  std::map<FlatGroups::Group const*, std::size_t> layer_of_;
  std::vector<at::Tensor> trained_;
  std::vector<void*> memory_;      ///< of the trained parameters, while they have parts
  std::vector<Place> places_;      ///< of all parameters
  std::vector<at::Tensor> whole_;  ///< all parameters
  ParameterParts parts_;
};

}  // namespace frugal::detail

#ifndef FRUGAL_COMPILED
#include <frugal/cluster/shard/sharded_parameters.ipp>
#endif
