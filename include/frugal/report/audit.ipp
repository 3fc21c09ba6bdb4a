// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/report/audit.hpp>

#include <frugal/error.hpp>
#include <frugal/inline.hpp>

#include <span>
#include <string>
#include <string_view>

namespace frugal::detail {

FRUGAL_INLINE void require_workspace(char const* config) {
  std::string_view const value = config == nullptr ? "" : config;
  if (value == ":4096:8" || value == ":16:8") return;
  throw SettingsError({.what = "cuBLAS is not deterministic with this workspace setting",
                       .where = "Audit<BitExact>",
                       .why = "the environment's CUBLAS_WORKSPACE_CONFIG is " +
                              (value.empty() ? "not set" : "'" + std::string(value) + "'"),
                       .fix = "Start the program with CUBLAS_WORKSPACE_CONFIG=:4096:8."});
}

}  // namespace frugal::detail

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
