// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/checkpoint/safetensors_fault.hpp>
#include <frugal/checkpoint/safetensors_header.hpp>

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace frugal::detail {

/// Checks a header against the bytes of data that follow it, and sorts its tensors by offset.
/// Afterwards every tensor's range lies inside the data and has the size that its shape and dtype
/// require, and every byte of data belongs to exactly one tensor.
class SafetensorsLayout {
 public:
  SafetensorsLayout(SafetensorsHeader& header, std::string const& name, std::uint64_t data_at,
                    std::uint64_t data_size)
      : header_(header), name_(name), data_at_(data_at), data_size_(data_size) {}

  /// Returns the tensors' indices sorted by name. Unlike a hash table, binary search over them
  /// cannot be slowed down by chosen names.
  std::vector<std::uint32_t> check();

 private:
  std::vector<std::uint32_t> index_names() const;

  void sort_metadata();

  void check_size(SafetensorsEntry const& tensor) const;

  void check_cover() const;

  static std::string range(SafetensorsEntry const& tensor) {
    return "[" + std::to_string(tensor.begin) + "," + std::to_string(tensor.end) + "]";
  }

  [[noreturn]] void fail(SafetensorsEntry const& tensor, std::uint64_t byte, std::string what,
                         std::string why) const {
    fail(safetensors_tensor(tensor.name), byte, std::move(what), std::move(why));
  }

  [[noreturn]] void fail(std::string const& part, std::uint64_t byte, std::string what,
                         std::string why) const {
    safetensors_fail(name_, part, byte, std::move(what), std::move(why));
  }

  SafetensorsHeader& header_;
  std::string const& name_;
  std::uint64_t data_at_;
  std::uint64_t data_size_;
};

}  // namespace frugal::detail

#ifndef FRUGAL_COMPILED
#include <frugal/checkpoint/safetensors_layout.ipp>
#endif
