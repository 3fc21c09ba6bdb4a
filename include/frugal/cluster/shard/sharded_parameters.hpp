// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/ATen.h>
#include <ATen/autocast_mode.h>
#include <ATen/core/grad_mode.h>
#include <torch/nn/modules/conv.h>
#include <torch/nn/modules/embedding.h>
#include <torch/nn/modules/linear.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <memory>
#include <numeric>
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
#include <frugal/error.hpp>

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
  ShardedParameters(Communicator& all, Parameters const& parameters, Settings settings)
      : all_(all),
        flats_(all.size(), BlockNorms::block, settings.bucket, settings.layers),
        layers_(all) {
    at::NoGradGuard const no_gradients;
    parts_.parameters = parameters;
    whole_ = parameters.tensors;
    parts_.of.resize(parameters.size());
    places_.resize(parameters.size());
    std::vector<std::size_t> places;
    for (std::size_t i = 0; i < parameters.size(); ++i) {
      if (!parameters.tensors[i].requires_grad()) continue;
      trained_.push_back(parameters.tensors[i]);
      places.push_back(i);
    }
    require_memory_of_their_own(trained_, "Shard",
                                "each would be laid out by itself, and trained apart");
    memory_.resize(trained_.size());
    flats_.fit(trained_, [&](FlatGroups::Group& group) {
      at::Tensor part = group.flat.part(all.rank());
      for (std::size_t k = 0; k < group.indices.size(); ++k) {
        std::size_t const t = group.indices[k];
        std::size_t const i = places[t];
        FlatLayout::Range const own = group.flat.layout().range(k, all.rank());
        at::Tensor const& view = group.flat.views()[k];
        view.copy_(trained_[t]);
        parts_.of[i] = TensorPart::of(view, own.first, own.count, i);
        places_[i] = {.group = &group, .index = k};
        bool const is_layer = std::ranges::any_of(
            settings.layers, [&](at::Tensor const& each) { return each.is_same(trained_[t]); });
        if (is_layer) {
          layer_of_.emplace(&group, layers_.size());
          part = layers_.add(trained_[t], group.flat);
        } else {
          trained_[t].set_data(view);
        }
        memory_[t] = trained_[t].data_ptr();
        parts_.parameters.tensors[i] = group.flat.layout().slice(k, all.rank(), part);
      }
    });
    choose_keepers();
  }
  ShardedParameters(ShardedParameters const&) = delete;
  ShardedParameters& operator=(ShardedParameters const&) = delete;
  ~ShardedParameters() {
    quietly([this] { release(); });
  }

  /// Gives each parameter memory of its own again. Those of layers are NaN, without give_back().
  void release() {
    at::NoGradGuard const no_gradients;
    layers_.give_up();
    std::vector<at::Tensor> const trained = std::exchange(trained_, {});
    for (FlatGroups::Group const& group : flats_.groups()) {
      if (trained.empty() || layer_of_.contains(&group)) continue;
      for (std::size_t const i : group.indices) {
        trained[i].set_data(trained[i].detach().clone(at::MemoryFormat::Preserve));
      }
    }
  }
  /// Gives each parameter of a layer its whole weight. All processes call it.
  void give_back() { layers_.give_back(); }

  /// Whether these are the parameters that have parts, where they were laid out.
  bool holds(std::vector<at::Tensor> const& parameters) const {
    if (parameters.size() != trained_.size()) return false;
    for (std::size_t i = 0; i < parameters.size(); ++i) {
      if (!parameters[i].is_same(trained_[i]) || parameters[i].data_ptr() != memory_[i])
        return false;
    }
    return true;
  }

  std::vector<FlatGroups::Group>& groups() { return flats_.groups(); }
  LayerWeights& layers() { return layers_; }
  /// Which of the layers' weights this group has; nothing if it has other parameters.
  std::optional<std::size_t> layer_of(FlatGroups::Group const& group) const {
    auto const found = layer_of_.find(&group);
    return found == layer_of_.end() ? std::nullopt : std::optional(found->second);
  }
  /// This process's part of a parameter that is there in part alone.
  std::optional<HeldPart> held(at::Tensor const& parameter) const {
    if (layers_.size() == 0) return std::nullopt;
    for (std::size_t i = 0; i < parts_.of.size(); ++i) {
      bool const is_it = whole_[i].is_same(parameter);
      if (!is_it) continue;
      if (places_[i].group == nullptr || !layer_of_.contains(places_[i].group)) return std::nullopt;
      return HeldPart{.mine = parts_.parameters.tensors[i].detach(), .which = *parts_.of[i]};
    }
    return std::nullopt;
  }

  ParameterParts const& parts() const { return parts_; }

  /// This process's elements of tensors that are laid out as the trained parameters.
  std::vector<at::Tensor> parts_of(std::vector<at::Tensor> const& whole) {
    std::vector<at::Tensor> own(whole.size());
    for (FlatGroups::Group const& group : flats_.groups()) {
      for (std::size_t k = 0; k < group.indices.size(); ++k) {
        FlatLayout::Range const range = group.flat.layout().range(k, all_.rank());
        at::Tensor const& each = whole[group.indices[k]];
        own[group.indices[k]] = in_memory_order(each).narrow(0, range.first, range.count);
      }
    }
    return own;
  }
  /// Sets the gradient of a part; `i` counts the trained parameters.
  void set_gradients(std::vector<at::Tensor> const& own, std::vector<bool> const& has) {
    for (std::size_t i = 0, k = 0; i < parts_.of.size(); ++i) {
      if (!parts_.of[i]) continue;
      // Also where there is none: a window that was skipped has left its own.
      parts_.parameters.tensors[i].mutable_grad() = has[k] ? own[k] : at::Tensor();
      ++k;
    }
  }
  void reset_gradients() const { parts_.parameters.reset_gradients(); }

  /// After an update: every process gets the parts of the others.
  void collect() {
    at::NoGradGuard const no_gradients;
    for (FlatGroups::Group& group : flats_.groups()) {
      if (layer_of_.contains(&group)) continue;
      at::Tensor mine = group.flat.part(all_.rank()).clone();
      all_.collect(group.flat.flat(), mine, "the collection of weights");
    }
  }

  /// The tensor of which each process has a part, in the first process, or `side_by_side` in one that has
  /// much of it; undefined in the others. All call it at the same moments.
  at::Tensor whole(at::Tensor const& mine, TensorPart const& which, bool side_by_side = false) {
    at::NoGradGuard const no_gradients;
    constexpr char const* what = "a part of the run's state";
    std::size_t const k = places_[which.parameter].index;
    FlatLayout const& layout = places_[which.parameter].group->flat.layout();
    int const keeper = side_by_side ? places_[which.parameter].keeper : 0;
    if (all_.rank() != keeper) {
      if (which.count != 0) all_.send(mine.cpu().contiguous(), keeper, what);
      return {};
    }
    at::Tensor const host = mine.cpu().contiguous();
    at::Tensor whole = at::empty_strided(which.sizes, which.strides, host.options());
    at::Tensor const elements = in_memory_order(whole);
    elements.narrow(0, which.first, which.count).copy_(host);
    for (int rank = 0; rank < all_.size(); ++rank) {
      FlatLayout::Range const range = layout.range(k, rank);
      if (rank == keeper || range.count == 0) continue;
      at::Tensor part = at::empty({range.count}, host.options());
      all_.receive(part, rank, what);
      elements.narrow(0, range.first, range.count).copy_(part);
    }
    return whole;
  }

 private:
  /// Where a parameter is.
  struct Place {
    FlatGroups::Group* group = nullptr;
    std::size_t index = 0;  ///< in the group
    int keeper = 0;
  };

  /// Which process keeps each parameter in a checkpoint: of those with half of its largest part or more,
  /// the one that keeps the least so far.
  void choose_keepers() {
    std::vector<std::int64_t> kept(static_cast<std::size_t>(all_.size()));
    for (Place& place : places_) {
      if (place.group == nullptr) continue;
      FlatLayout const& layout = place.group->flat.layout();
      std::vector<std::int64_t> counts;
      for (int rank = 0; rank < all_.size(); ++rank) {
        counts.push_back(layout.range(place.index, rank).count);
      }
      std::int64_t const most = *std::ranges::max_element(counts);
      std::size_t least = counts.size();
      for (std::size_t rank = 0; rank < counts.size(); ++rank) {
        if (2 * counts[rank] < most) continue;
        if (least == counts.size() || kept[rank] < kept[least]) least = rank;
      }
      place.keeper = static_cast<int>(least);
      kept[least] += std::accumulate(counts.begin(), counts.end(), std::int64_t{0});
    }
  }

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
