// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/search/journal/records.hpp>

#include <frugal/base/json.hpp>
#include <frugal/inline.hpp>

#include <chrono>
#include <cmath>
#include <cstdio>
#include <limits>
#include <optional>

namespace frugal::detail {

FRUGAL_INLINE std::string journal_time() {
  auto const since = std::chrono::system_clock::now().time_since_epoch();
  auto const micros = std::chrono::duration_cast<std::chrono::microseconds>(since).count();
  std::time_t const seconds = static_cast<std::time_t>(micros / 1'000'000);
  std::tm parts{};
  ::gmtime_r(&seconds, &parts);
  char text[64];
  std::size_t const size = std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%S", &parts);
  std::snprintf(text + size, sizeof text - size, ".%06d+00:00",
                static_cast<int>(micros % 1'000'000));
  return text;
}

FRUGAL_INLINE void JournalRecords::create_study(std::string_view name) {
  auto line = begin(JournalOperation::create_study);
  line.add("study_name", name).key("directions").array();
  for (SearchObjective const& each : objectives_) line.value(each.maximise ? 2 : 1);
  end(std::move(line));
}

FRUGAL_INLINE void JournalRecords::identify(
    std::vector<std::pair<std::string, std::string>> const& identity) {
  auto line = begin(JournalOperation::study_attribute);
  line.add("study_id", 0).key("user_attr").object().key("frugal").object();
  line.add("format", journal_format);
  for (auto const& [name, text] : identity) line.add(name, text);
  end(std::move(line));
}

FRUGAL_INLINE void JournalRecords::name_objectives() {
  auto line = begin(JournalOperation::study_attribute);
  line.add("study_id", 0).key("user_attr").object().key("objectives").array();
  for (SearchObjective const& each : objectives_) line.value(each.name);
  end(std::move(line));
}

FRUGAL_INLINE void JournalRecords::create(SearchDomain const& domain, SearchTrial const& trial) {
  auto line = begin(JournalOperation::create_trial);
  line.add("study_id", 0).add("datetime_start", journal_time());
  line.key("params").object();
  each_parameter(domain, trial.candidate, [&](std::string const& name, auto const&, double value) {
    line.add(name, value);
  });
  line.end().key("distributions").object();
  each_parameter(domain, trial.candidate,
                 [&](std::string const& name, Distribution const& of, double) {
                   line.add(name, distribution_text(of));
                 });
  line.end().key("user_attrs").object().key("frugal").object();
  line.add("bracket", trial.bracket).add("seed", trial.seed);
  if (trial.repeats) line.add("repeats", *trial.repeats);
  end(std::move(line));
}

FRUGAL_INLINE void JournalRecords::rung(std::size_t trial, std::size_t rung, std::uint64_t at,
                                        RungResult const& result, bool ended,
                                        std::vector<std::string> const& warnings) {
  auto line = begin_attribute(trial, "frugal:rung " + std::to_string(rung));
  line.object().add("at", at).add("steps", result.steps).add("samples", result.samples);
  line.add("seconds", result.seconds).add("dollars", result.dollars).add("ended", ended);
  line.key("values").array();
  for (std::size_t i = 0; i < objectives_.size(); ++i) {
    line.value(objectives_[i].to_minimise(result.values[i]));  // null if it is not finite
  }
  line.end().key("warnings").array();
  for (std::string const& each : warnings) line.value(each);
  end(std::move(line));
  double const first = objectives_[0].to_minimise(result.values[0]);
  if (!std::isfinite(first)) return;
  auto value = begin(JournalOperation::intermediate_value);
  end(std::move(value.add("trial_id", trial).add("step", at).add("intermediate_value", first)));
}

FRUGAL_INLINE void JournalRecords::open(std::size_t trial, std::size_t opened) {
  auto line = begin_attribute(trial, "frugal:opened");
  end(std::move(line.value(opened)));
}

FRUGAL_INLINE void JournalRecords::begun(std::size_t trial, double time, std::uint64_t checkpoint) {
  auto line = begin_attribute(trial, "frugal:begun");
  end(std::move(line.object().add("time", time).add("checkpoint", checkpoint)));
}

FRUGAL_INLINE void JournalRecords::killed(std::size_t trial, double seconds,
                                          std::uint64_t checkpoint) {
  auto line = begin_attribute(trial, "frugal:killed");
  end(std::move(line.object().add("seconds", seconds).add("checkpoint", checkpoint)));
}

FRUGAL_INLINE void JournalRecords::spent(std::size_t trial, double seconds) {
  auto line = begin_attribute(trial, "frugal:spent");
  end(std::move(line.object().add("seconds", seconds)));
}

FRUGAL_INLINE void JournalRecords::failure(std::size_t trial, std::size_t count,
                                           std::string_view text, double seconds) {
  auto line = begin_attribute(trial, "frugal:failures");
  end(std::move(line.object().add("count", count).add("error", text).add("seconds", seconds)));
}

FRUGAL_INLINE void JournalRecords::outcome(std::size_t trial, std::string_view text) {
  auto why = begin_attribute(trial, "frugal:outcome");
  end(std::move(why.value(text)));
}

FRUGAL_INLINE void JournalRecords::state(std::size_t trial, TrialState state,
                                         ObjectiveValues const* values) {
  auto line = begin(JournalOperation::state);
  line.add("trial_id", trial).add("state", static_cast<unsigned>(state)).key("values");
  if (values == nullptr) {
    line.raw("null");
  } else {
    line.array();
    for (std::size_t i = 0; i < objectives_.size(); ++i) {
      line.value(objectives_[i].to_minimise((*values)[i]));
    }
    line.end();
  }
  end(std::move(line.add("datetime_complete", journal_time())));
}

FRUGAL_INLINE JsonWriter JournalRecords::begin(JournalOperation operation) const {
  JsonWriter line;
  line.object().add("op_code", static_cast<std::uint64_t>(operation)).add("worker_id", worker_);
  return line;
}

FRUGAL_INLINE JsonWriter JournalRecords::begin_attribute(std::size_t trial,
                                                         std::string const& name) const {
  JsonWriter line = begin(JournalOperation::trial_attribute);
  line.add("trial_id", trial).key("user_attr").object().key(name);
  return line;
}

}  // namespace frugal::detail
