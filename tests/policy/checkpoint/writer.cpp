// SPDX-License-Identifier: Apache-2.0
// torch-free
#include <doctest/doctest.h>

#include <frugal/policy/checkpoint/writer.hpp>

#include <pthread.h>
#include <signal.h>

#include <atomic>
#include <future>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

namespace frugal_test::checkpoint_writer {

using frugal::detail::BackgroundWriter;

TEST_CASE("jobs run one after the other, in the order of submission") {
  std::vector<int> done;
  {
    BackgroundWriter writer([] {});
    for (int i = 0; i < 100; ++i) writer.submit([&done, i] { done.push_back(i); });
  }
  REQUIRE(done.size() == 100);
  for (int i = 0; i < 100; ++i) CHECK(done[static_cast<std::size_t>(i)] == i);
}

TEST_CASE("submitting does not wait for the job") {
  std::promise<void> gate;
  BackgroundWriter writer([] {});
  writer.submit([opened = gate.get_future().share()] { opened.wait(); });
  gate.set_value();  // would never be reached
  writer.wait();
}

TEST_CASE("a job's exception is kept to be taken, once, and reported at once") {
  std::atomic<int> told{0};
  BackgroundWriter writer([&] { ++told; });
  writer.submit([] { throw std::runtime_error("no space"); });
  writer.wait();
  CHECK(told == 1);
  std::exception_ptr const failure = writer.take_failure();
  REQUIRE(failure);
  CHECK_THROWS_WITH(std::rethrow_exception(failure), "no space");
  CHECK_FALSE(writer.take_failure());
}

TEST_CASE("a job after a failed one runs too") {
  bool done = false;
  BackgroundWriter writer([] {});
  writer.submit([] { throw 1; });
  writer.submit([&] { done = true; });
  writer.wait();
  CHECK(done);
  CHECK(writer.take_failure());
}

TEST_CASE("destruction waits for the running job") {
  std::promise<void> begun;
  std::promise<void> gate;
  std::atomic<bool> done{false};
  auto writer = std::make_unique<BackgroundWriter>([] {});
  writer->submit([&] {
    begun.set_value();
    gate.get_future().wait();
    done = true;
  });
  begun.get_future().wait();
  auto destruction = std::async(std::launch::async, [&] { writer.reset(); });
  gate.set_value();
  destruction.get();
  CHECK(done);
}

TEST_CASE("the writing thread takes no signals, and the others still do") {
  sigset_t in_writer;
  sigset_t here;
  BackgroundWriter writer([] {});
  writer.submit([&] { ::pthread_sigmask(SIG_BLOCK, nullptr, &in_writer); });
  writer.wait();
  ::pthread_sigmask(SIG_BLOCK, nullptr, &here);
  CHECK(::sigismember(&in_writer, SIGTERM) == 1);
  CHECK(::sigismember(&here, SIGTERM) == 0);
}

}  // namespace frugal_test::checkpoint_writer
