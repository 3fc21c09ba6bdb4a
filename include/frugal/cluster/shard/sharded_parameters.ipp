// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/cluster/shard/sharded_parameters.hpp>

#include <frugal/inline.hpp>

#include <torch/nn/modules/conv.h>
#include <torch/nn/modules/embedding.h>
#include <torch/nn/modules/linear.h>

#include <limits>
#include <numeric>

namespace frugal::detail {

FRUGAL_INLINE std::vector<at::Tensor> layer_weights(torch::nn::Module& root, std::int64_t least) {
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

FRUGAL_INLINE at::Tensor LayerWeights::add(at::Tensor const& parameter, FlatTensors& flat) {
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

FRUGAL_INLINE void LayerWeights::give_up() {
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

FRUGAL_INLINE void LayerWeights::give_back() {
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

FRUGAL_INLINE void LayerWeights::fill(Unit& unit) {
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

FRUGAL_INLINE ShardedParameters::ShardedParameters(Communicator& all, Parameters const& parameters,
                                                   Settings settings)
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

FRUGAL_INLINE void ShardedParameters::release() {
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

FRUGAL_INLINE bool ShardedParameters::holds(std::vector<at::Tensor> const& parameters) const {
  if (parameters.size() != trained_.size()) return false;
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    if (!parameters[i].is_same(trained_[i]) || parameters[i].data_ptr() != memory_[i]) return false;
  }
  return true;
}

FRUGAL_INLINE std::optional<HeldPart> ShardedParameters::held(at::Tensor const& parameter) const {
  if (layers_.size() == 0) return std::nullopt;
  for (std::size_t i = 0; i < parts_.of.size(); ++i) {
    bool const is_it = whole_[i].is_same(parameter);
    if (!is_it) continue;
    if (places_[i].group == nullptr || !layer_of_.contains(places_[i].group)) return std::nullopt;
    return HeldPart{.mine = parts_.parameters.tensors[i].detach(), .which = *parts_.of[i]};
  }
  return std::nullopt;
}

FRUGAL_INLINE std::vector<at::Tensor> ShardedParameters::parts_of(
    std::vector<at::Tensor> const& whole) {
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

FRUGAL_INLINE void ShardedParameters::set_gradients(std::vector<at::Tensor> const& own,
                                                    std::vector<bool> const& has) {
  for (std::size_t i = 0, k = 0; i < parts_.of.size(); ++i) {
    if (!parts_.of[i]) continue;
    // Also where there is none: a window that was skipped has left its own.
    parts_.parameters.tensors[i].mutable_grad() = has[k] ? own[k] : at::Tensor();
    ++k;
  }
}

FRUGAL_INLINE void ShardedParameters::collect() {
  at::NoGradGuard const no_gradients;
  for (FlatGroups::Group& group : flats_.groups()) {
    if (layer_of_.contains(&group)) continue;
    at::Tensor mine = group.flat.part(all_.rank()).clone();
    all_.collect(group.flat.flat(), mine, "the collection of weights");
  }
}

FRUGAL_INLINE at::Tensor ShardedParameters::whole(at::Tensor const& mine, TensorPart const& which,
                                                  bool side_by_side) {
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

FRUGAL_INLINE void ShardedParameters::choose_keepers() {
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

}  // namespace frugal::detail
