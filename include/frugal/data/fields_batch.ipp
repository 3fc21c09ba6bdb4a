// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/data/fields_batch.hpp>

#include <frugal/error.hpp>
#include <frugal/inline.hpp>

namespace frugal::detail {

FRUGAL_INLINE at::Tensor const& field_in(NamedTensors const& fields, std::string const& name) {
  auto const found = fields.find(name);
  if (found != fields.end()) return found->second;
  std::string known;
  for (auto const& [key, tensor] : fields) known += (known.empty() ? "'" : ", '") + key + "'";
  throw DataError({.what = "the batch has no field '" + name + "'",
                   .where = "field",
                   .why = known.empty() ? "it has none" : "its fields are " + known,
                   .fix = "Give every sample an entry of that name."});
}

}  // namespace frugal::detail
