// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/report/audit.hpp>

#include <frugal/inline.hpp>

#include <span>

namespace frugal {

FRUGAL_INLINE std::uint64_t hash_of_tensors(torch::nn::Module& module) {
  Hash hash;
  detail::visit_all_tensors(module, [&](std::string const& name, at::Tensor const& tensor) {
    at::Tensor const host = tensor.detach().cpu().contiguous();
    auto const type = static_cast<std::int8_t>(host.scalar_type());
    hash.update(std::as_bytes(std::span(name.c_str(), name.size() + 1)));
    hash.update(std::as_bytes(std::span(&type, 1)));
    hash.update(std::as_bytes(std::span(host.sizes().data(), host.sizes().size())));
    hash.update({static_cast<std::byte const*>(host.const_data_ptr()), host.nbytes()});
  });
  return hash.digest();
}

}  // namespace frugal
