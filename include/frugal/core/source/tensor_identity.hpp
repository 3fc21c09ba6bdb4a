// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/ATen.h>

#include <cstdint>
#include <span>
#include <string>

#include <frugal/base/hash.hpp>

namespace frugal::detail {

/// Hashes tensors by type, shape and values, wherever they are and however they are strided.
///
/// Cost    memory speed on the host; from a device, and for a strided tensor, a copy of 64 MiB at a
///         time.
class TensorHash {
 public:
  void add(at::Tensor const& tensor);
  void add(std::string const& text) { hash_.update(std::as_bytes(std::span(text))); }

  std::uint64_t digest() const { return hash_.digest(); }

 private:
  static constexpr std::int64_t piece = std::int64_t{64} << 20;

  void add_bytes(at::Tensor const& part);

  Hash hash_;
};

/// "[60000, 28, 28] Byte, hash 0123456789abcdef"
std::string tensor_identity(at::Tensor const& tensor);

}  // namespace frugal::detail

#ifndef FRUGAL_COMPILED
#include <frugal/core/source/tensor_identity.ipp>
#endif
