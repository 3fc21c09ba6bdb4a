// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/ATen.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include <frugal/core/libtorch/page_locked.hpp>
#include <frugal/core/state/archive_path.hpp>
#include <frugal/core/state/state_dict.hpp>
#include <frugal/core/state/tensor_part.hpp>
#include <frugal/core/state/tensor_places.hpp>
#include <frugal/inline.hpp>

namespace frugal {

/// How a StateWriter stores tensors.
enum class CopyTarget {
  on_device,  ///< copied on their own device
  on_host,    ///< copied to host memory, page-locked for device tensors; see finish()
  none,       ///< not copied, if contiguous in host memory; otherwise as on_host
  live,       ///< not copied: the tensors themselves, wherever they are, to look at
};

/// Saves to a StateDict. Copies tensors unless told otherwise, so that later steps do not change
/// what was saved. Reuses a copy that the StateDict already has at the path, if shape and type
/// match: repeated saves to one StateDict allocate once. Call finish() after the last value.
class StateWriter {
 public:
  static constexpr bool loading = false;

  bool of_a_snapshot = false;  ///< see Snapshot::persist
  WholeTensor whole{};  ///< makes tensors whole that this process has in part, as checkpoints need
  /// Of other tensors only that they are there: another process saves them.
  bool parts_alone = false;
  /// Then, of a module that is divided: tensors that this process alone has are saved, and those that
  /// belong to no tensor of the module.
  TensorPlaces const* places = nullptr;
  std::vector<std::string>* elsewhere =
      nullptr;  ///< gets the paths of tensors that another one keeps

  /// `floats`: the type in which floating-point tensors are stored, or Undefined for their own.
  explicit StateWriter(StateDict& memory, CopyTarget copies = CopyTarget::on_device,
                       at::ScalarType floats = at::ScalarType::Undefined)
      : memory_(memory), copies_(copies), floats_(floats) {}

  template <class T>
  void operator()(std::string const& name, T const& value) {
    save(path_(name), value);
  }
  template <class F>
  void scope(std::string const& name, F&& body) {
    path_.scope(name, *this, body);
  }
  /// Takes a tensor in host memory that nothing else changes or keeps, without a copy.
  FRUGAL_INLINE void give(std::string const& name, at::Tensor tensor) {
    put_text(path_(name), "tensor");
    if (saves(path_(name))) memory_.tensors[path_(name)] = std::move(tensor);
  }
  FRUGAL_INLINE void part(std::string const& name, at::Tensor const& mine,
                          TensorPart const& which) {
    if (!whole || !mine.defined()) return put_tensor(path_(name), mine);
    put_text(path_(name), "tensor");
    at::Tensor const all = whole(mine, which);
    if (!all.defined()) {
      if (elsewhere != nullptr) elsewhere->push_back(path_(name));
      return;
    }
    bool const rounds = floats_ != at::ScalarType::Undefined && all.is_floating_point();
    if (all.is_same(mine) || rounds) {
      keep(memory_.tensors[path_(name)], all.detach());
    } else {
      memory_.tensors[path_(name)] = all.detach().contiguous();  // nobody else has it
    }
  }

  /// Allocates missing page-locked memory, in one go, and starts the copies into it. Does nothing
  /// if no device tensor went to host memory.
  FRUGAL_INLINE void finish() {
    if (missing_.empty()) return;
    std::vector<at::Tensor> like;
    like.reserve(missing_.size());
    for (Missing const& each : missing_) {
      like.push_back(
          at::empty(each.value.sizes(), at::TensorOptions().dtype(each.type).device(at::kMeta)));
    }
    std::vector<at::Tensor> const made = detail::page_locked_like(like);
    for (std::size_t i = 0; i < missing_.size(); ++i) {
      *missing_[i].kept = made[i];
      missing_[i].kept->copy_(missing_[i].value, /*non_blocking=*/true);
    }
    missing_.clear();
  }

 private:
  struct Missing {
    at::Tensor* kept;
    at::Tensor value;
    at::ScalarType type;
  };

  template <class T>
  void save(std::string const& path, T const& value) {
    if constexpr (std::is_same_v<T, at::Tensor>) {
      put_tensor(path, value);
    } else if constexpr (requires { value.has_value(); }) {
      if (value) {
        save(path, *value);
      } else {
        put_absent(path);
      }
    } else if constexpr (detail::ListOfValues<T>) {
      put_unsigned(path, value.size());
      for (std::size_t i = 0; i < value.size(); ++i) {
        save<typename T::value_type>(detail::item_path(path, i), value[i]);
      }
    } else if constexpr (std::is_same_v<T, bool>) {
      put_truth_value(path, value);
    } else if constexpr (std::is_floating_point_v<T>) {
      put_real(path, static_cast<double>(value));
    } else if constexpr (std::is_integral_v<T> && std::is_signed_v<T>) {
      put_signed(path, value);
    } else if constexpr (std::is_integral_v<T>) {
      put_unsigned(path, value);
    } else {
      put_text(path, value);
    }
  }

  // One function for each type, so that programs compile nothing of the variant and of the maps.
  FRUGAL_INLINE void put_absent(std::string const& path) { memory_.values[path] = {}; }
  FRUGAL_INLINE void put_truth_value(std::string const& path, bool value) {
    memory_.values[path] = value;
  }
  FRUGAL_INLINE void put_real(std::string const& path, double value) {
    memory_.values[path] = value;
  }
  FRUGAL_INLINE void put_signed(std::string const& path, std::int64_t value) {
    memory_.values[path] = value;
  }
  FRUGAL_INLINE void put_unsigned(std::string const& path, std::uint64_t value) {
    memory_.values[path] = value;
  }
  FRUGAL_INLINE void put_text(std::string const& path, std::string_view value) {
    memory_.values[path] = std::string(value);
  }
  FRUGAL_INLINE void put_tensor(std::string const& path, at::Tensor const& value) {
    put_absent(path);
    if (!value.defined()) return;
    put_text(path, "tensor");
    if (saves(path)) keep(memory_.tensors[path], value.detach());
  }

  FRUGAL_INLINE bool saves(std::string const& path) const {
    if (!parts_alone) return true;
    if (places == nullptr || places->empty()) return false;
    return places->find(path) == nullptr || places->saves(path);
  }

  FRUGAL_INLINE void keep(at::Tensor& kept, at::Tensor const& value) {
    at::ScalarType const type = floats_ != at::ScalarType::Undefined && value.is_floating_point()
                                    ? floats_
                                    : value.scalar_type();
    // A tensor around foreign memory (from_blob) has no allocator, and may outlive that memory.
    bool const stays = copies_ == CopyTarget::live ||
                       (copies_ == CopyTarget::none && value.is_cpu() && value.is_contiguous());
    if (stays && type == value.scalar_type() && value.has_storage() &&
        value.storage().allocator() != nullptr) {
      kept = value;
      return;
    }
    bool const there = copies_ == CopyTarget::on_device || copies_ == CopyTarget::live;
    at::Device const device = there ? value.device() : at::Device(at::kCPU);
    // Only copies to page-locked memory are asynchronous.
    bool const page_locked = device.is_cpu() && !value.is_cpu();
    bool const fits = kept.defined() && kept.scalar_type() == type && kept.device() == device &&
                      kept.sizes() == value.sizes() && (!page_locked || kept.is_pinned());
    if (page_locked && !fits) {
      missing_.push_back({&kept, value, type});
      return;
    }
    // The tensor at the path may be the run's own.
    bool const borrowed =
        copies_ == CopyTarget::live || (copies_ == CopyTarget::none && !page_locked);
    if (!fits || borrowed) {
      kept = at::empty(value.sizes(), value.options().dtype(type).device(device));
    }
    kept.copy_(value, /*non_blocking=*/!value.is_cpu());
  }

  StateDict& memory_;
  CopyTarget copies_;
  at::ScalarType floats_;
  detail::ArchivePath path_;
  std::vector<Missing> missing_;
};

}  // namespace frugal
