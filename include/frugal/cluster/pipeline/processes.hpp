// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <utility>

#include <frugal/cluster/communicator.hpp>
#include <frugal/cluster/world.hpp>
#include <frugal/error.hpp>

namespace frugal::detail {

/// The processes of a recipe with Pipeline.
struct PipelineProcesses {
  std::shared_ptr<Communicator> stages;    ///< that have one copy of the module
  std::shared_ptr<Communicator> copies;    ///< that have the same stages; null without Exact
  std::shared_ptr<Communicator> everyone;  ///< of all copies

  /// SettingsError if they are not of one Grid.
  static PipelineProcesses of(std::shared_ptr<Communicator> with,
                              std::shared_ptr<Communicator> copies, bool is_exact) {
    auto everyone = with->everyone() ? with->everyone() : with;
    int const number = copies ? copies->size() : 1;
    if (copies && !is_exact) {
      refuse(*everyone,
             "Pipeline::copies is set, and gradients are added up in the order of one copy",
             "the bits would depend on the number of copies",
             "Write Pipeline<OneForwardOneBackward, Exact>.");
    }
    if (with->size() * number != everyone->size()) {
      refuse(*everyone,
             "the run has " + std::to_string(everyone->size()) +
                 " processes, and Pipeline's copies x with are " + std::to_string(number) + " x " +
                 std::to_string(with->size()),
             "each process has stages of one copy",
             "Set Pipeline::with to the `stages` of a Grid, and Pipeline::copies to its `data`.");
    }
    int const first = everyone->rank() / with->size() * with->size();
    bool fits = true;
    for (int i = 0; i < with->size(); ++i) {
      fits = fits && with->rank_in_world(i) == everyone->rank_in_world(first + i);
    }
    for (int i = 0; copies && i < number; ++i) {
      int const rank = everyone->rank_in_world(i * with->size() + with->rank());
      fits = fits && copies->rank_in_world(i) == rank;
    }
    if (!fits) {
      refuse(*everyone,
             "Pipeline's `with` and `copies` are not the stages and the data of one Grid",
             "each process has stages of one copy, and exchanges gradients with those of the same "
             "stages",
             "Set Pipeline::with to the `stages` of a Grid, and Pipeline::copies to its `data`.");
    }
    if (is_exact && !copies) copies = std::make_shared<Communicator>(nullptr, World{});
    return {
        .stages = std::move(with), .copies = std::move(copies), .everyone = std::move(everyone)};
  }

 private:
  [[noreturn]] static void refuse(Communicator const& all, std::string what, std::string why,
                                  std::string fix) {
    throw SettingsError({.what = std::move(what),
                         .where = "Pipeline, " + all.world().text(),
                         .why = std::move(why),
                         .fix = std::move(fix)});
  }
};

}  // namespace frugal::detail
