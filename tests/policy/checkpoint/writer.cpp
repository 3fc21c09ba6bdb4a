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

TEST_CASE("jobs are done one after the other, in the order in which they came") {
  std::vector<int> done;
  {
    BackgroundWriter writer([] {});
    for (int i = 0; i < 100; ++i) writer.submit([&done, i] { done.push_back(i); });
  }
  REQUIRE(done.size() == 100);
  for (int i = 0; i < 100; ++i) CHECK(done[static_cast<std::size_t>(i)] == i);
}

TEST_CASE("whoever submits does not wait for the job") {
  std::promise<void> gate;
  BackgroundWriter writer([] {});
  writer.submit([opened = gate.get_future().share()] { opened.wait(); });
  gate.set_value();  // would never be reached
  writer.wait();
}

TEST_CASE("what a job throws waits to be taken, once, and is told of at once") {
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

TEST_CASE("a job after one that failed is done all the same") {
  bool done = false;
  BackgroundWriter writer([] {});
  writer.submit([] { throw 1; });
  writer.submit([&] { done = true; });
  writer.wait();
  CHECK(done);
  CHECK(writer.take_failure());
}

TEST_CASE("destruction waits for the job under way") {
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

TEST_CASE("signals are not for the thread that writes, and the others keep theirs") {
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
