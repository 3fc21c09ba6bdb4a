// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/ATen.h>
#include <torch/nn/module.h>

#include <cstdint>
#include <functional>
#include <optional>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include <frugal/core/libtorch/modes.hpp>
#include <frugal/core/libtorch/statistics_layers.hpp>

namespace frugal::detail {

// A module has a state besides the values of its tensors: each part's mode, each parameter's
// requires_grad, and which tensors are fixed. Two owners change it: ModuleHold for a fit, until the
// fit ends, and Adaptation for good.

/// The state that a run changes of its module, and puts back at every way out: modes and
/// requires_grad. What others change meanwhile stays.
///
/// A frozen layer keeps its statistics: is_frozen() decides, by what is fixed or held, and not by who
/// has fixed it, so that a layer which Freeze, freeze() or Lora has fixed is held in each fit, and
/// one that is trained again updates them again.
class ModuleHold {
 public:
  explicit ModuleHold(torch::nn::Module& root) : root_(&root) {}
  ModuleHold(ModuleHold const&) = delete;
  ModuleHold& operator=(ModuleHold const&) = delete;
  ~ModuleHold();

  /// Training mode, but for frozen layers. A part in evaluation mode stays there, unless all of the
  /// module is.
  void train();

  /// Before each forward pass in training: something may have called train().
  void before_pass() const {
    if (holds_layers_) [[unlikely]]
      hold_layers();
  }

  /// These tensors are not trained until let_go(). Of parameters and statistics.
  void hold(std::vector<at::Tensor> const& tensors);
  /// They are as they were before hold().
  void let_go(std::vector<at::Tensor> const& tensors);

  /// Parts that steps train in turns. Those of the others rest: they get no gradient, and are trained parameters all
  /// the same, whose layers go on with their statistics, unlike those of hold().
  void take_turns(std::vector<std::vector<at::Tensor>> parts) { parts_ = std::move(parts); }
  static constexpr auto all_parts = static_cast<std::size_t>(-1);
  /// The part that is trained, or `all_parts`.
  std::size_t turn() const { return turn_; }
  void give_turn(std::size_t part);
  /// Calls in the turn of each part, or once if no parts take turns.
  template <class Call>
  void in_each_turn(Call&& call) {
    struct Back {
      ModuleHold& hold;
      std::size_t turn;
      ~Back() { hold.give_turn(turn); }
    } const back{*this, turn_};
    std::size_t part = 0;
    do {
      if (!parts_.empty()) give_turn(part);
      call();
    } while (++part < parts_.size());
  }

  /// Everything is as it was; nothing the second time.
  void put_back() noexcept;

 private:
  struct Held {
    at::Tensor tensor{};
    bool requires_grad = false;
  };
  struct Layer {
    StatisticsLayer of{};
    bool is_held = false;
    bool trains = false;  ///< its mode in training, when it is not held
  };

  /// Holds the frozen layers, and those alone.
  void follow();
  void hold_layers() const;
  void rest(std::vector<at::Tensor> const& tensors);
  void wake(std::vector<at::Tensor> const& tensors);
  void release_layers();

  torch::nn::Module* root_;
  std::optional<Modes> modes_{};  ///< if the whole module has changed its mode
  std::vector<Layer> layers_{};
  std::unordered_map<at::TensorImpl const*, Held> held_{};
  std::vector<std::vector<at::Tensor>> parts_{};
  std::size_t turn_ = all_parts;
  std::unordered_map<at::TensorImpl const*, Held> resting_{};
  bool trains_ = false;
  bool holds_layers_ = false;
};

/// What the policies of a recipe do to a module's tensors for good, as one act: if one of them throws,
/// nothing of it stays, but for weights that are packed in 4 bits. A tensor that one of them trains is not fixed by the next.
class Adaptation {
 public:
  /// `seed`: of the trainer's runs, for what draws initial values.
  explicit Adaptation(torch::nn::Module& module, std::uint64_t seed = 0);
  Adaptation(Adaptation const&) = delete;
  Adaptation& operator=(Adaptation const&) = delete;
  ~Adaptation();
  /// All have succeeded.
  void keep() {
    before_.clear();
    undos_.clear();
  }
  /// Also undoes what is not a state of tensors, such as a new child, unless all succeed.
  void otherwise(std::function<void()> undo) { undos_.push_back(std::move(undo)); }

  /// Trained and saved with runs, whatever it was.
  void train(at::Tensor const& tensor);
  /// The same of statistics, which have no gradient.
  void update(at::Tensor const& tensor);
  std::uint64_t seed() const { return seed_; }
  bool trains(at::Tensor const& tensor) const {
    return trained_.contains(tensor.unsafeGetTensorImpl());
  }

 private:
  static void const* storage_of(at::Tensor const& tensor) {
    return tensor.has_storage() ? tensor.storage().unsafeGetStorageImpl() : nullptr;
  }
  struct Before {
    at::Tensor tensor{};
    at::Tensor gradient{};
    void const* storage = nullptr;
    bool requires_grad = false;
    bool fixed = false;
  };
  std::vector<Before> before_{};
  std::vector<std::function<void()>> undos_{};
  std::unordered_set<at::TensorImpl const*> trained_{};
  std::uint64_t seed_ = 0;
};

}  // namespace frugal::detail

#ifndef FRUGAL_COMPILED
#include <frugal/core/libtorch/module_hold.ipp>
#endif
