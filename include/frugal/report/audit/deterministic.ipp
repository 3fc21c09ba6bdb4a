// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/report/audit/deterministic.hpp>

#include <frugal/error.hpp>
#include <frugal/inline.hpp>

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
