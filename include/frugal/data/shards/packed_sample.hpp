// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

namespace frugal {

/// A sample with bytes of its own, as shards are packed from it.
struct PackedSample {
  struct Field {
    std::string extension;
    std::string bytes;
  };

  std::string key;
  std::vector<Field> fields;
};

}  // namespace frugal
