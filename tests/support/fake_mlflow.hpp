// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "support/loopback_server.hpp"

namespace frugal_test::support {

/// The part of MLflow's REST API that frugal uses, in memory. tests/interop/mlflow.py has the real server.
class FakeMlflow {
 public:
  using Json = nlohmann::json;

  struct Run {
    Json tags = Json::object(), params = Json::object();
    std::string name, status = "RUNNING";
    std::vector<Json> points;

    /// "step:value" of a metric, in the order of their arrival.
    std::vector<std::string> history(std::string const& key) const {
      std::vector<std::string> all;
      for (Json const& each : points) {
        if (each.at("key") == key)
          all.push_back(each.at("step").dump() + ":" + each.at("value").dump());
      }
      return all;
    }
    std::vector<std::uint64_t> steps(std::string const& key) const {
      std::vector<std::uint64_t> all;
      for (Json const& each : points) {
        if (each.at("key") == key) all.push_back(each.at("step"));
      }
      return all;
    }
  };

  struct Answer {
    int status = 200;
    std::string body = "{}";
  };

  /// `path` as behind /api/2.0/mlflow/.
  Answer operator()(std::string const& path, std::string const& body) {
    std::string const what = path.substr(0, path.find('?'));
    Json const asked = body.empty() ? Json() : Json::parse(body);
    if (what == "experiments/get-by-name") {
      if (!has_experiment) return missing("no experiment of that name");
      return {.body = R"({"experiment":{"experiment_id":"7"}})"};
    }
    if (what == "experiments/create") {
      has_experiment = true;
      return {.body = R"({"experiment_id":"7"})"};
    }
    if (what == "runs/create") {
      Run made;
      made.name = asked.value("run_name", "");
      for (Json const& each : asked.at("tags")) made.tags[each.at("key")] = each.at("value");
      runs.push_back(std::move(made));
      return {.body = Json{{"run", described(runs.size() - 1)}}.dump()};
    }
    if (what == "runs/search") {
      std::string const filter = asked.at("filter");
      Json found = Json::array();
      for (std::size_t i = 0; i < runs.size(); ++i) {
        if (filter == "tags.`frugal.run` = '" + runs[i].tags.value("frugal.run", "") + "'")
          found.push_back(described(i));
      }
      return {.body = Json{{"runs", found}}.dump()};
    }
    if (what == "metrics/get-history") {
      std::string const id = in_address(path, "run_id"), key = in_address(path, "metric_key");
      Json found = Json::array();
      for (Json const& each : runs.at(std::stoul(id)).points) {
        if (each.at("key") == key) found.push_back(each);
      }
      return {.body = Json{{"metrics", found}}.dump()};
    }
    Run& run = runs.at(std::stoul(asked.at("run_id").get<std::string>()));
    if (what == "runs/update") {
      run.status = asked.at("status");
      return {};
    }
    if (what != "runs/log-batch") return missing("no such path");
    return log_batch(run, asked);
  }

  std::vector<Run> runs;
  bool has_experiment = false;

 private:
  static Answer missing(std::string const& why) {
    return {.status = 404,
            .body = Json{{"error_code", "RESOURCE_DOES_NOT_EXIST"}, {"message", why}}.dump()};
  }
  static Answer bad(std::string const& why) {
    return {.status = 400,
            .body = Json{{"error_code", "INVALID_PARAMETER_VALUE"}, {"message", why}}.dump()};
  }

  static Answer log_batch(Run& run, Json const& asked) {
    Json const none = Json::array();
    Json const metrics = asked.value("metrics", none), params = asked.value("params", none);
    Json const tags = asked.value("tags", none);
    if (params.size() > 100) return bad("more than 100 parameters");
    if (tags.size() > 100) return bad("more than 100 tags");
    if (metrics.size() + params.size() + tags.size() > 1000) return bad("more than 1000 items");
    for (Json const& each : params) {
      std::string const key = each.at("key"), value = each.at("value");
      if (value.size() > 6000) return bad("a parameter is too long");
      if (run.params.contains(key) && run.params.at(key) != value)
        return bad("Changing param values is not allowed.");
      run.params[key] = value;
    }
    for (Json const& each : tags) run.tags[each.at("key")] = each.at("value");
    run.points.insert(run.points.end(), metrics.begin(), metrics.end());
    return {};
  }

  Json described(std::size_t i) const {
    Json params = Json::array(), metrics = Json::array();
    for (auto const& [key, value] : runs[i].params.items())
      params.push_back({{"key", key}, {"value", value}});
    std::map<std::string, Json> last;
    for (Json const& each : runs[i].points) last[each.at("key")] = each;
    for (auto const& [key, each] : last) metrics.push_back(each);
    return {{"info", {{"run_id", std::to_string(i)}}},
            {"data", {{"params", params}, {"metrics", metrics}}}};
  }

  static std::string in_address(std::string const& path, std::string const& name) {
    std::size_t const at = path.find(name + "=") + name.size() + 1;
    std::string text = path.substr(at, path.find('&', at) - at);
    for (std::size_t i; (i = text.find("%2F")) != std::string::npos;) text.replace(i, 3, "/");
    return text;
  }
};

/// FakeMlflow behind HTTP.
struct FakeMlflowServer {
  FakeMlflow mlflow;
  LoopbackServer http{[this](HttpRequest const& request) {
    std::string const root = "/api/2.0/mlflow/";
    if (!request.target.starts_with(root)) return answer(404, "");
    FakeMlflow::Answer const said = mlflow(request.target.substr(root.size()), request.body);
    return answer(said.status, said.body);
  }};
};

}  // namespace frugal_test::support
