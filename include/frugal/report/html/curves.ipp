// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/report/html/curves.hpp>

#include <frugal/inline.hpp>

#include <algorithm>
#include <cstddef>

namespace frugal::html {

FRUGAL_INLINE std::string capitalised(std::string text) {
  if (!text.empty() && text[0] >= 'a' && text[0] <= 'z') text[0] = static_cast<char>(text[0] - 32);
  return text;
}

FRUGAL_INLINE std::vector<Curve> curves_of(std::vector<RunFolder> const& runs) {
  std::vector<std::string> names;
  for (RunFolder const& run : runs) {
    for (auto const& [name, series] : run.log.series) {
      bool const known = std::find(names.begin(), names.end(), name) != names.end();
      if (!known && !series.empty()) names.push_back(name);
    }
  }
  auto const take = [&](std::string const& name) {
    auto const found = std::find(names.begin(), names.end(), name);
    if (found == names.end()) return false;
    names.erase(found);
    return true;
  };
  std::vector<Curve> curves;
  auto const add = [&](Curve curve) {
    std::erase_if(curve.series, [&](auto const& each) { return !take(each.first); });
    if (!curve.series.empty()) curves.push_back(std::move(curve));
  };
  using enum Curve::Height;
  add({"Loss",
       Unit::plain,
       may_be_logarithmic,
       {{"loss", "training"},
        {"epoch/loss", "epoch mean"},
        {"validation/loss", "validation"},
        {"train_loss", "train metric"}}});
  for (std::string const& name : std::vector(names)) {
    if (!name.starts_with("validation/")) continue;
    std::string const metric = name.substr(11);
    add({capitalised(metric),
         Unit::plain,
         fitted,
         {{"train_" + metric, "training"}, {name, "validation"}}});
  }
  // A factor and a rate are no values of one chart: that of all runs, of which one is older.
  bool const rate = std::all_of(runs.begin(), runs.end(), [](RunFolder const& run) {
    return run.log.find("learning_rate") != nullptr || run.log.find("lr_factor") == nullptr;
  });
  bool const factor = std::any_of(runs.begin(), runs.end(), [](RunFolder const& run) {
    return run.log.find("lr_factor") != nullptr;
  });
  take(rate || !factor ? "lr_factor" : "learning_rate");
  add({"Learning rate", Unit::plain, from_zero, {{"learning_rate", "rate"}}});
  add({"Learning rate",
       Unit::plain,
       from_zero,
       {{"lr_factor", "factor"}},
       "factor of the schedule"});
  add({"Samples per second", Unit::plain, from_zero, {{"samples_per_second", "samples"}}});
  // Without sequences a sample is one token.
  bool tokens = false;
  for (RunFolder const& run : runs) {
    Series const* const some = run.log.find("tokens_per_second");
    Series const* const samples = run.log.find("samples_per_second");
    tokens = tokens || (some != nullptr && some->highest().value > 0 &&
                        (samples == nullptr || some->last().value != samples->last().value));
  }
  if (!tokens) take("tokens_per_second");
  add({"Tokens per second", Unit::plain, from_zero, {{"tokens_per_second", "tokens"}}});
  add({"Dollars",
       Unit::dollars,
       from_zero,
       {{"dollars", "so far"}, {"dollars_projected", "projected"}}});
  if (!curves.empty() && curves.back().title == "Dollars") {
    take("hours");
    take("hours_projected");
  }
  add({"Memory",
       Unit::bytes,
       from_zero,
       {{"device_memory_bytes", "tensors on the device"}, {"memory_bytes", "process"}}});
  add({"Time per step", Unit::seconds, from_zero, {{"step_seconds", "step"}}});
  add({"Share of the device's peak", Unit::percent, from_zero, {{"utilisation", "peak"}}});
  add({"Device idle", Unit::percent, from_zero, {{"device_idle", "idle"}}});
  add({"Waiting for data", Unit::percent, from_zero, {{"data_wait", "waiting"}}});
  add({"Gradient norm", Unit::plain, may_be_logarithmic, {{"gradient_norm", "norm"}}});
  add({"Hours", Unit::plain, from_zero, {{"hours", "so far"}, {"hours_projected", "projected"}}});
  add({"Energy, kilowatt-hours",
       Unit::plain,
       from_zero,
       {{"kilowatt_hours", "so far"}, {"kilowatt_hours_projected", "projected"}}});
  add({"Carbon, kg of CO2", Unit::plain, from_zero, {{"kg_co2", "carbon"}}});
  // They follow from the speed.
  take("flops_per_step");
  take("flops_per_second");
  for (std::string const& name : std::vector(names)) {
    Unit const unit = name.ends_with("_bytes")     ? Unit::bytes
                      : name.ends_with("_seconds") ? Unit::seconds
                      : name.ends_with("_dollars") ? Unit::dollars
                                                   : Unit::plain;
    add({name, unit, fitted, {{name, name}}});
  }
  return curves;
}

FRUGAL_INLINE void write_curves(Page& page, std::vector<RunFolder> const& runs) {
  bool const priced = std::any_of(runs.begin(), runs.end(), [](RunFolder const& run) {
    Series const* const dollars = run.log.find("dollars");
    return dollars != nullptr && dollars->highest().value > 0;
  });
  std::vector<Axis> axes{step_axis(), seconds_axis()};
  if (priced) axes.push_back(dollars_axis());
  page.section("curves", "Curves");
  bool const one = runs.size() == 1;
  std::vector<Point> marks;
  if (one) {
    for (LogLine const& event : runs[0].log.events) {
      bool const breaks = event.event == "resume" || event.event == "rollback";
      if (breaks && marks.size() < 50)
        marks.push_back({.step = event.step, .seconds = event.seconds});
    }
    if (!marks.empty()) page.note("Dotted lines: a resume or a return to an earlier state.");
  }
  for (Curve const& curve : curves_of(runs)) {
    Chart chart{.title = curve.title,
                .unit = curve.unit,
                .axes = axes,
                .from_zero = curve.height == Curve::Height::from_zero,
                .may_be_logarithmic = curve.height == Curve::Height::may_be_logarithmic,
                .note = curve.note,
                .marks = marks};
    for (std::size_t i = 0; i < runs.size(); ++i) {
      auto series = curve.series;
      if (!one) {
        // A validation is measured alike in all runs; losses of single batches are noise.
        auto const best = std::find_if(series.begin(), series.end(), [&](auto const& each) {
          return each.first.starts_with("validation/") && runs[i].log.has(each.first);
        });
        if (best != series.end()) std::iter_swap(series.begin(), best);
      }
      for (auto const& [name, shown] : series) {
        Series const* const found = runs[i].log.find(name);
        // Next to the validation losses of others, a run whose own are all NaN has no line.
        if (found == nullptr && !one && runs[i].log.has(name)) break;
        if (found == nullptr) continue;
        chart.lines.push_back({.name = one ? shown : runs[i].name,
                               .points = found->points(),
                               .colour = one ? chart.lines.size() : i});
        if (!one) break;
      }
    }
    bool const validated = std::all_of(runs.begin(), runs.end(), [](RunFolder const& run) {
      return run.log.has("validation/loss");
    });
    if (!one && validated && chart.title == "Loss") chart.title = "Validation loss";
    if (!chart.lines.empty()) write_chart(page, chart);
  }
}

}  // namespace frugal::html
