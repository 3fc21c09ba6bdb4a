// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/search/journal_records.hpp>

#include <frugal/base/json.hpp>
#include <frugal/inline.hpp>

#include <algorithm>
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

FRUGAL_INLINE void JournalReader::apply(std::string_view line) {
  ++line_;
  JsonError fault;
  std::optional<Json> const record = Json::parse(std::string(line), &fault);
  if (!record) refuse("it is no JSON");
  auto const operation = number(*record, "op_code");
  switch (static_cast<JournalOperation>(operation)) {
    case JournalOperation::create_study:
      return create_study(*record);
    case JournalOperation::study_attribute:
      return identify(*record);
    case JournalOperation::create_trial:
      return create_trial(*record);
    case JournalOperation::trial_attribute:
      return attribute(*record);
    case JournalOperation::state:
      return state(*record);
    case JournalOperation::intermediate_value:
      return;  // the attribute of the rung has it
  }
  // 1 deletes a study, 5 sets a parameter, 10 discards trials.
  if (operation == 1 || operation == 5 || operation == 10) {
    refuse("operation " + std::to_string(operation) + " is none of a search");
  }
}

FRUGAL_INLINE void JournalReader::refuse(std::string const& why) const {
  throw FormatError({.what = "the journal of the search cannot be continued",
                     .where = file_ + ", line " + std::to_string(line_),
                     .why = why,
                     .fix = "Restore the file from a copy, or search in another folder; the "
                            "trials' own folders are whole."});
}

FRUGAL_INLINE Json const& JournalReader::member(Json const& of, char const* name) const {
  Json const* const found = of.find(name);
  if (found == nullptr) refuse(std::string("it has no '") + name + "'");
  return *found;
}

FRUGAL_INLINE std::uint64_t JournalReader::number(Json const& of, char const* name) const {
  auto const found = member(of, name).as_unsigned();
  if (!found) refuse(std::string("'") + name + "' is no whole number");
  return *found;
}

FRUGAL_INLINE double JournalReader::real(Json const& of, char const* name) const {
  auto const found = member(of, name).as_double();
  if (!found) refuse(std::string("'") + name + "' is no number");
  return *found;
}

FRUGAL_INLINE SearchTrial& JournalReader::trial_of(Json const& record) {
  std::uint64_t const number_of_trial = number(record, "trial_id");
  if (number_of_trial >= history_.trials.size()) {
    refuse("trial " + std::to_string(number_of_trial) + " was not created");
  }
  return history_.trials[number_of_trial];
}

FRUGAL_INLINE void JournalReader::create_study(Json const& record) {
  if (std::exchange(created_, true)) refuse("it creates a second study");
  std::vector<Json> const& directions = member(record, "directions").items();
  bool same = directions.size() == objectives_.size();
  for (std::size_t i = 0; same && i < directions.size(); ++i) {
    same = directions[i].as_unsigned() == (objectives_[i].maximise ? 2U : 1U);
  }
  if (!same) {
    throw another_search("the directions of " + std::to_string(directions.size()) +
                         " objectives, and the search has " + std::to_string(objectives_.size()) +
                         " of its own");
  }
}

FRUGAL_INLINE void JournalReader::identify(Json const& record) {
  Json const* const own = member(record, "user_attr").find("frugal");
  if (own == nullptr) return;
  if (auto const format = number(*own, "format"); format != journal_format) {
    refuse("its format is " + std::to_string(format) + ", and this frugal writes " +
           std::to_string(journal_format));
  }
  for (auto const& [name, text] : identity_) {
    Json const* const found = own->find(name);
    compare(name, found == nullptr ? std::string("nothing") : found->text(), text);
  }
  for (Json const& each : own->items()) {
    auto const is_it = [&](auto const& known) { return known.first == each.name(); };
    if (each.name() == "format" || std::ranges::any_of(identity_, is_it)) continue;
    compare(std::string(each.name()), each.text(), "nothing");
  }
  identified_ = true;
}

FRUGAL_INLINE void JournalReader::compare(std::string const& name, std::string const& there,
                                          std::string const& here) const {
  if (there == here) return;
  if (!name.starts_with(job_prefix)) {
    throw another_search("the " + name + " '" + there + "', and the search has '" + here + "'");
  }
  if (there == unknown_part || here == unknown_part) return;
  throw StateError(
      {.what = "this worker does not train the job of the search",
       .where = file_ + ", line " + std::to_string(line_),
       .why = name.substr(job_prefix.size()) + " is " + there + " there and " + here + " here",
       .fix = "Start it with the data, the policies and the module that the search began with, "
              "or search in another folder: results of two jobs cannot be compared."});
}

FRUGAL_INLINE SettingsError JournalReader::another_search(std::string const& why) const {
  return SettingsError({.what = "the journal is that of another search",
                        .where = file_ + ", line " + std::to_string(line_),
                        .why = "it has " + why,
                        .fix = "Search in another folder, or with the space and the settings that "
                               "this one began with."});
}

FRUGAL_INLINE void JournalReader::create_trial(Json const& record) {
  Json const* const attributes = record.find("user_attrs");
  Json const* const own = attributes == nullptr ? nullptr : attributes->find("frugal");
  if (own == nullptr) refuse("its trial was not created by a search");
  SearchTrial trial;
  trial.bracket = number(*own, "bracket");
  trial.seed = number(*own, "seed");
  if (own->find("repeats") != nullptr) trial.repeats = number(*own, "repeats");
  Json const& parameters = member(record, "params");
  auto const value_of = [&](std::string const& name) -> std::optional<double> {
    Json const* const found = parameters.find(name);
    return found == nullptr ? std::nullopt : found->as_double();
  };
  auto const recipe = value_of(SearchDomain::recipe_parameter);
  bool const known = recipe && *recipe >= 0 &&
                     *recipe < static_cast<double>(domain_.recipes.size()) &&
                     *recipe == std::floor(*recipe);
  if (known) trial.candidate.recipe = static_cast<std::size_t>(*recipe);
  for (SearchedSetting const& each : domain_.settings) {
    trial.candidate.values.push_back(value_of(each.name));
  }
  if (!known || !is_candidate_of(domain_, trial.candidate)) {
    refuse("its parameters are none of this space");
  }
  if (trial.repeats && *trial.repeats >= history_.trials.size()) {
    refuse("it repeats trial " + std::to_string(*trial.repeats) + ", which was not created");
  }
  history_.trials.push_back(std::move(trial));
}

FRUGAL_INLINE void JournalReader::attribute(Json const& record) {
  Json const& all = member(record, "user_attr");
  SearchTrial& trial = trial_of(record);
  for (Json const& each : all.items()) {
    std::string_view const name = each.name();
    if (name == "frugal:opened") {
      auto const opened = each.as_unsigned();
      if (!opened || *opened != trial.opened + 1) refuse("it opens a rung out of turn");
      trial.opened = *opened;
    } else if (name == "frugal:failures") {
      trial.failures = number(each, "count");
      trial.outcome = member(each, "error").text();
      trial.spent_seconds += real(each, "seconds");
      trial.begun = 0;
      trial.kills = 0;
    } else if (name == "frugal:begun") {
      trial.begun = real(each, "time");
      trial.begun_at = number(each, "checkpoint");
    } else if (name == "frugal:killed") {
      trial.spent_seconds += real(each, "seconds");
      trial.begun = 0;
      trial.kills = number(each, "checkpoint") > trial.begun_at ? 0 : trial.kills + 1;
    } else if (name == "frugal:spent") {
      trial.spent_seconds += real(each, "seconds");
      trial.begun = 0;
      trial.kills = 0;
    } else if (name == "frugal:outcome") {
      trial.outcome = each.text();
    } else if (name.starts_with("frugal:rung ")) {
      rung(trial, each);
    }
  }
}

FRUGAL_INLINE void JournalReader::rung(SearchTrial& trial, Json const& each) {
  std::size_t const next = trial.rungs.size();
  if (each.name() != "frugal:rung " + std::to_string(next)) refuse("it ends a rung out of turn");
  RungResult result{.steps = number(each, "steps"),
                    .samples = number(each, "samples"),
                    .seconds = real(each, "seconds"),
                    .dollars = member(each, "dollars").as_double(),
                    .values = {}};
  std::vector<Json> const& values = member(each, "values").items();
  if (values.size() != objectives_.size()) refuse("it has not one value for each objective");
  for (std::size_t i = 0; i < values.size(); ++i) {
    double const value = values[i].as_double().value_or(std::numeric_limits<double>::quiet_NaN());
    result.values.push_back(objectives_[i].to_minimise(value));
  }
  for (Json const& warning : member(each, "warnings").items()) {
    if (std::ranges::count(trial.warnings, warning.text()) == 0) {
      trial.warnings.push_back(warning.text());
    }
  }
  trial.spent_seconds = trial.begun = 0;  // the rung has them
  trial.failures = trial.kills = 0;
  trial.ended = member(each, "ended").truth();
  order_.emplace_back(static_cast<std::size_t>(&trial - history_.trials.data()), next);
  trial.rungs.push_back(std::move(result));
}

FRUGAL_INLINE void JournalReader::state(Json const& record) {
  std::uint64_t const state = number(record, "state");
  if (state > 3) refuse("its state is " + std::to_string(state));
  SearchTrial& trial = trial_of(record);
  trial.state = static_cast<TrialState>(state);
  if (trial.state == TrialState::complete && trial.rungs.empty()) {
    refuse("it completes a trial that has no result");
  }
}

}  // namespace frugal::detail
