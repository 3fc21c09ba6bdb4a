// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/core/run/task_outputs.hpp>

#include <frugal/error.hpp>
#include <frugal/inline.hpp>

namespace frugal {

FRUGAL_INLINE TaskOutput const& TaskOutputs::of(std::string_view name) const {
  TaskOutput const* found = nullptr;
  bool twice = false;
  std::string known;
  if (tasks_) {
    for (TaskOutput const& each : *tasks_) {
      known += (known.empty() ? "'" : ", '") + each.name + "'";
      if (each.name != name) continue;
      twice = found != nullptr;
      found = &each;
    }
  }
  if (found != nullptr && !twice) return *found;
  throw MetricError(
      {.what = (twice ? "two tasks are called '" : "there is no task '") + std::string(name) + "'",
       .where = "Loss::tasks",
       .why = known.empty() ? "the objective returns no tasks" : "the objective returned " + known,
       .fix = "Return Loss{.value = loss, .tasks = {{\"" + std::string(name) +
              "\", output, target}}}, with a name for each task."});
}

}  // namespace frugal
