// SPDX-License-Identifier: Apache-2.0
// needs: cluster
// left to clang: pipeline.cpp has the same templates
#include <doctest/doctest.h>

#include <frugal/cluster/pipeline/links.hpp>

#include "support/ranks.hpp"

#include <memory>
#include <string>
#include <vector>

namespace frugal_test::cluster_pipeline_links {

namespace fr = frugal;
namespace ranks = support::ranks;
using fr::detail::StageLinks;
using fr::detail::StageWindow;

/// What three processes throw when the last one begins another window.
std::vector<std::string> errors_of(StageWindow const& all, StageWindow const& of_last) {
  return ranks::run(3, [&](std::shared_ptr<fr::Communicator> const& with) {
    with->connect_links();
    StageLinks links(*with, at::kCPU, 3);
    for (int window = 0; window < 2; ++window) {
      links.agree(with->rank() == 2 && window == 1 ? of_last : all);
      links.settle();
    }
  });
}

TEST_CASE(
    "stages that begin one window say nothing, and another one is an error of the next stage") {
  StageWindow const window{.at = {.epoch = 1, .position = 32, .step = 9},
                           .micro_batches = 4,
                           .shapes = 11,
                           .values = 0xffffffffffffffff};
  CHECK(ranks::none(errors_of(window, window)));
  auto const check = [&](auto const& change, char const* says) {
    StageWindow other = window;
    change(other);
    auto const errors = errors_of(window, other);
    CAPTURE(errors[2]);
    CHECK(errors[2].find(says) != std::string::npos);
    CHECK(errors[0] == "");
  };
  check([](StageWindow& other) { other.at.step = 8; },
        "the processes are at different places of the run: rank 2 begins a window at epoch 1, "
        "position 32, step 8, and rank 1 at epoch 1, position 32, step 9");
  check([](StageWindow& other) { other.micro_batches = 3; },
        "the stages of a pipeline train different batches: rank 2 has 3 micro-batches, and rank 1 "
        "4");
  check([](StageWindow& other) { other.shapes = 12; },
        "rank 2 has batches of other shapes than rank 1");
  check([](StageWindow& other) { other.values = 12; },
        "rank 2 has a first batch of other values than rank 1");
}

TEST_CASE("the message of a window comes back as it was") {
  StageWindow const window{.at = {.epoch = 1, .position = 2, .step = 3},
                           .micro_batches = 4,
                           .shapes = ~0ULL,
                           .values = 1ULL << 63};
  CHECK(StageWindow::unpack(window.pack()) == window);
}

}  // namespace frugal_test::cluster_pipeline_links
