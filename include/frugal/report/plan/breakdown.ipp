// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/report/plan/breakdown.hpp>

#include <frugal/base/json_writer.hpp>
#include <frugal/error.hpp>
#include <frugal/inline.hpp>
#include <frugal/report/plan/require.hpp>

namespace frugal::plan {

FRUGAL_INLINE Breakdown& Breakdown::add(Lever const& lever) {
  detail::require_not_negative("factor of " + lever.name, lever.factor);
  RunCost cost = steps_.back().cost;
  switch (lever.term) {
    case Term::price:
      cost.price = cost.price * lever.factor;
      break;
    case Term::hours:
      cost.hours *= lever.factor;
      break;
    case Term::runs:
      cost.runs *= lever.factor;
      break;
  }
  std::string note(name_of(lever.term));
  note += ", " + std::string(name_of(lever.evidence));
  if (!lever.note.empty()) note += ": " + lever.note;
  Usd const saved = steps_.back().cost.total() - cost.total();
  steps_.push_back({.name = "+ " + lever.name, .cost = cost, .saved = saved, .note = note});
  return *this;
}

FRUGAL_INLINE std::string Breakdown::json() const {
  frugal::detail::JsonWriter out;
  out.object().add("version", 1).add("currency", "USD").add("title", title_);
  out.add("unit", "USD").key("steps").array();
  for (BreakdownStep const& step : steps_) {
    out.on_line(0).object().add("name", step.name).add("value", step.cost.total().value());
    out.add("hours", step.cost.hours * step.cost.runs).add("note", step.note).end();
  }
  return out.on_line(0).str("\n");
}

}  // namespace frugal::plan
