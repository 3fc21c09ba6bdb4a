// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/frugal.hpp>

#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

namespace frugal_test::support {

/// Asks one rank for a preemption during a step, as a notice to its machine would.
struct Notice {
  struct kind : frugal::optional_kind {
    static constexpr std::string_view name = "test.Notice";
  };
  using listens = frugal::list<frugal::query::stop_requested>;
  using properties = frugal::list<frugal::property::knows_ranks, frugal::property::knows_stages,
                                  frugal::property::reads_no_weights>;

  std::uint64_t step = 0;  ///< after which; 0: none

  /// That of the rank FRUGAL_TEST_NOTICE_RANK after step FRUGAL_TEST_NOTICE.
  static Notice of_environment() {
    char const* const rank = std::getenv("RANK");
    bool const here =
        std::string(rank == nullptr ? "0" : rank) == std::getenv("FRUGAL_TEST_NOTICE_RANK");
    return {.step = here ? std::stoull(std::getenv("FRUGAL_TEST_NOTICE")) : 0};
  }
  /// Variables for these, and `more`.
  static std::vector<std::string> environment(int rank, int step, std::vector<std::string> more) {
    more.push_back("FRUGAL_TEST_NOTICE_RANK=" + std::to_string(rank));
    more.push_back("FRUGAL_TEST_NOTICE=" + std::to_string(step));
    return more;
  }

  struct State {
    using transient = void;
    explicit State(Notice const& notice) : step(notice.step) {}
    bool stop_requested(frugal::Phase const& phase) const {
      return step != 0 && phase.counters().step + 1 >= step;
    }
    std::uint64_t step;
  };
};

}  // namespace frugal_test::support
