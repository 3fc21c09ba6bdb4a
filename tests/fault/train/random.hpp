// SPDX-License-Identifier: Apache-2.0
// Runs that are killed at random instants, and restarted, must end like an undisturbed one.
#pragma once

#include "outcome.hpp"

#include <array>
#include <chrono>
#include <cstdint>
#include <iostream>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <random>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

namespace frugal_test::fault {

/// The kill of a start, and what the start was doing then.
struct Kill {
  enum class How { kill, term, term_twice, term_and_kill };
  enum class Aim { anywhere, mid_window, validation, saving };

  How how = How::kill;
  Aim aim = Aim::anywhere;
  double after = 0;      ///< seconds from the start, before aiming
  double on_target = 0;  ///< seconds from the target
  double second = 0;     ///< seconds to the second signal
  std::string where{};   ///< what the start was doing
  std::uint64_t step = 0;

  std::string words() const {
    static constexpr std::array hows{"SIGKILL", "SIGTERM", "SIGTERM twice", "SIGTERM, SIGKILL"};
    std::ostringstream text;
    text << hows[static_cast<std::size_t>(how)] << " in " << where << " at step " << step;
    return text.str();
  }
};

/// The number of kills, and where they fell.
using Tally = std::map<std::string, std::map<std::string, std::uint64_t>>;

class RandomKills {
 public:
  explicit RandomKills(std::uint64_t seed, bool forgets = false) : seed_(seed), forgets_(forgets) {}

  /// One run, determined by the seed and its number except for the machine's timing.
  void run(std::uint64_t number) {
    std::mt19937_64 random(seed_ * 1000003 + number);
    Scratch const scratch;
    Job job{.folder = scratch / "run",
            .seed = 7 + random() % 3,
            .async = random() % 3 != 0,
            .forgets = forgets_};
    Reference const& expected = reference(job);
    auto const wanted = 1 + random() % 5;
    std::vector<Kill> kills;
    try {
      // The signal may come too late: then the run is over, and is repeated.
      for (int attempt = 0; kills.empty(); ++attempt) {
        require(attempt < 20, "no kill has hit in 20 runs");
        std::filesystem::remove_all(job.folder);
        std::filesystem::create_directories(job.folder);
        std::filesystem::remove(facts_of(job.folder));
        double left = expected.seconds;
        bool ended = false;
        while (!ended && kills.size() < wanted) {
          ended = one_start(job, expected, draw(random, left), scratch / "words", kills);
          if (!kills.empty()) {
            left = expected.seconds * (1 - static_cast<double>(kills.back().step) /
                                               static_cast<double>(expected.steps));
          }
        }
        if (!ended || random() % 4 == 0) run_to_the_end(job, scratch / "words");
      }
      check(job, expected);
    } catch (Violation const& violation) {
      std::ostringstream text;
      text << "run " << number << " with seed " << seed_ << " ("
           << (job.async ? "Async" : "not Async") << ", seed of the job " << job.seed
           << "): " << violation.what();
      for (Kill const& kill : kills) text << "\n    " << kill.words();
      throw Violation(text.str());
    }
    ++runs_;
    resumes_ += kills.size();
    ++by_resumes_[std::to_string(kills.size())];
    for (Kill const& kill : kills) {
      ++where_[kill.how == Kill::How::kill ? "SIGKILL" : "SIGTERM"][kill.where];
    }
  }

  nlohmann::json report() const {
    return {{"runs", runs_},
            {"kills", resumes_},
            {"where", where_},
            {"killed", by_resumes_},
            {"saved at once", saved_},
            {"seconds", reference_seconds()},
            {"steps", reference_steps()},
            {"stopped by", stopped_by()}};
  }

 private:
  struct Reference {
    Outcome outcome;
    double seconds = 0;
    std::uint64_t steps = 0;
  };

  /// The same job, undisturbed.
  Reference const& reference(Job job) {
    auto& known = references_[{job.seed, job.async}];
    if (known) return *known;
    Scratch const scratch;
    job.folder = scratch / "run";
    std::filesystem::create_directories(job.folder);
    auto const begin = std::chrono::steady_clock::now();
    run_to_the_end(job, scratch / "words");
    std::chrono::duration<double> const spent = std::chrono::steady_clock::now() - begin;
    known = Reference{.outcome = outcome_in(job.folder), .seconds = spent.count(), .steps = 0};
    known->steps = known->outcome.facts.at("steps");
    require_each_once(known->outcome.ids, known->outcome.facts.at("epochs"));
    return *known;
  }

  static Kill draw(std::mt19937_64& random, double left) {
    std::uniform_real_distribution<double> share(0, 1);
    Kill kill;
    kill.how = static_cast<Kill::How>(std::array{0, 0, 0, 1, 1, 1, 2, 3}[random() % 8]);
    kill.aim = static_cast<Kill::Aim>(std::array{0, 0, 0, 0, 1, 2, 2, 3, 3, 3}[random() % 10]);
    kill.after = share(random) * left;
    kill.on_target = share(random) * 0.0001;
    kill.second = share(random) * 0.002;
    return kill;
  }

  static std::string where(Job const& job, Told const& told) {
    switch (told.where.load()) {
      case Where::starting:
        return "the start";
      case Where::mid_window:
        return is_saving(job.folder) ? "saving" : "training, mid-window";
      case Where::window:
        return is_saving(job.folder) ? "saving" : "training";
      case Where::validation:
        return is_saving(job.folder) ? "saving" : "validation";
      case Where::ending:
        return is_saving(job.folder) ? "saving" : "the end";
    }
    return "";
  }

  /// Starts the job and kills it. True if it ended first.
  bool one_start(Job const& job, Reference const& expected, Kill kill,
                 std::filesystem::path const& words, std::vector<Kill>& kills) {
    Start start(words, [&](Told& told) {
      static_cast<void>(fault::run(job, told));
      return 0;
    });
    Told const& told = start.told();
    bool const hit = pass(start, kill.after) && pass_until(start, [&] {
                       Where const now = told.where;
                       if (kill.aim == Kill::Aim::mid_window) return now == Where::mid_window;
                       if (kill.aim == Kill::Aim::validation) return now == Where::validation;
                       // Remains of an earlier start are not a save.
                       if (kill.aim == Kill::Aim::saving) {
                         return now != Where::starting && is_saving(job.folder);
                       }
                       return true;
                     });
    if (!hit || (kill.aim != Kill::Aim::anywhere && !pass(start, kill.on_target))) {
      require(start.wait().exited(0), "a start that was let be failed: " + start.words());
      return true;
    }
    kill.where = where(job, told);
    bool const before_handler = told.where == Where::starting;
    start.send(kill.how == Kill::How::kill ? SIGKILL : SIGTERM);
    std::uint64_t const training = told.training;
    std::uint64_t const validation = told.validation;
    if (kill.how == Kill::How::term_twice || kill.how == Kill::How::term_and_kill) {
      pass(start, kill.second);
      start.send(kill.how == Kill::How::term_twice ? SIGTERM : SIGKILL);
    }
    End const end = start.wait();
    kill.step = told.step;
    bool const is_over = told.where == Where::ending;
    // The ways it may end: by the signal, with 75, or by itself if the signal came too late.
    if (end.exited(0)) {
      require(kill.step == expected.steps, "exit code 0 before the end");
      return true;
    }
    bool const nine = kill.how == Kill::How::kill || kill.how == Kill::How::term_and_kill;
    bool const fifteen = kill.how != Kill::How::kill;
    bool const allowed = (nine && end.killed_by(SIGKILL)) || (fifteen && end.exited(75)) ||
                         (fifteen && end.killed_by(SIGTERM) && (before_handler || is_over));
    auto const newest = newest_in(job.folder);
    if (kill.step == 0 && newest.checkpoint) kill.step = newest.checkpoint->step();
    kills.push_back(kill);
    require(newest.damaged.empty(), "a kill has left a damaged checkpoint");
    require(allowed, end.words() + ": " + start.words());
    if (end.exited(75)) {
      // The rest of a window, and one more if the signal came while it was counted.
      require(told.training - training <= 6, "training went on after SIGTERM");
      require(told.validation - validation <= 2, "validation went on after SIGTERM");
      require(newest.checkpoint && newest.checkpoint->step() == kill.step,
              "exit code 75, and the step that was done is not saved");
      require(temporaries_in(job.folder).empty(), "exit code 75, and a temporary is left");
      ++saved_;
    }
    return false;
  }

  static void check(Job const& job, Reference const& expected) {
    Outcome const got = outcome_in(job.folder);
    require_same(got, expected.outcome);
    require_each_once(got.ids, got.facts.at("epochs"));
    auto const left = temporaries_in(job.folder);
    require(left.empty(), "a temporary is left: " + (left.empty() ? "" : left.front()));
    auto const count = frugal::RunDirectory(job.folder, frugal::Access::read).list().whole.size();
    require(count <= (job.async ? 2U : 3U), "more checkpoints than are to be kept");
  }

  nlohmann::json reference_seconds() const {
    nlohmann::json all = nlohmann::json::array();
    for (auto const& [key, known] : references_) all.push_back(known->seconds);
    return all;
  }
  nlohmann::json stopped_by() const {
    nlohmann::json all = nlohmann::json::array();
    for (auto const& [key, known] : references_) {
      all.push_back(known->outcome.facts.at("stopped_by"));
    }
    return all;
  }
  nlohmann::json reference_steps() const {
    nlohmann::json all = nlohmann::json::array();
    for (auto const& [key, known] : references_) all.push_back(known->steps);
    return all;
  }

  std::uint64_t seed_;
  bool forgets_;
  std::map<std::pair<std::uint64_t, bool>, std::optional<Reference>> references_;
  std::uint64_t runs_ = 0;
  std::uint64_t resumes_ = 0;
  std::uint64_t saved_ = 0;
  std::map<std::string, std::uint64_t> by_resumes_;
  Tally where_;
};

/// Runs from `first` on, each with its own kills.
inline nlohmann::json random_kills(std::uint64_t first, std::uint64_t runs, std::uint64_t seed) {
  std::cout << "random kills: seed " << seed << '\n';
  RandomKills kills(seed);
  for (std::uint64_t i = 0; i < runs; ++i) kills.run(first + i);
  return kills.report();
}

/// A job that does not resume exactly must be detected, or the other results prove nothing.
inline nlohmann::json finds_what_forgets(std::uint64_t seed) {
  RandomKills kills(seed, /*forgets=*/true);
  std::string found;
  for (std::uint64_t i = 0; i < 5 && found.empty(); ++i) {
    try {
      kills.run(i);
    } catch (Violation const& violation) {
      found = violation.what();
    }
  }
  bool const rightly = found.find("the end is another") != std::string::npos ||
                       found.find("exit code 0 before the end") != std::string::npos ||
                       found.find("other samples") != std::string::npos;
  require(rightly, "five runs that do not resume exactly were not found out: " + found);
  return {{"found", found}};
}

}  // namespace frugal_test::fault
