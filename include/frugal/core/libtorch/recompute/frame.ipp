// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/core/libtorch/recompute/frame.hpp>

#include <algorithm>
#include <cstddef>
#include <exception>

#include <frugal/core/libtorch/generators.hpp>
#include <frugal/core/source/batch.hpp>
#include <frugal/error.hpp>
#include <frugal/inline.hpp>

namespace frugal::detail {

FRUGAL_INLINE std::int64_t Frame::version_of(at::Tensor const& tensor) {
  if (!tensor.requires_grad()) return -1;
  bool const leaf = tensor.is_leaf() || (tensor.is_view() && tensor._base().is_leaf());
  return leaf ? tensor._version() : -1;
}

FRUGAL_INLINE std::shared_ptr<Slot> Frame::new_slot(at::Tensor const& tensor) {
  auto slot = std::make_shared<Slot>(Slot{
      .sizes = tensor.sizes().vec(), .type = tensor.scalar_type(), .version = version_of(tensor)});
  slots_.push_back(slot);
  return slot;
}

FRUGAL_INLINE at::Tensor Frame::value_of(Slot& slot) {
  // Two threads of a backward pass may get here at once. The holder may re-enter, from a backward
  // pass inside the function.
  std::scoped_lock const lock(mutex_);
  if (!slot.value.defined()) recompute();
  if (!slot.value.defined()) refuse("the second call saved fewer tensors than the first");
  return slot.value;
}

FRUGAL_INLINE void Frame::recompute() {
  Capturing how(*this);
  Inside const inside;
  SavedTensorsScope const scope(&how);
  at::AutoGradMode const gradients(true);
  try {
    call_again();
  } catch (Enough const&) {  // everything that backward needs is there
  } catch (std::exception const&) {
    throw;
  } catch (...) {
    // LibTorch's threads forward no other exceptions to the caller of backward.
    throw ModuleError({.what = "a recomputed function threw a value that is not a std::exception",
                       .where = "recompute, in backward",
                       .why = "",
                       .fix = "Throw types that derive from std::exception."});
  }
}

FRUGAL_INLINE void Frame::fill(std::size_t at, at::Tensor const& tensor) {
  if (at >= slots_.size()) return;
  // A slot whose operator has finished its backward has expired.
  if (auto const slot = slots_[at].lock()) {
    if (slot->sizes != tensor.sizes() || slot->type != tensor.scalar_type()) {
      refuse("its tensor " + std::to_string(at) + " is now " + shape_text(tensor));
    }
    if (slot->version != version_of(tensor)) {
      refuse("a parameter " + shape_text(tensor) + " was changed in between");
    }
    slot->value = tensor.detach();
  }
  if (at + 1 == slots_.size()) throw Enough{};
}

FRUGAL_INLINE void Frame::refuse(std::string why) {
  throw ModuleError({.what = "a recomputed function did not do what it did the first time",
                     .where = "recompute, in backward",
                     .why = std::move(why),
                     .fix = "Make it depend on its inputs, on parameters and on LibTorch's "
                            "generators only, and change weights only after backward."});
}

FRUGAL_INLINE Surroundings::Surroundings(std::vector<c10::Device> const& devices) {
  add(c10::Device(c10::kCPU));
  for (c10::Device const device : devices) {
    // A dry run on the meta device draws no numbers.
    if (!device.is_cpu() && !device.is_meta()) add(device);
  }
}

FRUGAL_INLINE Surroundings Surroundings::now_like(Surroundings const& other) {
  std::vector<c10::Device> devices;
  devices.reserve(other.devices_.size());
  for (auto const& each : other.devices_) devices.push_back(each.device);
  return Surroundings(devices);
}

FRUGAL_INLINE void Surroundings::put_back() const {
  for (OfDevice const& each : devices_) {
    at::Generator generator = each.generator;
    set_state_of_generator(generator, each.state);
    at::autocast::set_autocast_enabled(each.device.type(), each.autocast);
    at::autocast::set_autocast_dtype(each.device.type(), each.type);
  }
  at::autocast::set_autocast_cache_enabled(cached_);
  acting = acting_;
}

FRUGAL_INLINE void Surroundings::add(c10::Device device) {
  bool const known = std::any_of(devices_.begin(), devices_.end(),
                                 [&](OfDevice const& each) { return each.device == device; });
  if (known) return;
  at::Generator generator = at::globalContext().defaultGenerator(device);
  at::Tensor state = state_of_generator(generator);
  devices_.push_back({device, std::move(generator), std::move(state),
                      at::autocast::is_autocast_enabled(device.type()),
                      at::autocast::get_autocast_dtype(device.type())});
}

FRUGAL_INLINE AnyValue call_any(AnyModule& module, Arguments arguments) {
  auto const with = [&]<std::size_t... Is>(std::index_sequence<Is...>) {
    return module.any_forward(std::move(arguments[Is])...);
  };
  switch (arguments.size()) {
    case 0:
      return with(std::make_index_sequence<0>{});
    case 1:
      return with(std::make_index_sequence<1>{});
    case 2:
      return with(std::make_index_sequence<2>{});
    case 3:
      return with(std::make_index_sequence<3>{});
    case 4:
      return with(std::make_index_sequence<4>{});
    default:
      throw ModuleError({.what = "a segmented Sequential is called with " +
                                 std::to_string(arguments.size()) + " arguments",
                         .where = "Recompute",
                         .why = "it passes on four at most",
                         .fix = "Pass them as a tuple or a vector."});
  }
}

FRUGAL_INLINE AnyValue ChainFrame::add(AnyModule const& module, Arguments arguments) {
  // Other code may have drawn random numbers since the last link.
  links_.push_back({module, Surroundings(inputs_.devices())});
  return record([&] { return call_any(links_.back().module, std::move(arguments)); });
}

}  // namespace frugal::detail
