// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/report/profile/bound.hpp>

#include <frugal/inline.hpp>

#include <algorithm>
#include <cstdio>

namespace frugal::watch {

FRUGAL_INLINE std::string_view name_of(Bound bound) {
  switch (bound) {
    case Bound::input:
      return "input";
    case Bound::compute:
      return "compute";
    case Bound::launch:
      return "launch";
    case Bound::host:
      break;
  }
  return "host";
}

FRUGAL_INLINE Spans training_of(Trace const& trace) {
  return without({trace.span}, spans_of(trace, [](TracedEvent const& each) {
                   return each.where == TracedEvent::Where::range && each.name == range::validation;
                 }));
}

FRUGAL_INLINE Division divide(Trace const& trace, Spans const& training) {
  using Where = TracedEvent::Where;
  auto const named = [&](std::string_view name) {
    return spans_of(trace, [&](TracedEvent const& each) {
      return each.where == Where::range && each.name == name;
    });
  };
  auto const at = [&](Where where) {
    return spans_of(trace, [&](TracedEvent const& each) { return each.where == where; });
  };
  Division found{.step_time = total(training)};
  if (found.step_time == 0) return found;
  auto const share = [&](Spans const& spans) {
    return static_cast<double>(total(spans)) / static_cast<double>(found.step_time);
  };
  Spans const data = named(range::data);
  Spans const operators = at(Where::op);
  // A CPU that stacks samples is not working on the step.
  Spans const busy =
      common(training, trace.on_accelerator ? at(Where::device) : without(operators, data));
  Spans const idle = without(training, busy);
  Spans const starved = common(idle, data);
  found.busy = share(busy);
  found.data = share(starved);
  // A replayed graph has no ranges: the source's own measurement, as far as the device was idle.
  double const waited = trace.waited_seconds * 1e9 / static_cast<double>(found.step_time);
  found.data = std::max(found.data, std::min(waited, found.idle()));
  if (trace.on_accelerator) found.launch = share(common(without(idle, data), operators));
  found.host = std::max(0.0, 1 - found.busy - found.data - found.launch);
  found.policies = share(common(training, named(range::policies)));
  return found;
}

FRUGAL_INLINE Bound judge(Division const& step, bool on_accelerator) {
  if (step.data >= input_from) return Bound::input;
  if (step.busy >= compute_from) {
    bool const dispatching = !on_accelerator && step.short_calls >= short_calls_from;
    return dispatching ? Bound::launch : Bound::compute;
  }
  return step.launch >= step.host && step.launch > 0 ? Bound::launch : Bound::host;
}

FRUGAL_INLINE std::string percent(double share) {
  char text[16];
  std::snprintf(text, sizeof text, "%.0f%%", 100 * std::clamp(share, 0.0, 9.99));
  return text;
}

FRUGAL_INLINE std::string advice_for(Bound bound, Division const& step, bool on_accelerator) {
  switch (bound) {
    case Bound::input:
      return percent(step.data) +
             " of the step waits for data. Read ahead with Loader (docs/data/loading.md), or "
             "compute slow transforms once with Cached (docs/data/cache.md).";
    case Bound::compute:
      return "The device works " + percent(step.busy) +
             " of the step. Make the work cheaper: Precision<BF16> where the device is fast in it "
             "(docs/policy/precision.md), or a device with a higher peak per dollar.";
    case Bound::launch:
      if (on_accelerator) {
        return percent(step.launch) +
               " of the step is spent launching kernels while the device is idle. Replay the step "
               "with CudaGraph (docs/policy/cuda_graph.md), or use larger batches "
               "(docs/policy/auto_batch.md).";
      }
      return percent(step.short_calls) +
             " of the operators' time is in calls of less than 5 us, about what calling one costs. "
             "Use larger batches (docs/policy/auto_batch.md).";
    case Bound::host:
      break;
  }
  if (step.policies >= step.host / 2) {
    return percent(step.policies) +
           " of the step is the policies' own work. Log, validate and save less often: "
           "Every<N> with a larger N (docs/loop.md).";
  }
  return percent(step.host) +
         " of the step is neither operators nor data. Look in the trace for host work in the "
         "module and the objective, and for item(), which waits for the device.";
}

}  // namespace frugal::watch
