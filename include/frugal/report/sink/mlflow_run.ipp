// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/report/sink/mlflow_run.hpp>

#include <frugal/base/hash.hpp>
#include <frugal/base/json_writer.hpp>
#include <frugal/base/name_hash.hpp>
#include <frugal/base/number_text.hpp>
#include <frugal/base/signal_free_thread.hpp>
#include <frugal/base/utf8.hpp>
#include <frugal/inline.hpp>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <iterator>
#include <optional>
#include <system_error>

namespace frugal::detail {

// The limits of MLflow: a request has at most 1000 values, 100 parameters and 100 tags.
// Source: https://mlflow.org/docs/latest/api_reference/rest-api.html (Request Limits)
inline constexpr std::size_t mlflow_most_points = 1000;
inline constexpr std::size_t mlflow_most_params = 100;
inline constexpr std::size_t mlflow_most_name = 250;
inline constexpr std::size_t mlflow_most_param = 6000;
inline constexpr std::size_t mlflow_most_tag = 5000;

FRUGAL_INLINE std::string mlflow_name(std::string_view name) {
  std::string out;
  for (char const c : name) {
    bool const letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
    bool const mark = c == '_' || c == '-' || c == '.' || c == ' ' || c == '/';
    out += letter || mark ? c : '_';
  }
  // MLflow takes names as paths, which must be in their shortest form.
  bool const path = out.empty() || out.front() == '/' || out.back() == '/' || out.front() == '.' ||
                    out.find("//") != std::string::npos || out.find("/.") != std::string::npos;
  if (path)
    std::replace_if(out.begin(), out.end(), [](char c) { return c == '/' || c == '.'; }, '_');
  if (out == name && !out.empty() && out.size() <= mlflow_most_name) return out;
  constexpr std::size_t hash = 17;
  out.resize(std::min(out.size(), mlflow_most_name - hash));
  return out + "_" + hex_of(name_hash(name));
}

FRUGAL_INLINE std::string mlflow_text(std::string_view text, std::size_t most) {
  std::string out = as_utf8(text);
  if (out.size() <= most) return out;
  out.resize(most - 3);
  // Not within a character.
  while (!is_utf8(out)) out.pop_back();
  return out + "...";
}

FRUGAL_INLINE std::string text_of_points(std::vector<MlflowPoint> const& points) {
  std::string text;
  for (MlflowPoint const& each : points) {
    text += std::to_string(each.time_ms) + ' ' + std::to_string(each.step) + ' ';
    text += shortest_text(each.value) + ' ' + each.key + '\n';
  }
  return text;
}

FRUGAL_INLINE std::vector<MlflowPoint> points_of_text(std::string_view text) {
  std::vector<MlflowPoint> points;
  while (!text.empty()) {
    std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(line.size() + 1, text.size()));
    auto const read = [&](auto& number) {
      auto const [end, error] = std::from_chars(line.data(), line.data() + line.size(), number);
      if (error != std::errc() || end == line.data() + line.size() || *end != ' ') return false;
      line.remove_prefix(static_cast<std::size_t>(end - line.data()) + 1);
      return true;
    };
    MlflowPoint point;
    if (!read(point.time_ms) || !read(point.step) || !read(point.value)) continue;
    point.key = std::string(line);
    points.push_back(std::move(point));
  }
  return points;
}

namespace mlflow {

FRUGAL_INLINE std::string json_words(MlflowWords const& words, std::size_t most) {
  JsonWriter out;
  out.array();
  for (auto const& [name, text] : words) {
    out.object().add("key", name).add("value", mlflow_text(text, most)).end();
  }
  return out.str();
}

FRUGAL_INLINE std::string json_points(std::vector<MlflowPoint> const& points) {
  JsonWriter out;
  out.array();
  for (MlflowPoint const& each : points) {
    out.object().add("key", each.key);
    // As protocol buffers have it in JSON.
    if (std::isnan(each.value)) {
      out.add("value", "NaN");
    } else if (std::isinf(each.value)) {
      out.add("value", each.value > 0 ? "Infinity" : "-Infinity");
    } else {
      out.add("value", each.value);
    }
    out.add("timestamp", each.time_ms).add("step", each.step).end();
  }
  return out.str();
}

FRUGAL_INLINE std::string in_address(std::string_view text) {
  constexpr std::string_view digits = "0123456789ABCDEF";
  std::string out;
  for (char const c : text) {
    auto const byte = static_cast<unsigned char>(c);
    bool const letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
    if (letter || c == '-' || c == '_' || c == '.') {
      out += c;
    } else {
      out += '%';
      out += digits[byte >> 4U];
      out += digits[byte & 15U];
    }
  }
  return out;
}

FRUGAL_INLINE std::string text_in(Json const* object, std::string_view name) {
  Json const* const found = object == nullptr ? nullptr : object->find(name);
  return found == nullptr ? std::string() : found->text();
}

FRUGAL_INLINE std::vector<Json> const& items_in(Json const* object, std::string_view name) {
  static std::vector<Json> const none;
  Json const* const found = object == nullptr ? nullptr : object->find(name);
  return found == nullptr ? none : found->items();
}

/// The server's own words, without what could break a line of a log.
FRUGAL_INLINE std::string said(MlflowAnswer const& answer) {
  std::string text;
  if (auto const json = Json::parse(answer.body)) text = text_in(&*json, "message");
  if (text.empty()) text = answer.body;
  for (char& c : text) {
    if (static_cast<unsigned char>(c) < ' ') c = ' ';
  }
  std::string out = "HTTP status " + std::to_string(answer.status);
  return text.empty() ? out : out + ": " + mlflow_text(text, 300);
}

FRUGAL_INLINE std::int64_t now_ms() {
  return std::chrono::duration_cast<std::chrono::milliseconds>(
             std::chrono::system_clock::now().time_since_epoch())
      .count();
}

}  // namespace mlflow

FRUGAL_INLINE MlflowRun::MlflowRun(Call call, MlflowPlan plan)
    : call_(std::move(call)), plan_(std::move(plan)), may_exist_(plan_.resumed) {
  waiting_.assign(plan_.saved.begin(), plan_.saved.end());
  thread_ = signal_free_thread([this] { work(); });
}

FRUGAL_INLINE bool MlflowRun::post(std::vector<MlflowPoint> points) {
  {
    std::scoped_lock const lock(mutex_);
    if (refused_ || waiting_.size() + points.size() > plan_.most_waiting) {
      sent_.dropped += points.size();
      if (!refused_) {
        tell(told_full_, std::to_string(waiting_.size()) +
                             " values wait for the server, and there is no room for more "
                             "(Mlflow::most_waiting): later ones are dropped until it takes some");
      }
      return false;
    }
    std::move(points.begin(), points.end(), std::back_inserter(waiting_));
  }
  changed_.notify_all();
  return true;
}

FRUGAL_INLINE void MlflowRun::tag(std::string name, std::string text) {
  std::scoped_lock const lock(mutex_);
  tags_.emplace_back(std::move(name), std::move(text));
  changed_.notify_all();
}

FRUGAL_INLINE std::vector<MlflowPoint> MlflowRun::waiting() const {
  std::scoped_lock const lock(mutex_);
  std::vector<MlflowPoint> all = batch_;
  all.insert(all.end(), waiting_.begin(), waiting_.end());
  return all;
}

FRUGAL_INLINE std::vector<std::string> MlflowRun::news() {
  std::scoped_lock const lock(mutex_);
  return std::exchange(news_, {});
}

FRUGAL_INLINE MlflowSent MlflowRun::sent() const {
  std::scoped_lock const lock(mutex_);
  return sent_;
}

FRUGAL_INLINE MlflowSent MlflowRun::finish(std::string status) {
  {
    std::scoped_lock const lock(mutex_);
    status_ = std::move(status);
  }
  end(std::chrono::steady_clock::now() +
      std::min<std::chrono::milliseconds>(plan_.at_end, std::chrono::hours(24)));
  return sent();
}

FRUGAL_INLINE void MlflowRun::end(std::chrono::steady_clock::time_point deadline) {
  if (!thread_.joinable()) return;
  {
    std::unique_lock lock(mutex_);
    closing_ = hurry_ = true;
    changed_.notify_all();
    changed_.wait_until(lock, deadline, [this] { return done_; });
    stop_.request_stop();
    changed_.notify_all();
  }
  thread_.join();
  std::scoped_lock const lock(mutex_);
  sent_.waiting = batch_.size() + waiting_.size();
}

FRUGAL_INLINE bool MlflowRun::has_work() const {
  if (refused_) return false;
  return !connected_ || !batch_.empty() || !waiting_.empty() || !tags_.empty() ||
         (closing_ && !status_.empty());
}

FRUGAL_INLINE void MlflowRun::work() {
  std::chrono::milliseconds pause = plan_.first_wait;
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [this] { return closing_ || has_work(); });
    if (stop_.stop_requested() || !has_work()) break;
    lock.unlock();
    std::optional<Failure> failure;
    try {
      advance();
    } catch (Failure const& found) {
      failure = found;
    } catch (std::exception const& error) {  // no memory
      failure = Failure{.again = true, .why = error.what()};
    }
    lock.lock();
    if (!failure) {
      pause = plan_.first_wait;
      continue;
    }
    if (stop_.stop_requested()) break;
    failed(*failure);
    if (!failure->again) continue;
    // The end of the fit cuts one pause short.
    changed_.wait_for(lock, pause, [this] { return stop_.stop_requested() || hurry_; });
    hurry_ = false;
    pause = std::min(2 * pause, plan_.longest_wait);
  }
  done_ = true;
  changed_.notify_all();
}

FRUGAL_INLINE void MlflowRun::failed(Failure const& failure) {
  if (sent_.first_failure.empty()) sent_.first_failure = failure.why;
  if (failure.again) {
    tell(told_unreachable_,
         "the server cannot be reached (" + failure.why + "): the run continues, up to " +
             std::to_string(plan_.most_waiting) + " values wait, and are sent when it answers");
    return;
  }
  tell(told_refused_, "the server refuses (" + failure.why +
                          "): the run continues, and what it refuses is dropped and counted");
  if (!connected_ && sent_.run_id.empty()) {
    // Without a run there is nowhere to send to.
    refused_ = true;
    sent_.dropped += waiting_.size();
    waiting_.clear();
  } else if (!connected_) {
    param_ = std::min(param_ + mlflow_most_params, plan_.params.size());
  } else if (!batch_.empty() || !tags_.empty()) {
    sent_.dropped += batch_.size();
    batch_.clear();
    tags_.clear();
  } else {
    status_.clear();
  }
}

FRUGAL_INLINE void MlflowRun::tell(bool& told, std::string const& text) {
  if (!std::exchange(told, true)) news_.push_back(text);
}

FRUGAL_INLINE Json MlflowRun::ask(std::string const& method, std::string const& path,
                                  std::string const& body) {
  MlflowAnswer const answer = call_(method, path, body, stop_.get_token());
  if (answer.status == 0) throw Failure{.again = true, .why = answer.failure};
  if (answer.status < 200 || answer.status >= 300) {
    bool const later = answer.status == 408 || answer.status == 429 || answer.status >= 500;
    throw Failure{.again = later, .status = answer.status, .why = mlflow::said(answer)};
  }
  auto json = Json::parse(answer.body);
  if (!json) {
    throw Failure{.why = "what answers " + path + " is no MLflow: its answer is no JSON"};
  }
  return std::move(*json);
}

FRUGAL_INLINE void MlflowRun::advance() {
  bool connected = false, points = false;
  std::string run_id;
  {
    std::scoped_lock const lock(mutex_);
    connected = connected_;
    points = !batch_.empty() || !waiting_.empty() || !tags_.empty();
    run_id = sent_.run_id;
  }
  if (!connected) {
    if (experiment_id_.empty()) find_experiment();
    if (run_id.empty() && may_exist_) find_run();
    if (sent().run_id.empty()) create_run();
    send_params();
  } else if (points) {
    send_points();
  } else {
    send_status();
  }
}

FRUGAL_INLINE void MlflowRun::find_experiment() {
  for (int tries = 0;; ++tries) {
    try {
      Json const found = ask(
          "GET", "experiments/get-by-name?experiment_name=" + mlflow::in_address(plan_.experiment),
          {});
      experiment_id_ = mlflow::text_in(found.find("experiment"), "experiment_id");
      break;
    } catch (Failure const& failure) {
      if (failure.status != 404) throw;
    }
    try {
      Json const made = ask("POST", "experiments/create",
                            JsonWriter().object().add("name", plan_.experiment).str());
      experiment_id_ = mlflow::text_in(&made, "experiment_id");
      break;
    } catch (Failure const& failure) {
      // Another run may have made it meanwhile.
      if (failure.status != 400 || tries != 0) throw;
    }
  }
  if (experiment_id_.empty()) throw Failure{.why = "what answers is no MLflow"};
}

FRUGAL_INLINE void MlflowRun::find_run() {
  JsonWriter body;
  body.object().key("experiment_ids").array().value(experiment_id_).end();
  body.add("filter", "tags.`frugal.run` = '" + plan_.mark + "'").add("max_results", 1);
  Json const answer = ask("POST", "runs/search", body.str());
  auto const& runs = mlflow::items_in(&answer, "runs");
  may_exist_ = false;
  if (runs.empty()) return;
  std::string const id = mlflow::text_in(runs[0].find("info"), "run_id");
  if (plan_.resumed) {
    ask("POST", "runs/update",
        JsonWriter().object().add("run_id", id).add("status", "RUNNING").str());
    find_repeated(runs[0]);
    std::map<std::string, std::string> there;
    for (Json const& each : mlflow::items_in(runs[0].find("data"), "params")) {
      there[mlflow::text_in(&each, "key")] = mlflow::text_in(&each, "value");
    }
    // A parameter keeps its first value. Another one of a later start is a tag.
    MlflowWords missing, changed;
    for (auto const& [name, text] : plan_.params) {
      auto const found = there.find(name);
      if (found == there.end()) {
        missing.emplace_back(name, text);
      } else if (found->second != mlflow_text(text, mlflow_most_param)) {
        changed.emplace_back("resumed." + name, text);
      }
    }
    plan_.params = std::move(missing);
    std::scoped_lock const lock(mutex_);
    tags_.insert(tags_.begin(), changed.begin(), changed.end());
  }
  std::scoped_lock const lock(mutex_);
  sent_.run_id = id;
}

FRUGAL_INLINE void MlflowRun::find_repeated(Json const& run) {
  std::string const id = mlflow::text_in(run.find("info"), "run_id");
  // Of the checkpoint's own step a validation may come again.
  std::uint64_t from = plan_.step;
  for (MlflowPoint const& each : plan_.saved) from = std::min(from, each.step);
  decltype(repeated_) found;
  for (Json const& metric : mlflow::items_in(run.find("data"), "metrics")) {
    std::string const key = mlflow::text_in(&metric, "key");
    if (key.starts_with("resume/")) continue;  // each resume has its own
    for (std::string page;;) {
      std::string path = "metrics/get-history?run_id=" + id +
                         "&metric_key=" + mlflow::in_address(key) + "&max_results=25000";
      if (!page.empty()) path += "&page_token=" + mlflow::in_address(page);
      Json const answer = ask("GET", path, {});
      for (Json const& point : mlflow::items_in(&answer, "metrics")) {
        Json const* const step = point.find("step");
        Json const* const time = point.find("timestamp");
        if (step == nullptr || time == nullptr) continue;
        auto const at = step->as_unsigned();
        if (at && *at >= from && time->as_signed().value_or(0) >= plan_.since_ms)
          ++found[{key, *at}];
      }
      page = mlflow::text_in(&answer, "next_page_token");
      if (page.empty()) break;
    }
  }
  repeated_ = std::move(found);
}

FRUGAL_INLINE void MlflowRun::create_run() {
  JsonWriter body;
  body.object().add("experiment_id", experiment_id_).add("start_time", mlflow::now_ms());
  if (!plan_.run_name.empty()) body.add("run_name", mlflow_text(plan_.run_name, mlflow_most_tag));
  MlflowWords tags = plan_.tags;
  tags.emplace_back("frugal.run", plan_.mark);
  body.key("tags").raw(mlflow::json_words(tags, mlflow_most_tag));
  may_exist_ = true;  // an answer may get lost
  Json const made = ask("POST", "runs/create", body.str());
  Json const* const run = made.find("run");
  std::string const id = run == nullptr ? "" : mlflow::text_in(run->find("info"), "run_id");
  if (id.empty()) throw Failure{.why = "the answer to runs/create has no run"};
  std::scoped_lock const lock(mutex_);
  sent_.run_id = id;
}

FRUGAL_INLINE void MlflowRun::send_params() {
  while (param_ < plan_.params.size()) {
    std::size_t const end = std::min(param_ + mlflow_most_params, plan_.params.size());
    auto const at = [&](std::size_t i) {
      return plan_.params.begin() + static_cast<std::ptrdiff_t>(i);
    };
    JsonWriter body;
    body.object().add("run_id", sent().run_id).key("params");
    body.raw(mlflow::json_words({at(param_), at(end)}, mlflow_most_param));
    ask("POST", "runs/log-batch", body.str());
    param_ = end;
  }
  std::scoped_lock const lock(mutex_);
  connected_ = true;
}

FRUGAL_INLINE void MlflowRun::send_points() {
  MlflowWords tags;
  JsonWriter body;
  {
    std::scoped_lock const lock(mutex_);
    while (batch_.size() < mlflow_most_points - mlflow_most_params && !waiting_.empty()) {
      MlflowPoint& next = waiting_.front();
      auto const found = repeated_.find({next.key, next.step});
      if (found != repeated_.end() && found->second > 0) {
        --found->second;
      } else {
        batch_.push_back(std::move(next));
      }
      waiting_.pop_front();
    }
    tags.assign(tags_.begin(), tags_.begin() + static_cast<std::ptrdiff_t>(
                                                   std::min(tags_.size(), mlflow_most_params)));
    if (batch_.empty() && tags.empty()) return;
    body.object().add("run_id", sent_.run_id);
    body.key("metrics").raw(mlflow::json_points(batch_));
    body.key("tags").raw(mlflow::json_words(tags, mlflow_most_tag));
  }
  ask("POST", "runs/log-batch", body.str());
  std::scoped_lock const lock(mutex_);
  sent_.points += batch_.size();
  batch_.clear();
  tags_.erase(tags_.begin(), tags_.begin() + static_cast<std::ptrdiff_t>(tags.size()));
}

FRUGAL_INLINE void MlflowRun::send_status() {
  JsonWriter body;
  {
    std::scoped_lock const lock(mutex_);
    body.object().add("run_id", sent_.run_id).add("status", status_);
  }
  ask("POST", "runs/update", body.add("end_time", mlflow::now_ms()).str());
  std::scoped_lock const lock(mutex_);
  status_.clear();
}

}  // namespace frugal::detail
