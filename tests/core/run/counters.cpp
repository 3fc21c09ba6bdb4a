// SPDX-License-Identifier: Apache-2.0
// torch-free
#include <doctest/doctest.h>

#include <frugal/core/run/counters.hpp>

#include <cstdint>
#include <string>
#include <vector>

namespace frugal_test::run_counters {

using namespace frugal;

// Steps at which a cadence is due, for windows with these micro-batches, samples and tokens.
struct Window {
  std::uint64_t micro_batches, samples, tokens;
};
template <class Cadence>
std::vector<std::uint64_t> due(std::vector<Window> const& windows) {
  std::vector<std::uint64_t> steps;
  Counters now;
  for (Window const& window : windows) {
    ++now.step;
    now.micro_batch += now.window_micro_batches = window.micro_batches;
    now.sample += now.window_samples = window.samples;
    now.token += now.window_tokens = window.tokens;
    if (Cadence{}.due_at_step(now)) steps.push_back(now.step);
  }
  return steps;
}
using Steps = std::vector<std::uint64_t>;

TEST_CASE("every N steps means the N-th, and every one of its multiples") {
  std::vector<Window> const seven(7, {1, 1, 1});
  CHECK(due<Every<1>>(seven) == Steps{1, 2, 3, 4, 5, 6, 7});
  CHECK(due<Every<3>>(seven) == Steps{3, 6});
  CHECK(due<Every<8>>(seven).empty());
}

TEST_CASE("micro-batches are due at the step that reaches or passes a multiple") {
  std::vector<Window> const windows{{4, 0, 0}, {4, 0, 0}, {1, 0, 0}, {4, 0, 0}, {4, 0, 0}};
  CHECK(due<Every<4, MicroBatch>>(windows) == Steps{1, 2, 4, 5});
  CHECK(due<Every<6, MicroBatch>>(windows) == Steps{2, 4});
}

TEST_CASE("samples of ragged windows are due once for each crossing, and once for two") {
  std::vector<Window> const windows{{1, 32, 0}, {1, 32, 0}, {1, 7, 0}, {1, 29, 0}, {1, 250, 0}};
  CHECK(due<Every<100, Sample>>(windows) == Steps{4, 5});
  CHECK(due<Every<71, Sample>>(windows) == Steps{3, 5});
}

TEST_CASE("tokens are counted by themselves") {
  std::vector<Window> const windows{{1, 1, 900}, {1, 1, 90}, {1, 1, 10}, {1, 1, 999}, {1, 1, 1}};
  CHECK(due<Every<1000, Token>>(windows) == Steps{3, 5});
}

TEST_CASE("a window without samples crosses nothing") {
  CHECK(due<Every<1, Sample>>({{1, 0, 0}, {1, 1, 0}, {1, 0, 0}}) == Steps{2});
}

TEST_CASE("a cadence of epochs is due at the end of epochs and at no step") {
  Counters now;
  now.step = 6;
  CHECK_FALSE(Every<1, Epoch>{}.due_at_step(now));
  now.epoch = 1;
  CHECK(Every<1, Epoch>{}.due_at_epoch_end(now));
  CHECK_FALSE(Every<2, Epoch>{}.due_at_epoch_end(now));
  now.epoch = 4;
  CHECK(Every<2, Epoch>{}.due_at_epoch_end(now));
}

TEST_CASE("other cadences are due at no epoch's end") {
  Counters now;
  now.step = 10;
  now.epoch = 1;
  CHECK_FALSE(Every<10>{}.due_at_epoch_end(now));
  CHECK_FALSE(Every<1, Sample>{}.due_at_epoch_end(now));
}

struct Names {
  std::vector<std::string> seen{};
  void operator()(std::string const& name, std::uint64_t& value) {
    seen.push_back(name);
    value = seen.size();
  }
};

TEST_CASE("all counts survive a resume, including the last window's") {
  Counters counters;
  counters.window_samples = 9;
  Names archive;
  counters.persist(archive);
  CHECK(archive.seen == std::vector<std::string>{"epoch", "position", "step", "micro_batch",
                                                 "sample", "token", "skipped",
                                                 "window_micro_batches", "window_samples",
                                                 "window_tokens", "window_skipped", "passed_over"});
  CHECK(counters.epoch == 1);
  CHECK(counters.token == 6);
  CHECK(counters.non_finite_windows == 7);
  CHECK(counters.window_samples == 9);
}

}  // namespace frugal_test::run_counters
