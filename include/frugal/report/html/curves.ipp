// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/report/html/curves.hpp>

#include <frugal/inline.hpp>
#include <frugal/report/html/chart.hpp>
#include <frugal/report/html/chart_writer.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <string_view>

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
    std::vector<std::pair<std::string, std::string>> there;
    for (auto& each : curve.series) {
      if (take(each.first)) there.push_back(std::move(each));
    }
    curve.series = std::move(there);
    if (!curve.series.empty()) curves.push_back(std::move(curve));
  };
  add({.title = "Loss",
       .may_be_logarithmic = true,
       .series = {{"loss", "training"},
                  {"epoch/loss", "epoch mean"},
                  {"validation/loss", "validation"},
                  {"train_loss", "train metric"}}});
  std::vector<std::string> metrics;
  for (std::string const& name : names) {
    if (name.starts_with("validation/")) metrics.push_back(name.substr(11));
  }
  for (std::string const& name : metrics) {
    add({.title = capitalised(name),
         .series = {{"train_" + name, "training"}, {"validation/" + name, "validation"}}});
  }
  // A factor and a rate are no values of one chart: that of all runs, of which one is older.
  bool const rate = std::all_of(runs.begin(), runs.end(), [](RunFolder const& run) {
    return run.log.find("learning_rate") != nullptr || run.log.find("lr_factor") == nullptr;
  });
  bool const factor = std::any_of(runs.begin(), runs.end(), [](RunFolder const& run) {
    return run.log.find("lr_factor") != nullptr;
  });
  take(rate || !factor ? "lr_factor" : "learning_rate");
  add({.title = "Learning rate", .from_zero = true, .series = {{"learning_rate", "rate"}}});
  add({.title = "Learning rate",
       .from_zero = true,
       .series = {{"lr_factor", "factor"}},
       .note = "factor of the schedule"});
  add({.title = "Samples per second",
       .from_zero = true,
       .series = {{"samples_per_second", "samples"}}});
  // Without sequences a sample is one token.
  bool tokens = false;
  for (RunFolder const& run : runs) {
    Series const* const some = run.log.find("tokens_per_second");
    Series const* const samples = run.log.find("samples_per_second");
    tokens = tokens || (some != nullptr && some->highest().value > 0 &&
                        (samples == nullptr || some->last().value != samples->last().value));
  }
  if (!tokens) take("tokens_per_second");
  add({.title = "Tokens per second",
       .from_zero = true,
       .series = {{"tokens_per_second", "tokens"}}});
  add({.title = "Dollars",
       .unit = Unit::dollars,
       .from_zero = true,
       .series = {{"dollars", "so far"}, {"dollars_projected", "projected"}}});
  if (!curves.empty() && curves.back().title == "Dollars") {
    take("hours");
    take("hours_projected");
  }
  add({.title = "Memory",
       .unit = Unit::bytes,
       .from_zero = true,
       .series = {{"device_memory_bytes", "tensors on the device"}, {"memory_bytes", "process"}}});
  add({.title = "Time per step",
       .unit = Unit::seconds,
       .from_zero = true,
       .series = {{"step_seconds", "step"}}});
  add({.title = "Share of the device's peak",
       .unit = Unit::percent,
       .from_zero = true,
       .series = {{"utilisation", "peak"}}});
  add({.title = "Device idle",
       .unit = Unit::percent,
       .from_zero = true,
       .series = {{"device_idle", "idle"}}});
  add({.title = "Waiting for data",
       .unit = Unit::percent,
       .from_zero = true,
       .series = {{"data_wait", "waiting"}}});
  add({.title = "Gradient norm",
       .may_be_logarithmic = true,
       .series = {{"gradient_norm", "norm"}}});
  add({.title = "Hours",
       .from_zero = true,
       .series = {{"hours", "so far"}, {"hours_projected", "projected"}}});
  add({.title = "Energy, kilowatt-hours",
       .from_zero = true,
       .series = {{"kilowatt_hours", "so far"}, {"kilowatt_hours_projected", "projected"}}});
  add({.title = "Carbon, kg of CO2", .from_zero = true, .series = {{"kg_co2", "carbon"}}});
  // They follow from the speed.
  take("flops_per_step");
  take("flops_per_second");
  for (std::string const& name : std::vector(names)) {
    Unit const unit = name.ends_with("_bytes")     ? Unit::bytes
                      : name.ends_with("_seconds") ? Unit::seconds
                      : name.ends_with("_dollars") ? Unit::dollars
                                                   : Unit::plain;
    add({.title = name, .unit = unit, .series = {{name, name}}});
  }
  return curves;
}

FRUGAL_INLINE bool knows_dollars(std::vector<RunFolder> const& runs) {
  return std::any_of(runs.begin(), runs.end(), [](RunFolder const& run) {
    Series const* const dollars = run.log.find("dollars");
    return dollars != nullptr && dollars->highest().value > 0;
  });
}

FRUGAL_INLINE std::string loss_title(std::vector<RunFolder> const& runs) {
  auto const validates = [](RunFolder const& run) { return run.log.has("validation/loss"); };
  return std::all_of(runs.begin(), runs.end(), validates) ? "Validation loss" : "Loss";
}

FRUGAL_INLINE void write_curves(Page& page, std::vector<RunFolder> const& runs) {
  std::vector<Axis> axes{Axis::step, Axis::seconds};
  if (knows_dollars(runs)) axes.push_back(Axis::dollars);
  page.section("curves", "Curves");
  page.raw("<fieldset class=\"axes\"><legend>Horizontal axis</legend>");
  for (Axis const axis : axes) {
    std::string const id = id_of(axis);
    page.raw("<label><input type=\"radio\" name=\"x\" id=\"x-" + id + "\" value=\"" + id + "\"" +
             (axis == Axis::step ? " checked" : "") + "> " + name_of(axis) + "</label>");
  }
  page.raw("</fieldset>\n");
  bool const one = runs.size() == 1;
  std::vector<Point> marks;
  if (one) {
    for (LogLine const& event : runs[0].log.events) {
      bool const breaks = event.event == "resume" || event.event == "rollback";
      if (breaks && marks.size() < 50)
        marks.push_back({.step = event.step, .seconds = event.seconds});
    }
    if (!marks.empty())
      page.paragraph("Dotted lines: a resume or a return to an earlier state.", "note");
  }
  page.raw("<div class=\"charts\">\n");
  std::size_t number = 0;
  for (Curve const& curve : curves_of(runs)) {
    Chart chart{.title = curve.title,
                .unit = curve.unit,
                .axes = axes,
                .from_zero = curve.from_zero,
                .may_be_logarithmic = curve.may_be_logarithmic,
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
        std::size_t const colour = one ? chart.lines.size() : i;
        chart.lines.push_back({.name = one ? shown : runs[i].name,
                               .points = found->points(),
                               .colour = colour,
                               // A ninth run has the colour of the first, and other dashes.
                               .pattern = (colour + colour / 8) % 4});
        if (!one) break;
      }
    }
    if (!one && chart.title == "Loss") chart.title = loss_title(runs);
    if (!chart.lines.empty()) ChartWriter(page.text(), chart, number++).write();
  }
  page.raw("</div>\n");
}

}  // namespace frugal::html
