// SPDX-License-Identifier: Apache-2.0
// Trainers whose saves fail at one call to the file system after another, through the shim.
#pragma once

#include "outcome.hpp"

#include <dlfcn.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdlib>
#include <iostream>
#include <map>
#include <nlohmann/json.hpp>
#include <regex>
#include <sstream>
#include <string>
#include <vector>

namespace frugal_test::fault {

/// The fault at a call.
struct Fault {
  std::string act;       ///< of the shim
  bool lasting = false;  ///< also at all later calls
  std::string error{};   ///< the required text of strerror, if the error must be reported
};

struct Call {
  std::string name;
  std::string path;
};

class BrokenCalls {
 public:
  /// Tries every `stride`-th case, from `first` on.
  BrokenCalls(std::uint64_t stride, std::uint64_t first) : stride_(stride), next_(first % stride) {
    arm_ = reinterpret_cast<void (*)()>(::dlsym(RTLD_DEFAULT, "frugal_fault_arm"));
    if (arm_ == nullptr) throw std::runtime_error("the shim is not loaded: give --shim");
  }

  void run() {
    for (bool const async : {false, true}) {
      for (auto const policy : {frugal::OnFailure::Stop, frugal::OnFailure::Continue}) {
        Scenario scenario(async, policy);
        auto const calls = all_calls(scenario);
        for (Fault const& fault : faults) {
          for (std::size_t k = 1; k <= calls.size(); ++k) {
            bool const writes = calls[k - 1].name.starts_with("write");
            if ((fault.act == "short" || fault.act == "tear") && !writes) continue;
            if (fault.act == "EINTR" && !is_interruptible(calls[k - 1].name)) continue;
            if (next_++ % stride_ == 0) one(scenario, fault, k);
          }
        }
      }
    }
  }

  nlohmann::json report() const {
    return {{"tried", tried_},
            {"stopped with an error", stopped_},
            {"went on", went_on_},
            {"in all", all_}};
  }

 private:
  static inline std::vector<Fault> const faults{
      {.act = "kill"},
      {.act = "tear"},
      {.act = "term"},
      {.act = "short"},
      {.act = "EINTR"},
      {.act = "clock"},
      {.act = "clock", .lasting = true},
      {.act = "ENOSPC", .error = "No space left on device"},
      {.act = "EIO", .error = "Input/output error"},
      {.act = "EROFS", .error = "Read-only file system"},
      {.act = "ENOSPC", .lasting = true, .error = "No space left on device"},
      {.act = "EIO", .lasting = true, .error = "Input/output error"},
      {.act = "EROFS", .lasting = true, .error = "Read-only file system"}};

  // Two epochs with faults in the second and the third save. The second deletes nothing, the third
  // something.
  struct Scenario {
    Scenario(bool async, frugal::OnFailure policy)
        : job{.folder = scratch / "run", .epochs = 2, .async = async, .on_failure = policy},
          expected(undisturbed(job, scratch / "words")) {}

    static Outcome undisturbed(Job const& job, std::filesystem::path const& words) {
      std::filesystem::create_directories(job.folder);
      run_to_the_end(job, words);
      return outcome_in(job.folder);
    }
    std::string first() const { return job.async ? ".tmp-step-00000006" : ".tmp-step-00000010"; }
    std::string beyond() const { return job.async ? ".tmp-step-00000012" : ".tmp-step-00000018"; }

    Scratch scratch;
    Job job;
    Outcome expected;
  };

  static bool is_interruptible(std::string const& call) {
    static std::vector<std::string> const calls{"write",     "fsync", "open", "create",
                                                "fallocate", "close", "flock"};
    return std::find(calls.begin(), calls.end(), call) != calls.end();
  }

  /// Whether a fault at this call needs no report: clean-up, texts for people, and calls that file
  /// systems may lack and that are checked elsewhere.
  static bool may_be_ignored(Call const& call) {
    static std::vector<std::string> const calls{"unlink",    "rmdir",     "pwrite", "close",
                                                "fallocate", "renameat2", "rename", "open"};
    return std::find(calls.begin(), calls.end(), call.name) != calls.end();
  }

  /// Starts the job with a fault at its k-th call. Nothing if the fault preempted the run.
  End start(Scenario const& scenario, Fault const& fault, std::size_t k, std::string& words) const {
    std::filesystem::remove_all(scenario.job.folder);
    std::filesystem::create_directories(scenario.job.folder);
    std::filesystem::remove(facts_of(scenario.job.folder));
    std::filesystem::remove(advice_of(scenario.job.folder));
    auto const log = scenario.scratch / "calls";
    std::filesystem::remove(log);
    Start start(scenario.scratch / "words", [&](Told& told) {
      auto const set = [](char const* name, std::string const& value) {
        ::setenv(name, value.c_str(), 1);
      };
      set("FRUGAL_FAULT_UNDER", scenario.job.folder);
      set("FRUGAL_FAULT_CALLS",
          "create,open,write,pwrite,fsync,fdatasync,close,fallocate,ftruncate,rename,renameat2,"
          "link,mkdir,unlink,rmdir");
      set("FRUGAL_FAULT_FROM", scenario.first());
      set("FRUGAL_FAULT_LOG", log);
      if (k != 0) {
        set("FRUGAL_FAULT_AT", std::to_string(k));
        set("FRUGAL_FAULT_DO", fault.act);
        if (fault.lasting) set("FRUGAL_FAULT_TIMES", "0");
      }
      arm_();
      static_cast<void>(fault::run(scenario.job, told));
      return 0;
    });
    End const end = start.wait();
    words = start.words();
    return end;
  }

  static std::vector<Call> calls_of(Scenario const& scenario) {
    std::vector<Call> calls;
    for (auto const& text : support::lines_of(support::text_of(scenario.scratch / "calls"))) {
      std::istringstream line(text);
      long number = 0;
      Call call;
      line >> number >> call.name >> call.path;
      calls.push_back(call);
    }
    return calls;
  }

  std::vector<Call> all_calls(Scenario const& scenario) const {
    std::string words;
    End const end = start(scenario, {}, 0, words);
    require(end.exited(0), end.words() + " of a start without a fault: " + words);
    std::vector<Call> calls = calls_of(scenario);
    auto const end_of_saves = std::find_if(calls.begin(), calls.end(), [&](Call const& call) {
      return call.path.find(scenario.beyond()) != std::string::npos;
    });
    require(end_of_saves != calls.end(), "the saves are not those that were to be broken");
    calls.erase(end_of_saves, calls.end());
    // The last calls belong to the next save, which may be the one at the end.
    while (calls.back().path.ends_with("/metrics.jsonl")) calls.pop_back();
    require(calls.size() > 40, "the shim does not count");
    return calls;
  }

  /// The last step whose save was complete before the k-th call.
  static std::uint64_t last_good(Scenario const& scenario, std::vector<Call> const& calls,
                                 std::size_t k) {
    std::uint64_t step = scenario.job.async ? 3 : 5;
    std::uint64_t named = step;
    static std::regex const name("/checkpoints/step-([0-9]+)$");
    for (std::size_t i = 0; i + 1 < k && i < calls.size(); ++i) {
      std::smatch match;
      if (calls[i].name.starts_with("rename") && std::regex_search(calls[i].path, match, name)) {
        named = std::stoull(match[1]);
      }
      if (calls[i].name == "fsync" && calls[i].path.ends_with("/checkpoints")) step = named;
    }
    return step;
  }

  void one(Scenario const& scenario, Fault const& fault, std::size_t k) {
    std::string words;
    End const end = start(scenario, fault, k, words);
    auto const calls = calls_of(scenario);
    Call const call = k <= calls.size() ? calls[k - 1] : Call{};
    // Two threads do not always make their calls in the same order: occasionally this fault cannot
    // happen at the k-th call.
    bool const writes = call.name.starts_with("write");
    if ((fault.act == "short" || fault.act == "tear") && !writes) return;
    if (fault.act == "EINTR" && !is_interruptible(call.name)) return;
    try {
      look(scenario, fault, k, end, words, calls);
    } catch (Violation const& violation) {
      throw Violation(
          std::string(scenario.job.async ? "Async, " : "not Async, ") +
          (scenario.job.on_failure == frugal::OnFailure::Stop ? "Stop: " : "Continue: ") +
          fault.act + " at call " + std::to_string(k) + (fault.lasting ? " and after" : "") + ", " +
          call.name + ' ' + call.path + ": " + violation.what() + "; " + end.words() + ", " +
          words);
    }
    ++tried_[fault.act + (fault.lasting ? " from then on" : "")];
    ++all_;
  }

  void look(Scenario const& scenario, Fault const& fault, std::size_t k, End const& end,
            std::string const& words, std::vector<Call> const& calls) {
    Job const& job = scenario.job;
    require(calls.size() >= k, "the call was not made");
    // Whatever happened, safe checkpoints are still safe, and none is incomplete.
    auto const newest = newest_in(job.folder);
    require(newest.damaged.empty(), "a checkpoint is damaged");
    require(newest.checkpoint && newest.checkpoint->step() >= last_good(scenario, calls, k),
            "the last good checkpoint is gone");
    if (fault.act == "kill" || fault.act == "tear") {
      require(end.killed_by(SIGKILL), "it was to be killed");
    } else if (fault.act == "term") {
      require(end.exited(75), "it was to be preempted");
    } else if (fault.error.empty()) {
      require(end.exited(0), "it was to be borne");
      require_same(outcome_in(job.folder), scenario.expected);
    } else {
      look_at_failure(scenario, fault, k, end, words, calls);
    }
    if (end.exited(0) && fault.error.empty()) return;
    // The next start, on a healthy machine, ends as if nothing had happened.
    Job again = job;
    again.on_failure = frugal::OnFailure::Stop;
    run_to_the_end(again, scenario.scratch / "words");
    auto const shown = [&](Outcome of) {
      return job.on_failure == frugal::OnFailure::Continue ? without_best(std::move(of)) : of;
    };
    require_same(shown(outcome_in(job.folder)), shown(scenario.expected));
    require(temporaries_in(job.folder).empty(), "a temporary is left");
  }

  void look_at_failure(Scenario const& scenario, Fault const& fault, std::size_t k, End const& end,
                       std::string const& words, std::vector<Call> const& calls) {
    Job const& job = scenario.job;
    Call const& call = calls[k - 1];
    bool const stops = job.on_failure == frugal::OnFailure::Stop;
    std::string const log = support::text_of(job.folder / "metrics.jsonl");
    std::string const advice = support::text_of(advice_of(job.folder));
    bool const told = advice.find("a checkpoint was not written") != std::string::npos;
    if (stops) {
      require(end.exited(0) || end.exited(3), "no error of the store");
      if (end.exited(3)) {
        std::regex const sentence("frugal: [^\\n]* \\([^\\n]+\\): " + fault.error +
                                  "\\. [A-Z][^\\n]*\\.\\n");
        require(std::regex_match(words, sentence), "the error is not clear");
        ++stopped_;
      }
    } else {
      require(end.exited(0), "it was to go on");
      Outcome expected = scenario.expected;
      Outcome const got = facts_in(job.folder);
      // A disk that stays full takes no more log lines; earlier ones are there.
      if (fault.lasting && got.metrics.size() < expected.metrics.size()) {
        expected.metrics.resize(got.metrics.size());
      }
      require_same_facts(got, expected);
      if (told) {
        require(advice.find(fault.error) != std::string::npos, "the advice does not say why");
        // A disk that stays full takes no log line either.
        require(fault.lasting || log.find("\"checkpoint_failed\"") != std::string::npos,
                "the log does not say that a checkpoint failed");
        ++went_on_;
      }
    }
    // A log that cannot be written gives a note in advice, whatever the run does about checkpoints.
    bool const of_log = advice.find("metrics.jsonl cannot be") != std::string::npos;
    // A deletion follows its save, which is complete: it is reported, and retried at the next.
    bool const of_deletion = advice.find("cannot be deleted") != std::string::npos;
    bool const noticed = of_log || of_deletion || (stops ? end.exited(3) : told);
    require(noticed || may_be_ignored(call), "the failure was not noticed");
    // The kernel may have dropped what it could not write, and a second fsync would not report it.
    if (call.name == "fsync") {
      require(noticed, "a failed fsync was not noticed");
      bool const again = std::any_of(
          calls.begin() + static_cast<std::ptrdiff_t>(k), calls.end(),
          [&](Call const& later) { return later.name == "fsync" && later.path == call.path; });
      // Later saves fsync the folder and the log again, for their new contents.
      bool const of_one_save = call.path.find("/.tmp-") != std::string::npos;
      require(!again || ((!stops || of_deletion) && !of_one_save), "a failed fsync was made again");
    }
  }

  std::uint64_t stride_;
  std::uint64_t next_;
  void (*arm_)() = nullptr;
  std::map<std::string, std::uint64_t> tried_;
  std::uint64_t stopped_ = 0;
  std::uint64_t went_on_ = 0;
  std::uint64_t all_ = 0;
};

inline nlohmann::json broken_calls(std::uint64_t stride, std::uint64_t first) {
  BrokenCalls calls(stride, first);
  calls.run();
  return calls.report();
}

}  // namespace frugal_test::fault
