// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/core/source/data_identity.hpp>
#include <frugal/inline.hpp>

namespace frugal {

FRUGAL_INLINE void DataIdentity::add(std::string const& name, std::string const& value) {
  std::string key = name;
  for (int i = 2; !values_.emplace(key, value).second; ++i) key = name + " " + std::to_string(i);
}

}  // namespace frugal
