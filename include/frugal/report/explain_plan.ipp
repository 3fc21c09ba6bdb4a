// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/report/explain_plan.hpp>

#include <frugal/base/number_text.hpp>
#include <frugal/base/number_texts.hpp>
#include <frugal/inline.hpp>

#include <cmath>

namespace frugal::detail {

FRUGAL_INLINE void require(PlanInputs const& given) {
  auto const refuse = [](std::string const& name, double value, char const* rule) {
    throw SettingsError({.what = name + " is " + detail::general(value, 6),
                         .where = "explain",
                         .why = "it is a price, a time, a rate or a number of devices",
                         .fix = std::string("Give ") + rule + ", or leave it out."});
  };
  auto const positive = [&](char const* name, std::optional<double> value) {
    if (value && !(*value > 0 && std::isfinite(*value))) refuse(name, *value, "more than 0");
  };
  auto const at_least_0 = [&](char const* name, std::optional<double> value) {
    if (value && !(*value >= 0 && std::isfinite(*value))) refuse(name, *value, "0 or more");
  };
  if (given.price) at_least_0("price", given.price->value());
  if (given.spot) at_least_0("spot", given.spot->value());
  positive("devices", given.devices);
  positive("step_seconds", given.step_seconds);
  positive("save_seconds", given.save_seconds);
  positive("lifetime_seconds", given.lifetime_seconds);
  at_least_0("restart_seconds", given.restart_seconds);
  positive("disk", given.disk.value());
  at_least_0("link", given.link.value());
  if (given.overlap > 1) refuse("overlap", given.overlap, "a share of at most 1");
  at_least_0("overlap", given.overlap);
  at_least_0("tokens_per_sample", given.tokens_per_sample);
  at_least_0("other_per_hour", given.other_per_hour);
}

FRUGAL_INLINE void explain_memory(RecipeMemory const& memory, std::ostream& out) {
  auto const text = [](std::uint64_t bytes) { return bytes_text(static_cast<double>(bytes)); };
  std::string parts = text(memory.weights + memory.buffers) + " weights and buffers, " +
                      text(memory.gradients) + " gradients, " + text(memory.optimizer_state) +
                      " optimizer";
  if (!memory.knows_optimizer) parts += " and what else it keeps";
  if (memory.kept_weights > 0) parts += ", " + text(memory.kept_weights) + " kept weights";
  parts += ", " + text(memory.activations) + " activations, " + text(memory.batch) + " batch";
  print_paragraph(out, "memory: " + text(memory.peak) + " at the peak (" + parts + ")");
  if (!memory.note.empty()) print_paragraph(out, "memory: " + memory.note);
}

FRUGAL_INLINE void explain_cost(plan::RecipeRun const& run, PlanPrice const& price,
                                std::ostream& out) {
  std::optional<double> const hours = run.hours();
  if (hours) {
    out << "time: " << watch::duration_text(3600 * *hours) << " ("
        << static_cast<std::uint64_t>(*run.steps) << " steps of "
        << watch::short_number(run.step->value()) << " s";
    if (run.exposed() > plan::Seconds(0)) {
      out << ", and " << watch::short_number(run.exposed().value()) << " s of communication";
    }
    out << ")\n";
  }
  auto const& paid = price.pays_spot ? run.spot : run.on_demand;
  if (paid) {
    plan::DeviceHours const hour(price.billed);
    plan::Usd const per_hour = *paid * hour;
    std::string text = "cost: " + plan::dollars_text(per_hour.value()) + " an hour";
    if (price.devices > 1) text += " for " + std::to_string(price.devices) + " devices";
    if (price.billed > price.devices) {
      text += " of the " + watch::short_number(price.billed) + " that are billed";
    }
    if (price.pays_spot) text += " on spot";
    if (hours) {
      double const billed = *hours + price.idle_seconds / 3600;
      text += ", " + plan::dollars_text((per_hour * billed).value()) + " for the run";
      if (price.idle_seconds > 0) {
        text += " and the " + watch::duration_text(price.idle_seconds) + " before its start";
      }
    }
    if (price.pays_spot && run.on_demand) {
      plan::Usd const calm = *run.on_demand * hour;
      text += "; " + plan::dollars_text(calm.value()) + " an hour on demand";
    }
    print_paragraph(out, text);
  }
  for (std::string const& note : price.notes) print_paragraph(out, note);
}

}  // namespace frugal::detail
