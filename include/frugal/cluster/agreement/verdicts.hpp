// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <exception>
#include <limits>
#include <string>

#include <frugal/cluster/communicator.hpp>
#include <frugal/core/run/run_state.hpp>
#include <frugal/core/run/services.hpp>
#include <frugal/error.hpp>

namespace frugal::detail {

// What processes that train together ask each other outside of the gradients. All of them call each.

/// The sum of one number of each process, or the largest if it is a verdict. NaN if one is.
inline double joined_number(Communicator& all, Quantity what, double value) {
  at::Tensor const values = all.gather(at::full({1}, value, at::kDouble), "a verdict");
  double result = is_verdict(what) ? -std::numeric_limits<double>::infinity() : 0;
  for (std::int64_t rank = 0; rank < all.size(); ++rank) {
    double const each = values[rank].item<double>();
    if (std::isnan(each)) return each;
    result = is_verdict(what) ? std::max(result, each) : result + each;
  }
  return result;
}

/// Likewise of each element, on the tensor's device.
inline at::Tensor joined_numbers(Communicator& all, Quantity what, at::Tensor const& value) {
  if (all.size() == 1) return value;
  at::Tensor mine = value.contiguous().view(-1);
  at::Tensor rows;
  if (mine.is_cpu() || all.goes_by_host(mine)) {
    rows = all.gather(mine.cpu(), "a flag").to(mine.device());
  } else {
    rows = at::empty({all.size() * mine.numel()}, mine.options());
    all.collect(rows, mine, "a flag");
    rows = rows.view({all.size(), -1});
  }
  return (is_verdict(what) ? rows.amax(0) : rows.sum(0)).view(value.sizes()).to(value.dtype());
}

/// Calls `body` as a run in which the others need this process, and then `end`. They learn of an error.
/// That of another process is none once the run is preempted and saved: the next start goes on from there.
template <class Body, class End>
void as_run(Communicator& all, RunState& run, Body&& body, End&& end) {
  all.enter_run();
  try {
    body();
    end();
    all.leave_run();
  } catch (ClusterError const& error) {
    end();
    all.leave_run();
    if (!run.control.preemption_saved()) throw;  // of all processes, or of another one
    run.warn(std::string("the run has been preempted and saved, and then: ") + error.what());
  } catch (std::exception const& error) {
    all.fail(error);
    end();
    throw;
  }
}

}  // namespace frugal::detail
