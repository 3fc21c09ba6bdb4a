// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/ATen.h>
#include <ATen/Version.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/grad_mode.h>
#include <ATen/core/stack.h>
#include <c10/core/DispatchKey.h>
#include <c10/core/impl/LocalDispatchKeySet.h>
#include <torch/nn/module.h>
#include <torch/nn/modules/conv.h>
#include <torch/nn/modules/embedding.h>
#include <torch/nn/modules/linear.h>

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <frugal/model/structured/axis_values.hpp>
#include <frugal/model/where.hpp>

namespace frugal::detail {

using AxisRule = void (*)(AxisValues&, OperatorCall const&);

/// Null if the operator has none.
AxisRule axis_rule_of(std::string const& name);

/// Follows the axes of parameters through one forward pass, operator by operator.
///
/// An operator with a rule is looked at as a whole, whatever it is made of; one without is looked
/// into, if it is composite. The axes of any other are locked, so that they keep their size.
class AxisTrace : public AxisValues {
 public:
  using AxisValues::AxisValues;

  /// Traces what `forward` does in this thread. Its result is what the caller sees: it stays.
  void run(std::function<at::Tensor()> const& forward);

 private:
  // LibTorch leaves this key to others, and so does frugal's interception: it lies above that.
  static constexpr c10::DispatchKey key = c10::DispatchKey::TESTING_ONLY_GenericMode;

  class At {
   public:
    explicit At(AxisTrace& trace) : before_(std::exchange(active(), &trace)) {}
    At(At const&) = delete;
    At& operator=(At const&) = delete;
    ~At() { active() = before_; }

   private:
    AxisTrace* before_;
    c10::impl::IncludeDispatchKeyGuard include_{key};
  };
  static AxisTrace*& active() {
    thread_local AxisTrace* trace = nullptr;
    return trace;
  }

  static void register_fallback();

  static void follow(c10::OperatorHandle const& op, c10::DispatchKeySet keys,
                     torch::jit::Stack* stack);
};

/// A dimension of a tensor that a group cuts: `before` x `size` x `after` elements, of which the
/// middle number is the group's.
struct CutPlace {
  std::string name;
  at::Tensor tensor;
  std::int64_t dim = 0;
  std::int64_t after = 1;
  bool makes = false;  ///< a weight's rows
  bool takes = false;  ///< a weight's columns
  bool scale = false;  ///< the weight of a BatchNorm

  /// Sums of what belongs to each of the group's positions.
  at::Tensor summed(at::Tensor const& values, std::int64_t size) const;
  /// The dimension's indices of the group's positions where `keep` is true.
  at::Tensor indices(at::Tensor const& keep) const;
};

/// Positions that are cut together, wherever they occur.
struct CutGroup {
  std::int64_t size = 0;
  std::string why{};  ///< why it cannot be cut; empty if it can
  std::vector<CutPlace> places{};

  std::string name() const;
};

/// The numbers that layers print and compute with, after their tensors have changed.
void sync_options(torch::nn::Module& module);

/// Tensors as they were, for a cut that fails. Tensors keep their identity.
class KeptTensors {
 public:
  void keep(at::Tensor const& tensor);
  void put_back();

 private:
  std::vector<std::pair<at::Tensor, at::Tensor>> kept_;
};

/// Zeros the columns of what is removed, in new memory.
void mask_group(CutGroup const& group, at::Tensor const& keep, KeptTensors& kept);

void cut_group(CutGroup const& group, at::Tensor const& keep, KeptTensors& kept);

}  // namespace frugal::detail

namespace frugal {

/// How channels are ranked: by the sums of absolute values, or of squares, of all weights that make or
/// take them; or by the scale of their BatchNorms (Liu et al., "Network slimming", 2017).
enum class RankBy { l1, l2, batch_norm_scale };

namespace detail {

struct CutSettings {
  double keep = 0;
  std::int64_t round = 1;  ///< 0: the machine's vector
  RankBy rank = RankBy::l2;
  std::optional<NamePatterns> where{};
};

/// Elements of a type in a vector register of the machine; on an accelerator, in 64 bytes, of which
/// its matrix units take a multiple.
std::int64_t vector_width(at::Tensor const& like);

/// The groups of a traced module, in the order of its parameters.
std::vector<CutGroup> groups_of(torch::nn::Module& module, AxisTrace const& trace);

/// The importance of each position; undefined if the group has nothing to rank by.
at::Tensor importance_of(CutGroup const& group, RankBy rank);

/// How many positions stay: the share, rounded up to what fills a vector.
std::int64_t width_after(CutGroup const& group, CutSettings const& settings);

}  // namespace detail
}  // namespace frugal

#ifndef FRUGAL_COMPILED
#include <frugal/model/structured/groups.ipp>
#endif
