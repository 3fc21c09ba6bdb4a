// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>
#include <c10/core/Device.h>
#include <c10/util/Exception.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include <frugal/core/compose/composition.hpp>
#include <frugal/core/libtorch/host_meter.hpp>
#include <frugal/core/libtorch/layer_tensors.hpp>
#include <frugal/core/libtorch/meta_meter.hpp>
#include <frugal/core/libtorch/modes.hpp>
#include <frugal/core/libtorch/parameters.hpp>
#include <frugal/core/loop/evaluation.hpp>
#include <frugal/core/run/call_in_progress.hpp>
#include <frugal/core/run/context.hpp>
#include <frugal/core/run/phases.hpp>
#include <frugal/core/run/recipe_traits.hpp>
#include <frugal/core/source/batch.hpp>
#include <frugal/core/state/module_tensors.hpp>
#include <frugal/error.hpp>
#include <frugal/policy/average/weights.hpp>
#include <frugal/policy/kinds.hpp>
#include <frugal/policy/optimize/nothing.hpp>
#include <frugal/trainer.hpp>

namespace frugal {

/// Bytes of tensors that training takes, by what they are for. plan_memory computes it.
struct RecipeMemory {
  std::uint64_t weights = 0;          ///< parameters, frozen ones included
  std::uint64_t buffers = 0;          ///< of the module, such as the statistics of BatchNorm
  std::uint64_t gradients = 0;        ///< of the parameters that are trained
  std::uint64_t optimizer_state = 0;  ///< its moments, from the first step on
  std::uint64_t kept_weights = 0;     ///< averaged weights, the weights of the best validation
  std::uint64_t batch = 0;            ///< the micro-batch
  std::uint64_t activations = 0;      ///< alive at the end of the forward pass
  std::uint64_t pass_peak = 0;        ///< of the passes: activations, gradients, intermediates
  std::uint64_t peak = 0;             ///< of all of it, at one moment
  std::uint64_t checkpoint = 0;       ///< on disk: weights, buffers, optimizer, kept weights
  bool knows_optimizer = true;        ///< false: optimizer_state is 0 because it is unknown
  /// Whether shapes alone were propagated. If not, the dry run computed on the CPU: why is in
  /// `note`.
  bool on_meta = true;
  std::string note{};
};

namespace detail {

/// A weight that was replaced by a packed form has the shape of the former, and hardly any memory.
std::uint64_t bytes_in_memory(at::Tensor const& tensor);

/// What does not depend on a batch.
template <class Trainer>
RecipeMemory memory_at_rest(Trainer& trainer) {
  using Policies = typename Trainer::policies;
  RecipeMemory memory;
  torch::nn::Module const& module = base_module(trainer.module());
  std::uint64_t averages = 0;
  std::uint64_t saved = 0;
  for (at::Tensor const& tensor : Parameters::of(module).tensors) {
    auto const bytes = static_cast<std::uint64_t>(tensor.nbytes());
    saved += bytes;
    if (tensor.requires_grad()) memory.gradients += bytes;
    averages += bytes_of_average(tensor);
  }
  memory.weights = saved;
  // A run has fixed tensors in memory, and saves none.
  for (at::Tensor const& tensor : each_once(module.parameters())) {
    if (is_fixed(tensor)) memory.weights += bytes_in_memory(tensor);
  }
  for (at::Tensor const& buffer : each_once(module.buffers())) {
    memory.buffers += bytes_in_memory(buffer);
    if (!is_fixed(buffer)) saved += bytes_in_memory(buffer);
  }
  auto const& optimizer = trainer.template policy<kinds::optimizer>();
  if constexpr (requires { optimizer.moment_count(); }) {
    memory.optimizer_state = memory.gradients * optimizer.moment_count();
  } else if constexpr (requires(Parameters const& all) { optimizer.moment_bytes(all); }) {
    memory.optimizer_state = optimizer.moment_bytes(Parameters::of(module));
  } else {
    memory.knows_optimizer = is_null<std::remove_cvref_t<decltype(optimizer)>>;
  }
  if constexpr (has<kinds::average, Policies>) memory.kept_weights += averages;
  if constexpr (has<kinds::early_stop, Policies>) {
    auto const& stop = trainer.template policy<kinds::early_stop>();
    if constexpr (requires { stop.restore_best; }) {
      if (stop.restore_best) memory.kept_weights += saved;
    }
  }
  memory.checkpoint = saved + memory.optimizer_state + memory.kept_weights;
  return memory;
}

/// The passes of one window, outside of a fit, under the guards of all policies. Trains nothing.
template <class Context, class Objective>
class PlannedPasses : private RunOutsideFit<Context, Objective> {
  using Base = RunOutsideFit<Context, Objective>;
  using Base::engine_;
  using Base::run_;

 public:
  template <class Policies>
  PlannedPasses(typename Context::module_type& module, Objective& objective,
                Settings const& settings, Policies const& policies)
      : Base(module, objective, settings, policies) {
    run_.hold.train();  // a frozen layer plans no statistics
    if constexpr (has<kinds::alternate, typename Context::policies>) {
      ModuleSetup phase(run_);
      engine_.template state<kinds::alternate>().on_module(phase);
    }
  }

  /// Forward and backward. `live()` is the bytes of tensors; returns how many a forward pass has
  /// left.
  template <class B, class Live>
  std::int64_t passes(B const& batch, c10::Device device, int times, Live&& live) {
    run_.device = device;
    std::int64_t left = 0;
    run_.hold.in_each_turn([&] {
      for (int i = 0; i < times; ++i) {
        std::int64_t const before = live();
        Forward phase(run_, /*is_training=*/true);
        auto body = [&]() -> Loss { return this->loss_of(batch); };
        Loss loss = engine_.template surround<around::forward>(phase, body);
        left = std::max(left, live() - before);
        loss.output.reset();
        backward(loss, at::ones_like(loss.value), 1.0);
      }
    });
    return left;
  }
};

template <class B>
std::uint64_t bytes_of_batch(B const& batch) {
  std::uint64_t bytes = 0;
  batch_tensors(batch, [&](at::Tensor const& tensor) {
    if (tensor.defined()) bytes += static_cast<std::uint64_t>(tensor.nbytes());
  });
  return bytes;
}

template <class B>
B on_meta(B const& batch) {
  B meta = batch;
  batch_tensors(meta, [](at::Tensor& tensor) {
    if (!tensor.defined()) return;
    tensor =
        at::empty_strided(tensor.sizes(), tensor.strides(), tensor.options().device(at::kMeta));
  });
  return meta;
}

/// Two passes have what all later ones have: gradients that wait while the next micro-batch runs.
inline int passes_of_window(RecipeFacts const& facts) { return facts.batches > 1 ? 2 : 1; }

template <class Context, class Objective, class Policies, class B>
void measure_on_meta(RecipeMemory& memory, typename Context::module_type& module,
                     Objective& objective, Settings const& settings, Policies const& policies,
                     B const& batch) {
  torch::nn::Module& root = base_module(module);
  MetaMeter meter;
  MetaMeter::Installed const installed(meter);
  MetaFallback const fallback;
  // Before the module comes back: what the passes leave alive refers to its meta tensors.
  OnMeta const moved(root);
  B const meta = on_meta(batch);
  PlannedPasses<Context, Objective> run(module, objective, settings, policies);
  std::int64_t const base = meter.live();
  meter.forget_peak();
  memory.activations = static_cast<std::uint64_t>(
      run.passes(meta, c10::Device(c10::kMeta), passes_of_window(Context::facts_of(policies)),
                 [&] { return meter.live(); }));
  memory.pass_peak = static_cast<std::uint64_t>(meter.peak() - base);
}

/// Calls `passes` and gives the module the gradients and buffers back that it had before.
template <class Passes>
void undo_passes(torch::nn::Module& root, Passes&& passes) {
  BufferCopies buffers;
  buffers.take(root);
  std::vector<std::pair<at::Tensor, at::Tensor>> gradients;
  for (at::Tensor const& tensor : Parameters::of(root).tensors) {
    gradients.emplace_back(tensor, tensor.grad());
    tensor.mutable_grad().reset();
  }
  auto const put_back = [&] {
    for (auto const& [tensor, gradient] : gradients) tensor.mutable_grad() = gradient;
    at::NoGradGuard const no_gradients;
    buffers.restore();
  };
  try {
    passes();
  } catch (...) {
    put_back();
    throw;
  }
  put_back();
}

template <class Context, class Objective, class Policies, class B>
void measure_on_host(RecipeMemory& memory, typename Context::module_type& module,
                     Objective& objective, Settings const& settings, Policies const& policies,
                     B const& batch) {
  HostMeter::install();
  undo_passes(base_module(module), [&] {
    B host = batch;
    batch_to(host, c10::Device(c10::kCPU));
    PlannedPasses<Context, Objective> run(module, objective, settings, policies);
    std::int64_t const base = HostMeter::live();
    HostMeter::forget_peak();
    memory.activations = static_cast<std::uint64_t>(
        run.passes(host, c10::Device(c10::kCPU), passes_of_window(Context::facts_of(policies)),
                   [] { return HostMeter::live(); }));
    memory.pass_peak = static_cast<std::uint64_t>(HostMeter::peak() - base);
  });
}

}  // namespace detail

/// The memory that training of this trainer's recipe takes with such micro-batches, by a dry run on
/// the meta device: no memory for activations, no arithmetic, except for operators that LibTorch
/// cannot run there, which run on the CPU one at a time. Under all policies' guards, so Recompute,
/// Activations and Accumulate count. Trains nothing and leaves the module as it was.
///
/// Every Precision but FP32 (none acts on meta tensors), Activations<Offload>, and an objective that
/// reads values, need a dry run on the CPU, in host memory, which RecipeMemory::note names. The
/// module of such a recipe must be on the CPU: DeviceError otherwise.
///
/// Not counted: workspaces of libraries, fragmentation and the allocator's rounding, temporaries of
/// the update, sources that read ahead.
template <class Trainer, class B>
RecipeMemory plan_memory(Trainer& trainer, B const& batch) {
  using Policies = typename Trainer::policies;
  using Module = std::remove_reference_t<decltype(trainer.module())>;
  using Objective = std::remove_reference_t<decltype(trainer.objective())>;
  using Context = typename detail::context_of<Module, Policies>::type;
  static_assert(ObjectiveFor<Objective, Module, B>,
                "frugal: the objective cannot be called with (module, batch). Give plan_memory a "
                "batch as the training source gives it.");
  trainer.adapt();
  RecipeMemory memory = detail::memory_at_rest(trainer);
  memory.batch = detail::bytes_of_batch(batch);
  Settings settings = trainer.resolved_settings();
  torch::nn::Module& root = base_module(trainer.module());
  detail::CallInProgress const call(
      {.name = "plan_memory", .module = &root, .device = settings.device});
  auto const& policies = detail::TrainerAccess::values_of(trainer);
  detail::KeepModes const modes(root);
  root.train();

  using Precision = std::remove_cvref_t<decltype(trainer.template policy<kinds::precision>())>;
  std::string unfit =
      detail::is_null<Precision> ? "" : "the Precision does not act on meta tensors";
  if (unfit.empty()) {
    try {
      detail::measure_on_meta<Context>(memory, trainer.module(), trainer.objective(), settings,
                                       policies, batch);
    } catch (c10::Error const& error) {
      unfit = error.what_without_backtrace();
    } catch (Error const& error) {
      unfit = error.what();
    }
  }
  if (!unfit.empty()) {
    unfit = unfit.substr(0, unfit.find('\n'));
    for (at::Tensor const& tensor : root.parameters()) {
      if (tensor.is_cpu()) continue;
      throw DeviceError({.what = "the memory of this recipe cannot be found on the meta device",
                         .where = "plan_memory",
                         .why = unfit,
                         .fix = "Give the trainer a module on the CPU: there the dry run computes, "
                                "in host memory."});
    }
    memory.on_meta = false;
    memory.note = "measured by a dry run on the CPU: " + unfit;
    settings.device = c10::Device(c10::kCPU);
    detail::measure_on_host<Context>(memory, trainer.module(), trainer.objective(), settings,
                                     policies, batch);
  }
  memory.peak = memory.weights + memory.buffers + memory.optimizer_state + memory.kept_weights +
                memory.batch + std::max(memory.pass_peak, memory.gradients);
  return memory;
}

}  // namespace frugal

#ifndef FRUGAL_COMPILED
#include <frugal/report/plan_memory.ipp>
#endif
