// SPDX-License-Identifier: Apache-2.0
// One process that resumes, trains briefly, is preempted and saves, again and again.
#pragma once

#include "outcome.hpp"

#include <signal.h>
#include <unistd.h>

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>

namespace frugal_test::fault {

/// The resources that a process holds.
struct Held {
  std::size_t threads = 0;
  std::size_t descriptors = 0;
  std::size_t temporaries = 0;
  std::uint64_t kib = 0;  ///< resident memory

  static Held now(std::filesystem::path const& folder) {
    std::ifstream file("/proc/self/statm");
    std::uint64_t size = 0;
    std::uint64_t resident = 0;
    file >> size >> resident;
    file.close();
    return {.threads = threads_left(),
            .descriptors = support::entries("/proc/self/fd"),
            .temporaries = temporaries_in(folder).size(),
            .kib = resident * static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE)) / 1024};
  }
  nlohmann::json json() const {
    return {{"threads", threads},
            {"descriptors", descriptors},
            {"temporaries", temporaries},
            {"KiB", kib}};
  }
};

/// Two steps per cycle; SIGTERM comes in the second one's batch.
inline frugal::Report cycle(std::filesystem::path const& folder, std::uint64_t steps, bool told,
                            std::shared_ptr<Mlp> const& module) {
  int batches = 0;
  auto const objective = [&](std::shared_ptr<Mlp>& mlp, frugal::Batch const& batch) {
    if (told && ++batches == 2) ::raise(SIGTERM);
    return frugal::CrossEntropy{}(mlp, batch);
  };
  frugal::Trainer trainer{module,
                          objective,
                          frugal::Settings{.run_dir = folder, .steps = steps, .seed = 7},
                          frugal::Optimize<frugal::AdamW>{},
                          frugal::Log<frugal::Every<1>>{},
                          frugal::Spot<frugal::SigtermSave>{},
                          frugal::Checkpoint<frugal::Every<1>, frugal::Keep<2>, frugal::Async>{}};
  frugal::Prefetch train(
      frugal::TensorDataset(support::samples(43), {.batch = 4, .shuffle = true}));
  return trainer.fit(train);
}

inline nlohmann::json cycles(std::uint64_t count) {
  require(count >= 200, "growth needs at least 200 cycles to be seen");
  Scratch const scratch;
  Start start(scratch / "words", [&](Told&) {
    ::alarm(600);
    Held early;
    std::uint64_t const warm = 100;
    std::uint64_t const steps = 2 * count;
    support::Mlp::Shape const shape{.dropout = 0.3, .norm = true};
    auto module = std::make_shared<Mlp>(shape);
    for (std::uint64_t i = 0; i < count; ++i) {
      module = std::make_shared<Mlp>(shape);
      // The last run may end by itself in the step in which it is preempted.
      frugal::Report const report = cycle(scratch / "run", steps, true, module);
      require(report.steps == 2 * (i + 1),
              "cycle " + std::to_string(i) + " ended at step " + std::to_string(report.steps));
      require(report.preempted || i + 1 == count,
              "cycle " + std::to_string(i) + " was not told to go");
      require(report.resumed.has_value() == (i != 0),
              "cycle " + std::to_string(i) + " has not resumed");
      if (i + 1 == warm) early = Held::now(scratch / "run");
    }
    Held const late = Held::now(scratch / "run");
    std::ofstream(scratch / "held.json") << nlohmann::json{
        {"cycles", count}, {"after 100", early.json()}, {"at the end", late.json()}};
    require(late.threads == early.threads, "threads: " + std::to_string(early.threads) +
                                               " and then " + std::to_string(late.threads));
    require(late.descriptors == early.descriptors,
            "descriptors: " + std::to_string(early.descriptors) + " and then " +
                std::to_string(late.descriptors));
    require(late.temporaries == 0, "temporaries are left");
    // Tolerance for heap fragmentation; a leak of one small state per cycle would be 20 MiB.
    require(late.kib <= early.kib + 2048,
            "memory: " + std::to_string(early.kib) + " KiB and then " + std::to_string(late.kib));
    auto const whole = std::make_shared<Mlp>(shape);
    frugal::Report const report = cycle(scratch / "whole", steps, false, whole);
    require(report.steps == steps, "the undisturbed run ended early");
    require(support::same_bits(support::tensors_of(*module), support::tensors_of(*whole)),
            "the weights are others");
    return 0;
  });
  End const end = start.wait();
  require(end.exited(0), end.words() + ": " + start.words());
  return nlohmann::json::parse(support::text_of(scratch / "held.json"));
}

}  // namespace frugal_test::fault
