// SPDX-License-Identifier: Apache-2.0
// The bits that recipes end with, to be compared before and after a change that must not change any:
//
//     FRUGAL_BITS=/tmp/before ./dev test -R conform:      # then again after the change
//     diff <(sort /tmp/before) <(sort /tmp/after)
#pragma once

#include <ATen/ATen.h>

#include <frugal/base/hash.hpp>

#include <cstddef>
#include <cstdlib>
#include <fstream>
#include <map>
#include <span>
#include <string>

namespace frugal_test::conform {

/// Appends a hash of the weights and buffers to the file that FRUGAL_BITS names, if it does.
inline void write_bits(std::map<std::string, at::Tensor> const& tensors) {
  char const* const file = std::getenv("FRUGAL_BITS");
  if (file == nullptr) return;
  frugal::Hash hash;
  for (auto const& [name, tensor] : tensors) {
    at::Tensor const dense = tensor.contiguous();
    hash.update(std::as_bytes(std::span<char const>(name)));
    hash.update({static_cast<std::byte const*>(dense.const_data_ptr()), dense.nbytes()});
  }
  std::ofstream(file, std::ios::app) << std::hex << hash.digest() << '\n';
}

}  // namespace frugal_test::conform
