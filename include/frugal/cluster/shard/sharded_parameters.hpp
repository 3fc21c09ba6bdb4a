// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <numeric>
#include <optional>
#include <utility>
#include <vector>

#include <frugal/cluster/communicator.hpp>
#include <frugal/cluster/shard/layer_weights.hpp>
#include <frugal/cluster/tensors/block_norms.hpp>
#include <frugal/cluster/tensors/flat_tensors.hpp>
#include <frugal/core/libtorch/quietly.hpp>
#include <frugal/core/run/run.hpp>
#include <frugal/core/state/tensor_part.hpp>
#include <frugal/error.hpp>

namespace frugal::detail {

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
