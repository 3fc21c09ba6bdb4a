// SPDX-License-Identifier: Apache-2.0
// needs: torch
// expect: frugal: a metric of this recipe has the name of another value in a log's line, such as "step" or "seconds" (all are in frugal/core/run/log_keys.hpp). The compiler's note names its type: give it another name.
#include <frugal/policy/train_metrics.hpp>
#include <frugal/policy/validate.hpp>

#include <string_view>

using namespace frugal;

struct Latency {
  static constexpr std::string_view name = "latency_seconds";
  template <class B>
  void add(Loss const&, B const&) {}
  double result() const { return 0; }
};
struct Seconds {
  static constexpr std::string_view name = "seconds";
  template <class B>
  void add(Loss const&, B const&) {}
  double result() const { return 0; }
};
static_assert(sizeof(Validate<Every<1, Epoch>, Latency>) != 0);
#ifdef FRUGAL_REJECT
static_assert(sizeof(Validate<Every<1, Epoch>, Seconds>) != 0);
#endif
