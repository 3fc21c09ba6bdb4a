// SPDX-License-Identifier: Apache-2.0
// torch-free
#include <doctest/doctest.h>

#include <frugal/report/profile/bound.hpp>

#include <string>
#include <string_view>
#include <utility>

namespace frugal_test::watch_profile_bound {

using namespace frugal::watch;
using Where = TracedEvent::Where;

TracedEvent range_of(std::string_view name, Span span) {
  return {.name = std::string(name), .span = span, .where = Where::range};
}
TracedEvent op(Span span) { return {.name = "aten::mm", .span = span}; }
TracedEvent kernel(Span span) { return {.name = "gemm", .span = span, .where = Where::device}; }

Division divided(Trace const& trace) { return divide(trace, training_of(trace)); }

TEST_CASE("on the CPU an operator that reads data is no work of the step") {
  // 0-40 data, of which 10-20 stack samples; 40-100 the step, of which 40-90 in operators.
  Trace const trace{.span = {0, 100},
                    .events = {range_of(range::data, {0, 40}), op({10, 20}),
                               range_of(range::forward, {40, 100}), op({40, 90})}};
  Division const found = divided(trace);
  CHECK(found.busy == doctest::Approx(0.5));
  CHECK(found.data == doctest::Approx(0.4));
  CHECK(found.host == doctest::Approx(0.1));
  CHECK(found.launch == 0);
  CHECK(judge(found, false) == Bound::input);
  CHECK(advice_for(Bound::input, found, false).find("docs/data/loading.md") != std::string::npos);
}

TEST_CASE("data that is read while the device works costs nothing") {
  Trace const trace{.span = {0, 100},
                    .events = {range_of(range::data, {0, 90}), kernel({5, 100})},
                    .on_accelerator = true};
  Division const found = divided(trace);
  CHECK(found.busy == doctest::Approx(0.95));
  CHECK(found.data == doctest::Approx(0.05));
  CHECK(judge(found, true) == Bound::compute);
}

TEST_CASE(
    "a device that waits for the host's operators is launch-bound, and CudaGraph is the lever") {
  Trace const trace{.span = {0, 100},
                    .events = {range_of(range::forward, {0, 100}), op({0, 80}), kernel({10, 20}),
                               kernel({40, 50})},
                    .on_accelerator = true};
  Division const found = divided(trace);
  CHECK(found.busy == doctest::Approx(0.2));
  CHECK(found.launch == doctest::Approx(0.6));
  CHECK(found.host == doctest::Approx(0.2));
  CHECK(judge(found, true) == Bound::launch);
  CHECK(advice_for(Bound::launch, found, true).find("docs/policy/cuda_graph.md") !=
        std::string::npos);
}

TEST_CASE("a device that waits for neither data nor operators is host-bound") {
  Trace const trace{.span = {0, 100},
                    .events = {range_of(range::policies, {0, 70}), op({70, 100}), kernel({70, 95})},
                    .on_accelerator = true};
  Division const found = divided(trace);
  CHECK(judge(found, true) == Bound::host);
  CHECK(found.policies == doctest::Approx(0.7));
  CHECK(advice_for(Bound::host, found, true).find("less often") != std::string::npos);
  Division elsewhere = found;
  elsewhere.policies = 0;
  CHECK(advice_for(Bound::host, elsewhere, true).find("item()") != std::string::npos);
}

TEST_CASE("validations are no part of a step") {
  Trace const trace{.span = {0, 100},
                    .events = {range_of(range::validation, {0, 60}), op({60, 100})}};
  Division const found = divided(trace);
  CHECK(found.step_time == 40);
  CHECK(found.busy == doctest::Approx(1));
  CHECK(judge(found, false) == Bound::compute);
}

TEST_CASE("a CPU that is busy with operators as short as their calls is launch-bound") {
  Division busy{.step_time = 100, .busy = 0.9, .host = 0.1, .short_calls = 0.7};
  CHECK(judge(busy, false) == Bound::launch);
  CHECK(judge(busy, true) == Bound::compute);
  busy.short_calls = 0.3;
  CHECK(judge(busy, false) == Bound::compute);
}

TEST_CASE("a replayed graph's wait for data is what the source has measured, within idle time") {
  Trace trace{.span = {0, 1000},
              .events = {kernel({0, 400})},
              .on_accelerator = true,
              .waited_seconds = 500e-9};
  CHECK(divided(trace).data == doctest::Approx(0.5));
  CHECK(judge(divided(trace), true) == Bound::input);
  trace.waited_seconds = 1;
  CHECK(divided(trace).data == doctest::Approx(0.6));
}

TEST_CASE("the shares of any division add up to 1") {
  Trace const trace{.span = {0, 100},
                    .events = {range_of(range::data, {0, 30}), op({20, 50}), op({45, 60}),
                               kernel({25, 35}), kernel({90, 150})},
                    .on_accelerator = true};
  Division const found = divided(trace);
  CHECK(found.busy + found.data + found.launch + found.host == doctest::Approx(1));
}

TEST_CASE("an empty window has no step time and no shares") {
  Division const found = divided({});
  CHECK(found.step_time == 0);
  CHECK(found.data == 0);
  CHECK(percent(0.374) == "37%");
}

}  // namespace frugal_test::watch_profile_bound
