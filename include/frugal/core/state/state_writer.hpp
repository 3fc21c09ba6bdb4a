// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/ATen.h>

#include <cstddef>
#include <cstdint>
#include <set>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include <frugal/core/state/archive_path.hpp>
#include <frugal/core/state/part.hpp>
#include <frugal/core/state/state_dict.hpp>
#include <frugal/core/state/tensor_part.hpp>

namespace frugal::detail {

/// Blocks of memory, and each tensor's byte offset in them.
struct Blocks {
  struct Slot {
    std::size_t block;
    std::size_t offset;
  };
  std::vector<std::size_t> sizes;
  std::vector<Slot> slots;
};

/// Lays out tensors of the given sizes in few blocks with little waste. LibTorch rounds page-locked
/// memory up to a power of two, so each block is the largest power of two that they fill: one block
/// per tensor would waste a third, and cost a driver call each.
Blocks blocks_for(std::vector<std::size_t> const& bytes);

/// Contiguous page-locked tensors, one like each of these.
std::vector<at::Tensor> page_locked_like(std::vector<at::Tensor> const& all);

}  // namespace frugal::detail

namespace frugal {

/// Saves to a StateDict. Copies tensors unless told otherwise, so that later steps do not change
/// what was saved. Reuses a copy that the StateDict already has at the path, if shape and type
/// match: repeated saves to one StateDict allocate once. Call finish() after the last value.
/// Throws StateError for a path that has been written since the last finish().
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
    std::string const path = path_(name);
    note(path);
    save(path, value);
  }
  template <class F>
  void scope(std::string const& name, F&& body) {
    path_.scope(name, *this, body);
  }
  /// Takes a tensor in host memory that nothing else changes or keeps, without a copy.
  void give(std::string const& name, at::Tensor tensor);
  void part(std::string const& name, at::Tensor const& mine, TensorPart const& which);

  /// Allocates missing page-locked memory, in one go, and starts the copies into it, if a device
  /// tensor went to host memory. What is written after it is another save.
  void finish();

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
        std::string const item = detail::item_path(path, i);
        note(item);
        save<typename T::value_type>(item, value[i]);
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
  void put_absent(std::string const& path);
  void put_truth_value(std::string const& path, bool value);
  void put_real(std::string const& path, double value);
  void put_signed(std::string const& path, std::int64_t value);
  void put_unsigned(std::string const& path, std::uint64_t value);
  void put_text(std::string const& path, std::string_view value);
  void put_tensor(std::string const& path, at::Tensor const& value);

  /// StateError for a path of an earlier value.
  void note(std::string const& path);
  bool saves(std::string const& path) const;

  void keep(at::Tensor& kept, at::Tensor const& value);

  StateDict& memory_;
  CopyTarget copies_;
  at::ScalarType floats_;
  detail::ArchivePath path_;
  std::set<std::string> written_;  ///< paths
  std::vector<Missing> missing_;
};

}  // namespace frugal

#ifndef FRUGAL_COMPILED
#include <frugal/core/state/state_writer.ipp>
#endif
