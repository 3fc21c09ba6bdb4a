// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/grad_mode.h>
#include <c10/core/impl/VirtualGuardImpl.h>
#include <torch/nn/module.h>

#include <string>
#include <variant>

#include <frugal/loop/any_run.hpp>
#include <frugal/libtorch/generators.hpp>
#include <frugal/state/memory.hpp>
#include <frugal/state/memory_reader.hpp>
#include <frugal/state/memory_writer.hpp>

namespace frugal::detail {

/// Shows an archive every parameter and buffer of a module, by name.
template <class Archive>
void visit_tensors(torch::nn::Module& module, Archive&& archive) {
  for (auto const& item : module.named_parameters()) {
    if (item.value().defined()) archive(item.key(), item.value());
  }
  for (auto const& item : module.named_buffers()) {
    if (item.value().defined()) archive(item.key(), item.value());
  }
}

/// Shows an archive the generators' states, or sets them. A device's that was not saved, since the
/// run was elsewhere then, stays as `fit` has seeded it.
template <class Archive>
void persist_generators(Archive& archive, c10::Device device) {
  archive.scope("generators", [&](auto& inner) {
    for (auto& [name, generator] : generators_of(device)) {
      if constexpr (Archive::loading) {
        if (name != "cpu" && !inner.holds(name)) continue;
      }
      at::Tensor state;
      if (!Archive::loading) state = state_of_generator(generator);
      inner(name, state);
      if (Archive::loading) set_state_of_generator(generator, state);
    }
  });
}

/// All that a run is at one moment: the module's tensors, the generators, where training stands and
/// every policy's state. Taken again and again, it allocates once.
class RunState {
 public:
  Memory module;
  Memory run;

  /// `floats`: a type for the module's floating-point tensors, or Undefined for their own.
  void take(AnyRun& from, Copies copies, at::ScalarType floats = at::ScalarType::Undefined) {
    at::NoGradGuard const no_gradients;
    module.values.clear();
    run.values.clear();
    MemoryWriter tensors(module, copies, floats);
    visit_tensors(from.root, tensors);
    MemoryWriter rest(run, copies);
    from.persist(rest);
    c10::Device const device = from.settings.device;
    persist_generators(rest, device);
    tensors.settle();
    rest.settle();
    forget(module);
    forget(run);
    if (copies != Copies::beside && !device.is_cpu()) {
      // Copies are made behind the host's back: one wait for all of them.
      c10::impl::VirtualGuardImpl const guard(device.type());
      guard.getStream(device).synchronize();
    }
  }

  void put_back(AnyRun& into) const {
    at::NoGradGuard const no_gradients;
    visit_tensors(into.root, [&](std::string const& name, at::Tensor const& tensor) {
      tensor.copy_(module.tensors.at(name));
    });
    MemoryReader reader(run);
    into.persist(reader);
    persist_generators(reader, into.settings.device);
  }

 private:
  // Buffers of what is no longer there, such as a policy's optional tensor.
  static void forget(Memory& memory) {
    std::erase_if(memory.tensors, [&](auto const& entry) {
      auto const value = memory.values.find(entry.first);
      return value == memory.values.end() || std::holds_alternative<std::monostate>(value->second);
    });
  }
};

}  // namespace frugal::detail
