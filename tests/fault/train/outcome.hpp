// SPDX-License-Identifier: Apache-2.0
// The results of a completed run, and the differences between two runs.
#pragma once

#include "start.hpp"

#include "support/files.hpp"

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace frugal_test::fault {

inline std::vector<std::string> temporaries_in(std::filesystem::path const& folder) {
  std::vector<std::string> found;
  std::error_code ignored;
  for (auto const& each : std::filesystem::recursive_directory_iterator(folder, ignored)) {
    std::string const name = each.path().filename().string();
    if (name.starts_with(".tmp")) found.push_back(name);
  }
  return found;
}

/// The save that is being written, if any.
inline bool is_saving(std::filesystem::path const& folder) {
  std::error_code ignored;
  for (auto const& each : std::filesystem::directory_iterator(folder / "checkpoints", ignored)) {
    if (each.path().filename().string().starts_with(".tmp-")) return true;
  }
  return false;
}

inline frugal::NewestValid newest_in(std::filesystem::path const& folder) {
  return frugal::RunDirectory(folder, frugal::Access::read).newest_valid();
}

/// The log's training lines, without times.
inline std::vector<nlohmann::json> metrics_in(std::filesystem::path const& folder) {
  std::vector<nlohmann::json> lines;
  for (auto const& text : support::lines_of(support::text_of(folder / "metrics.jsonl"))) {
    nlohmann::json line = nlohmann::json::parse(text, nullptr, /*allow_exceptions=*/false);
    require(line.is_object(), "a line of the log is torn: " + text);
    std::string const event = line.at("event");
    if (event == "begin" || event == "resume" || event == "preempted" ||
        event == "checkpoint_failed") {
      continue;
    }
    line.erase("seconds");
    line.erase("memory_bytes");
    lines.push_back(std::move(line));
  }
  return lines;
}

struct Outcome {
  nlohmann::json facts;
  std::vector<nlohmann::json> metrics;
  std::string model;
  std::string optimizer;
  nlohmann::json state;
  std::vector<std::int64_t> ids;
};

/// Everything except the checkpoint.
inline Outcome facts_in(std::filesystem::path const& folder) {
  auto facts = nlohmann::json::parse(support::text_of(facts_of(folder)), nullptr, false);
  require(facts.is_object(), "the run has not come to its end");
  return {.facts = std::move(facts),
          .metrics = metrics_in(folder),
          .model = {},
          .optimizer = {},
          .state = {},
          .ids = {}};
}

inline Outcome outcome_in(std::filesystem::path const& folder) {
  Outcome out = facts_in(folder);
  frugal::NewestValid const newest = newest_in(folder);
  require(newest.checkpoint.has_value(), "there is no whole checkpoint at the end");
  require(newest.damaged.empty(), "a checkpoint is damaged at the end");
  require(newest.checkpoint->step() == out.facts.at("steps"),
          "the last checkpoint is not the end's");
  auto const& at = newest.checkpoint->folder;
  out.model = support::text_of(at / "model.safetensors");
  out.optimizer = support::text_of(at / "optimizer.safetensors");
  out.state = nlohmann::json::parse(support::text_of(at / "state.json"));
  out.state.erase("seconds");
  // The log also contains lines of the starts, and the digits of seconds vary.
  out.state.at("values").erase("policies/Log/size");
  out.state.at("values").erase("policies/Log/tail");
  // Records of disturbed starts, and of their failed saves.
  out.state.at("values").erase("policies/Checkpoint/failures");
  std::vector<std::string> told;
  for (auto const& [path, value] : out.state.at("values").items()) {
    if (path.starts_with("run/advice")) told.push_back(path);
  }
  for (std::string const& path : told) out.state.at("values").erase(path);
  // A save of the last step is equivalent to one of the end, which additionally has these two; the
  // facts contain the loss.
  out.state.at("values").erase("policies/Log/ended_at");
  out.state.at("values").erase("run/epoch_loss");
  auto const tensors = frugal::Safetensors::open(at / "optimizer.safetensors");
  auto const ids = tensors.at("policies/test.Ids/all");
  out.ids.resize(ids.bytes.size() / sizeof(std::int64_t));
  std::copy(ids.bytes.begin(), ids.bytes.end(), std::as_writable_bytes(std::span(out.ids)).begin());
  return out;
}

/// Without the best values of KeepBest, which drops one whose save failed.
inline Outcome without_best(Outcome of) {
  std::vector<std::string> best;
  for (auto const& [path, value] : of.state.at("values").items()) {
    if (path.starts_with("policies/Checkpoint/best.")) best.push_back(path);
  }
  for (std::string const& path : best) of.state.at("values").erase(path);
  return of;
}

/// Each sample once per epoch, and at most once in an incomplete one.
inline void require_each_once(std::vector<std::int64_t> const& ids, std::uint64_t epochs) {
  auto const count = static_cast<std::size_t>(sample_count);
  require(ids.size() / count == epochs || ids.size() == epochs * count,
          "the samples seen are not those of the epochs");
  for (std::size_t first = 0; first < ids.size(); first += count) {
    std::vector<int> seen(count, 0);
    std::size_t const end = std::min(ids.size(), first + count);
    for (std::size_t i = first; i < end; ++i) {
      require(ids[i] >= 0 && ids[i] < sample_count && ++seen[static_cast<std::size_t>(ids[i])] == 1,
              "sample " + std::to_string(ids[i]) + " was seen twice in epoch " +
                  std::to_string(first / count));
    }
  }
}

inline void require_same_facts(Outcome const& got, Outcome const& expected) {
  if (got.facts != expected.facts) {
    throw Violation("the end is another: " +
                    nlohmann::json::diff(expected.facts, got.facts).dump());
  }
  for (std::size_t i = 0; i < std::max(got.metrics.size(), expected.metrics.size()); ++i) {
    nlohmann::json const a = i < got.metrics.size() ? got.metrics[i] : nlohmann::json();
    nlohmann::json const b = i < expected.metrics.size() ? expected.metrics[i] : nlohmann::json();
    require(a == b, "line " + std::to_string(i) + " of the log is " + a.dump() + " and was to be " +
                        b.dump());
  }
}

inline void require_same(Outcome const& got, Outcome const& expected) {
  require(got.ids == expected.ids, "other samples, or in another order");
  require_same_facts(got, expected);
  require(got.model == expected.model, "model.safetensors differs");
  require(got.optimizer == expected.optimizer, "optimizer.safetensors differs");
  if (got.state != expected.state) {
    throw Violation("state.json differs: " +
                    nlohmann::json::diff(expected.state, got.state).dump());
  }
}

/// Starts the job until it ends in the expected way; otherwise throws its output.
inline void run_to_the_end(Job const& job, std::filesystem::path const& words) {
  Start start(words, [&](Told& told) {
    static_cast<void>(run(job, told));
    return 0;
  });
  End const end = start.wait();
  require(end.exited(0), end.words() + " of a start that nothing disturbed: " + start.words());
}

}  // namespace frugal_test::fault
