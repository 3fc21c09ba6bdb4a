// SPDX-License-Identifier: Apache-2.0
#include <frugal/data/loading/operator_threads.hpp>

#include <doctest/doctest.h>

#include <ATen/Parallel.h>

#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <exception>
#include <thread>
#include <vector>

namespace frugal_test::data_operator_threads {

TEST_CASE("several threads of a forked process are set up at once") {
  int const before = at::get_num_threads();
  at::set_num_threads(2);  // a thread that is set up tells the pool, which a fork leaves broken
  int failed = 0;
  for (int i = 0; i < 30; ++i) {
    pid_t const child = ::fork();
    if (child == 0) {
      std::atomic<int> waiting{8};
      std::atomic<int> thrown{0};
      std::vector<std::thread> threads;
      for (int t = 0; t < 8; ++t) {
        threads.emplace_back([&] {
          --waiting;
          while (waiting != 0) std::this_thread::yield();
          try {
            frugal::detail::limit_operator_threads(1);
          } catch (std::exception const&) {
            ++thrown;
          }
        });
      }
      for (std::thread& each : threads) each.join();
      ::_exit(thrown);
    }
    int status = -1;
    ::waitpid(child, &status, 0);
    failed += status == 0 ? 0 : 1;
  }
  at::set_num_threads(before);
  CHECK(failed == 0);
}

}  // namespace frugal_test::data_operator_threads
