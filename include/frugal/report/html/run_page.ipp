// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/report/html/run_page.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include <frugal/base/number_text.hpp>
#include <frugal/base/utf8.hpp>
#include <frugal/inline.hpp>
#include <frugal/report/html/chart.hpp>
#include <frugal/report/html/levers.hpp>
#include <frugal/report/html/quantity.hpp>

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
                               .color = one ? chart.lines.size() : i});
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

namespace frugal::html::parts {

FRUGAL_INLINE std::vector<std::string> words_of(std::string_view name) {
  std::vector<std::string> words{""};
  for (char const c : name) {
    char const small = c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c;
    bool const letter = small >= 'a' && small <= 'z', digit = c >= '0' && c <= '9';
    if (letter || digit) {
      words.back() += small;
    } else if (!words.back().empty()) {
      words.emplace_back();
    }
  }
  for (std::string& word : words) {
    if (word != "f1" && word != "r2") {
      word.erase(word.find_last_not_of("0123456789") + 1);
    }
  }
  return words;
}

}  // namespace frugal::html::parts

namespace frugal::html {

FRUGAL_INLINE Better better_by_name(std::string_view metric) {
  constexpr std::array falling{"loss", "error", "err", "perplexity", "ppl", "mae", "mse",
                               "rmse", "mape",  "wer", "cer",        "fid", "nll"};
  constexpr std::array rising{"accuracy", "acc",    "top",  "f1",   "auc",  "auroc",
                              "map",      "recall", "r2",   "bleu", "chrf", "precision",
                              "rouge",    "iou",    "dice", "psnr", "ssim"};
  std::vector<std::string> const words = parts::words_of(metric);
  auto const has_any = [&](auto const& terms) {
    return std::find_first_of(words.begin(), words.end(), terms.begin(), terms.end()) !=
           words.end();
  };
  return has_any(falling) ? Better::lower : has_any(rising) ? Better::higher : Better::unknown;
}

FRUGAL_INLINE Better better_of(RunLog const& log, std::string_view metric) {
  if (LogLine const* const recipe = log.event("recipe")) {
    std::string const text = recipe->text("recipe");
    std::string const watched = "Watch<\"" + std::string(metric) + "\", Better::";
    if (std::size_t const at = text.find(watched); at != text.npos) {
      std::string_view const direction = std::string_view(text).substr(at + watched.size());
      if (direction.starts_with("lower")) return Better::lower;
      if (direction.starts_with("higher")) return Better::higher;
    }
  }
  return better_by_name(metric);
}

FRUGAL_INLINE NamedPoint best_of(Better better, Series const& series) {
  if (better == Better::unknown) return {"last", series.last()};
  return {"best", better == Better::lower ? series.lowest() : series.highest()};
}

FRUGAL_INLINE std::vector<Figure> headline(RunFolder const& run) {
  RunLog const& log = run.log;
  std::vector<Figure> figures;
  auto const add = [&](std::string const& name, std::string const& value,
                       std::string const& small = {}) { figures.push_back({name, value, small}); };
  add("steps", value_text(log.steps, Unit::count),
      value_text(log.epochs, Unit::count) + (log.epochs == 1 ? " epoch" : " epochs"));
  add("training time", time_text(log.seconds));
  if (auto const dollars = dollars_of(log)) add("cost", money_text(*dollars));
  if (Series const* const energy = log.find("kilowatt_hours")) {
    add("energy", short_number(energy->last().value) + " kWh");
  }
  if (Series const* const loss = log.find("epoch/loss")) {
    add("training loss, last epoch", short_number(loss->last().value));
  } else if (Series const* const some = log.find("loss")) {
    add("training loss, last", short_number(some->last().value));
  }
  std::size_t shown = 0;
  for (auto const& [name, series] : log.series) {
    if (!name.starts_with("validation/") || series.empty() || ++shown > 2) continue;
    std::string const metric = name.substr(11);
    auto const [which, at] = best_of(better_of(log, metric), series);
    add(which + (" validation " + metric), short_number(at.value),
        "at step " + value_text(at.step, Unit::count));
  }
  if (Lost const lost = lost_by(log); lost.times != 0) {
    add("lost to interruptions", time_text(lost.seconds),
        lost.dollars ? money_text(*lost.dollars) : std::to_string(lost.times) + "\xc3\x97");
  }
  return figures;
}

FRUGAL_INLINE void write_notes(Page& page, std::vector<std::string> const& notes) {
  if (notes.empty()) return;
  page.section("notes", "Notes on the files");
  page.list(notes);
}

FRUGAL_INLINE void write_plan(Page& page, RunLog const& log) {
  LogLine const* const plan = log.event("plan");
  if (plan == nullptr) return;
  std::vector<Bar> bars;
  auto const add = [&](char const* name, std::optional<double> planned,
                       std::optional<double> actual, Unit unit) {
    if (!planned || !actual || !(*planned >= 0)) return;
    double const most = std::max({*planned, *actual, 1e-300});
    bars.push_back({.name = name,
                    .value = value_text(*actual, unit) + parts::change_text(*planned, *actual),
                    .to = *actual / most});
    bars.push_back({.name = "planned at step " + value_text(plan->step, Unit::count),
                    .value = value_text(*planned, unit),
                    .to = *planned / most,
                    .kind = "planned"});
  };
  auto hours = plan->number("hours_planned");
  if (hours) *hours *= 3600;
  add("Steps", plan->number("steps_planned"), log.steps, Unit::count);
  add("Time", hours, paid_seconds(log), Unit::seconds);
  add("Dollars", plan->number("dollars_planned"), dollars_of(log), Unit::dollars);
  page.section("plan", "Plan and outcome");
  page.bars(bars);
}

FRUGAL_INLINE void write_interruptions(Page& page, RunLog const& log) {
  std::vector<Row> rows;
  auto const rate = dollars_per_second(log);
  for (LogLine const& event : log.events) {
    bool const resume = event.event == "resume";
    if (!resume && event.event != "preempted" && event.event != "rollback" &&
        event.event != "checkpoint_failed") {
      continue;
    }
    auto const number = [&](char const* name) {
      return resume ? event.number(name) : std::nullopt;
    };
    auto const lost = number("seconds_lost");
    std::string detail;
    for (char const* name : {"from", "by", "error"}) {
      if (detail.empty()) detail = event.text(name);
    }
    if (event.event == "rollback") {
      detail = "from step " + value_text(event.number("from_step"), Unit::count);
    }
    rows.push_back(
        {event.event, value_text(event.step, Unit::count), time_text(event.seconds),
         value_text(number("steps_repeated"), Unit::count), value_text(lost, Unit::seconds),
         rate && lost ? money_text(*rate * *lost) : no_value, detail::beginning(detail, 200)});
    if (rows.size() == 200) break;
  }
  if (rows.empty()) return;
  page.section("interruptions", "Interruptions");
  Lost const lost = lost_by(log);
  if (lost.times != 0) {
    std::string text = std::to_string(lost.times) +
                       (lost.times == 1 ? " resume repeated " : " resumes repeated ") +
                       time_text(lost.seconds) + " of training, " +
                       parts::share_text(lost.seconds, lost.seconds + log.seconds) + " of all";
    if (lost.dollars) text += ", for " + money_text(*lost.dollars);
    page.text(text + ".");
  }
  page.table({"Interruptions",
              {"event", "step", "at", "steps repeated", "time lost", "dollars", "detail"},
              rows});
}

FRUGAL_INLINE void write_profile(Page& page, RunFolder const& run) {
  if (run.windows.empty()) return;
  page.section("hot-spots", "Hot spots");
  ProfileWindow const& last = run.windows.back();
  std::string text =
      "Profiled at step " + value_text(last.step, Unit::count) + " for " + time_text(last.seconds);
  if (last.device_idle)
    text += "; the device was idle " + value_text(*last.device_idle, Unit::percent);
  if (!last.bound.empty()) text += "; bound by " + last.bound;
  page.text(text + ".");
  if (!last.advice.empty()) page.text(last.advice);
  std::vector<Row> rows;
  for (HotSpot const& spot : last.hot_spots) {
    if (rows.size() == 15) break;
    rows.push_back({spot.name, value_text(spot.share, Unit::percent),
                    time_text(spot.microseconds * 1e-6),
                    spot.calls == 0 ? no_value : value_text(spot.calls, Unit::count)});
  }
  if (!rows.empty()) page.table({"Hot spots", {"operation", "share", "time", "calls"}, rows});
  if (!last.memory.empty()) {
    write_chart(page, {.title = "Memory in the window",
                       .unit = Unit::bytes,
                       .lines = {{.name = "memory", .points = last.memory.points()}},
                       .axes = {seconds_axis()},
                       .from_zero = true});
  }
  if (run.windows.size() < 2) return;
  rows.clear();
  for (ProfileWindow const& window : run.windows) {
    if (rows.size() == 200) break;
    rows.push_back({value_text(window.step, Unit::count), window.bound,
                    value_text(window.device_idle, Unit::percent), time_text(window.step_seconds),
                    time_text(window.overhead_seconds), window.trace});
  }
  page.table({"Profiled windows",
              {"step", "bound by", "device idle", "step takes", "overhead", "trace"},
              rows,
              2});
}

FRUGAL_INLINE void write_duplicates(Page& page, RunFolder const& run) {
  if (!run.duplicates) return;
  Curation const& found = *run.duplicates;
  page.section("duplicates", "Duplicates");
  if (!found.method.empty()) page.text(found.method + ".");
  std::vector<Figure> figures{{"samples", detail::grouped(found.samples)},
                              {"removed", detail::grouped(found.removed.size()),
                               detail::percent_of(found.removed.size(), found.samples)},
                              {"of these, copies", detail::grouped(found.copies())},
                              {"bytes saved", value_text(found.removed_bytes(), Unit::bytes)}};
  if (auto const dollars = found.dollars_per_epoch()) {
    figures.push_back({"saved per epoch", money_text(*dollars)});
  }
  page.figures(figures);
}

FRUGAL_INLINE void write_events(Page& page, RunLog const& log) {
  std::vector<Row> rows;
  for (LogLine const& event : log.events) {
    std::string says;
    for (LogLine::Field const& field : event.fields) {
      if (field.name == "epoch" || field.name == "samples") continue;
      says += (says.empty() ? "" : ", ") + field.name + " " +
              (field.text ? detail::beginning(*field.text, 200) : short_number(field.number));
    }
    rows.push_back({event.event, value_text(event.step, Unit::count), time_text(event.seconds),
                    Cell::long_text(detail::beginning(says, 500))});
  }
  if (rows.empty()) return;
  page.section("events", "Events");
  page.table({.title = "Events",
              .head = {"event", "step", "at", "says"},
              .rows = rows,
              .folded = detail::grouped(rows.size()) + " events of the log"});
}

FRUGAL_INLINE void write_facts(Page& page, RunFolder const& run) {
  RunLog const& log = run.log;
  std::vector<Row> rows;
  auto const add = [&](char const* name, std::string const& value) {
    if (!value.empty()) rows.push_back({name, Cell::long_text(value)});
  };
  add("Run", run.name);
  LogLine const* const recipe = log.event("recipe");
  LogLine const* const price = log.event("price");
  LogLine const* const end = log.event("end");
  if (recipe != nullptr) add("Recipe", recipe->text("recipe"));
  std::string device = recipe == nullptr ? "" : recipe->text("device");
  if (price != nullptr && !price->text("device").empty()) {
    device += (device.empty() ? "" : ", ") + price->text("device");
  }
  add("Device", device);
  if (price != nullptr) {
    if (auto const hour = price->number("per_hour")) {
      std::string const currency = price->text("currency");
      std::string text = money_text(*hour, currency.empty() ? "USD" : currency) + " per hour";
      if (auto const devices = price->number("devices")) {
        text += ", " + value_text(*devices, Unit::count) + (*devices == 1 ? " device" : " devices");
      }
      if (!price->text("source").empty()) text += " (" + price->text("source") + ")";
      add("Price", text);
    } else {
      add("Price", "unknown");
    }
  }
  if (LogLine const* const begin = log.event("begin")) {
    if (auto const count = begin->number("parameters"))
      add("Parameters", value_text(*count, Unit::count));
    if (LogLine::Field const* const seed = begin->find("seed");
        seed != nullptr && seed->number >= 0) {
      add("Seed", seed->digits.empty() ? detail::fixed(seed->number, 0) : seed->digits);
    }
  }
  add("Samples seen", value_text(log.samples, Unit::count));
  if (end != nullptr) {
    add("Ended",
        end->text("stopped_by").empty() ? "after its last step" : "by " + end->text("stopped_by"));
  } else if (LogLine const* const left = log.event("preempted")) {
    add("Ended", "not yet: preempted by " + left->text("by"));
  } else {
    add("Ended", "the log has no end: the run goes on, or was killed");
  }
  page.section("facts", "The run");
  page.table({"The run", {"fact", "value"}, rows, 2});
}

FRUGAL_INLINE std::string run_page(RunFolder const& run) {
  Page page;
  page.figures(headline(run));
  write_curves(page, {run});
  write_plan(page, run.log);
  if (run.levers) write_waterfall_section(page, *run.levers);
  write_interruptions(page, run.log);
  write_profile(page, run);
  write_duplicates(page, run);
  write_facts(page, run);
  write_events(page, run.log);
  write_notes(page, run.notes);
  return std::move(page).html(run.name, "Report of a training run");
}

}  // namespace frugal::html

namespace frugal {

FRUGAL_INLINE std::string run_report_html(std::filesystem::path const& folder) {
  return html::run_page(html::read_run_folder(folder));
}

}  // namespace frugal
