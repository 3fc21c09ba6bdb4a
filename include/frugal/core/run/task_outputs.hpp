// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>

#include <initializer_list>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace frugal {

/// What a module predicted for one of several tasks, and what it should have predicted.
struct TaskOutput {
  std::string name;
  at::Tensor output{};
  at::Tensor target{};
};

/// The tasks of a loss, for their metrics (ForTask): `{{"digit", logits, batch.digit}, {"age", years, batch.age}}`.
///
/// A null pointer if there are none. Copies share the list, which never changes.
class TaskOutputs {
 public:
  TaskOutputs() = default;
  // Implicit, so that a Loss takes braces.
  TaskOutputs(std::initializer_list<TaskOutput> tasks)  // NOLINT(google-explicit-constructor)
      : tasks_(std::make_shared<std::vector<TaskOutput> const>(tasks)) {}

  bool empty() const { return tasks_ == nullptr; }

  /// MetricError, which lists the tasks that there are, if this is none of them, or one of two of that name.
  TaskOutput const& of(std::string_view name) const;

 private:
  std::shared_ptr<std::vector<TaskOutput> const> tasks_;
};

}  // namespace frugal

#ifndef FRUGAL_COMPILED
#include <frugal/core/run/task_outputs.ipp>
#endif
