// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/core/run/metrics.hpp>

#include <frugal/error.hpp>
#include <frugal/inline.hpp>

namespace frugal {

FRUGAL_INLINE void Metrics::add(Metrics const& other, std::string_view before) {
  for (auto const& [name, value] : other.values_) set(std::string(before) + name, value);
  for (auto const& [name, table] : other.tables_) set_table(std::string(before) + name, table);
}

FRUGAL_INLINE at::Tensor const& Metrics::table(std::string_view name) const {
  at::Tensor const* const table = found(tables_, name);
  if (table != nullptr) return *table;
  refuse("table", name, names_of(tables_),
         "there is none here; a run keeps the tables of its last validation alone");
}

FRUGAL_INLINE std::ostream& operator<<(std::ostream& out, Metrics const& metrics) {
  char const* before = "";
  for (auto const& [name, value] : metrics.values_) {
    out << std::exchange(before, ", ") << name << ' ' << value;
  }
  return out;
}

FRUGAL_INLINE void Metrics::refuse(char const* what, std::string_view name,
                                   std::string const& known, char const* none) {
  throw MetricError(
      {.what = std::string("no ") + what + " '" + std::string(name) + "' was measured",
       .where = "validation",
       .why = known.empty() ? none : "there are: " + known,
       .fix = "Add the metric to Validate<...>, or watch one of those."});
}

}  // namespace frugal
