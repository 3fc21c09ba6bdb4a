// SPDX-License-Identifier: Apache-2.0
// torch-free
#include <doctest/doctest.h>

#include <frugal/data/loading/worker.hpp>

#include <pthread.h>
#include <signal.h>

#include <atomic>
#include <chrono>
#include <exception>
#include <future>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

namespace frugal_test::data_worker {

using frugal::PrefetchOptions;
using frugal::Worker;
using frugal::WorkerError;
using namespace std::chrono_literals;

/// Produces 0, 1, ..., end - 1.
auto counter(int end) {
  return [next = 0, end]() mutable -> std::optional<int> {
    if (next == end) return std::nullopt;
    return next++;
  };
}

template <class T>
std::vector<T> all(Worker<T>& worker) {
  std::vector<T> out;
  while (auto item = worker.next()) out.push_back(std::move(*item));
  return out;
}

std::string message_of(Worker<int>& worker) {
  try {
    worker.next();
  } catch (WorkerError const& error) {
    return error.what();
  }
  return "nothing was thrown";
}

TEST_CASE("a worker's thread receives none of the signals that stop a run") {
  Worker<bool> worker(
      []() -> std::optional<bool> {
        sigset_t mask;
        sigemptyset(&mask);
        pthread_sigmask(SIG_BLOCK, nullptr, &mask);
        return sigismember(&mask, SIGTERM) == 1 && sigismember(&mask, SIGUSR1) == 1 &&
               sigismember(&mask, SIGINT) == 1;
      },
      {.depth = 1}, "x");
  CHECK(worker.next() == true);
}

TEST_CASE("a worker's error has the configured text for the exception") {
  Worker<int> worker([]() -> std::optional<int> { throw std::runtime_error("long"); }, {}, "x",
                     [](std::exception const&) { return std::string("short"); });
  CHECK(message_of(worker).find(": short. ") != std::string::npos);
}

TEST_CASE("a worker gives the items of its source in order, at every depth") {
  for (std::size_t const depth : {1U, 2U, 4U, 100U}) {
    Worker<int> worker(counter(500), {.depth = depth}, "the start");
    auto const items = all(worker);
    REQUIRE(items.size() == 500);
    for (int i = 0; i < 500; ++i) CHECK(items[static_cast<std::size_t>(i)] == i);
    CHECK_FALSE(worker.next().has_value());
  }
}

TEST_CASE("a worker takes move-only items") {
  Worker<std::unique_ptr<int>> worker(
      [n = 0]() mutable -> std::optional<std::unique_ptr<int>> {
        if (n == 3) return std::nullopt;
        return std::make_unique<int>(n++);
      },
      {}, "the start");
  auto const items = all(worker);
  REQUIRE(items.size() == 3);
  CHECK(*items[2] == 2);
}

TEST_CASE("a worker runs at most its depth and one item ahead") {
  std::atomic<int> made{0};
  std::promise<void> fifth;
  Worker<int> worker(
      [&]() -> std::optional<int> {
        int const n = ++made;
        if (n == 5) fifth.set_value();
        return n;
      },
      {.depth = 4}, "the start");
  fifth.get_future().wait();  // four wait in the queue, the fifth for room in it
  CHECK(made == 5);
  CHECK(worker.next() == 1);
  CHECK(worker.stop());
  CHECK(made <= 6);
}

TEST_CASE("destroying a worker ends one that waits for space") {
  auto const alive = std::make_shared<int>(0);
  {
    Worker<int> worker([alive]() -> std::optional<int> { return 1; }, {.depth = 1}, "the start");
  }
  CHECK(alive.use_count() == 1);
}

TEST_CASE("a paused worker produces nothing until resumed, and loses nothing") {
  std::atomic<int> made{0};
  Worker<int> worker([&]() -> std::optional<int> { return ++made; }, {.depth = 2}, "the start");
  for (int i = 1; i <= 300; ++i) {
    CHECK(worker.next() == i);
    REQUIRE(worker.pause());
    int const before = made;
    std::this_thread::yield();
    CHECK(made == before);
    worker.resume();
  }
}

TEST_CASE("a worker that throws gives earlier items, then a WorkerError at that very batch") {
  Worker<int> worker(
      [n = 0]() mutable -> std::optional<int> {
        if (n == 3) throw std::runtime_error("disk on fire");
        return n++;
      },
      {.depth = 8}, "sample 640 of epoch 2");
  for (int i = 0; i < 3; ++i) CHECK(worker.next() == i);
  CHECK(message_of(worker) ==
        "frugal: the background worker failed (batch 3 after sample 640 of epoch 2): disk on "
        "fire. Run the source without Prefetch to see it fail in place.");
}

TEST_CASE("the original exception is nested in the WorkerError, and stays for later calls") {
  Worker<int> worker([]() -> std::optional<int> { throw std::out_of_range("index 7"); }, {},
                     "the start");
  for (int i = 0; i < 2; ++i) {
    try {
      worker.next();
      FAIL("nothing was thrown");
    } catch (WorkerError const& error) {
      CHECK_THROWS_WITH_AS(std::rethrow_if_nested(error), "index 7", std::out_of_range);
    }
  }
}

TEST_CASE("a thrown value that is not a std::exception is reported with its type and nested") {
  Worker<int> worker([]() -> std::optional<int> { throw 42; }, {}, "the start");
  try {
    worker.next();
    FAIL("nothing was thrown");
  } catch (WorkerError const& error) {
    CHECK(error.fault().why.starts_with("it threw a value of type "));
#if __has_include(<cxxabi.h>)
    CHECK(error.fault().why == "it threw a value of type int");
#endif
    CHECK_THROWS_AS(std::rethrow_if_nested(error), int);
  }
}

/// A producer that returns two items and then hangs until released; the state that it shares with
/// the test outlives both.
struct Hanging {
  std::shared_ptr<std::promise<void>> let_go = std::make_shared<std::promise<void>>();
  std::shared_ptr<std::promise<void>> gone = std::make_shared<std::promise<void>>();

  auto produce() const {
    // Destroyed when the thread frees its state, which it does last.
    std::shared_ptr<void> const last(nullptr, [gone = gone](void*) { gone->set_value(); });
    return [n = 0, free = let_go->get_future().share(), last]() mutable -> std::optional<int> {
      if (n == 2) free.wait();
      return n++;
    };
  }
};

TEST_CASE("a worker that hangs ends in a WorkerError that names the time and the batch") {
  Hanging hanging;
  Worker<int> worker(hanging.produce(), {.patience = 50ms}, "the start");
  CHECK(worker.next() == 0);
  CHECK(worker.next() == 1);
  CHECK(message_of(worker) ==
        "frugal: the background worker hangs (batch 2 after the start): no batch came for 0.05 s. "
        "Find what the source waits for, or raise PrefetchOptions::patience.");
  hanging.let_go->set_value();
}

TEST_CASE("a worker that hung and recovered gives its item at the next call") {
  Hanging hanging;
  Worker<int> worker(hanging.produce(), {.patience = 50ms}, "the start");
  worker.next();
  worker.next();
  CHECK_THROWS_AS(worker.next(), WorkerError);
  hanging.let_go->set_value();
  std::optional<int> item;
  while (!item) {
    try {
      item = worker.next();
    } catch (WorkerError const&) {  // a slow machine: wait again
    }
  }
  CHECK(item == 2);
}

TEST_CASE("destroying a hanging worker returns, and its thread's state outlives it") {
  Hanging hanging;
  auto gone = hanging.gone->get_future();
  {
    Worker<int> worker(hanging.produce(), {.patience = 50ms}, "the start");
    worker.next();
    worker.next();
    CHECK_THROWS_AS(worker.next(), WorkerError);
    CHECK_FALSE(worker.stop());
    CHECK_FALSE(worker.stop());
  }
  CHECK(gone.wait_for(0s) == std::future_status::timeout);
  hanging.let_go->set_value();
  gone.wait();  // it returned, used its own queue, and freed its state
}

TEST_CASE("a depth of 0 and a patience that is not positive are refused") {
  CHECK_THROWS_AS(Worker<int>(counter(1), {.depth = 0}, "x"), frugal::SettingsError);
  CHECK_THROWS_AS(Worker<int>(counter(1), {.patience = 0s}, "x"), frugal::SettingsError);
  CHECK_THROWS_AS(Worker<int>(counter(1), {.patience = -1s}, "x"), frugal::SettingsError);
}

TEST_CASE("a patience beyond the clock's range waits for ever instead of not at all") {
  Worker<int> worker(counter(3), {.patience = std::chrono::duration<double>(1e300)}, "x");
  CHECK(all(worker).size() == 3);
}

TEST_CASE("many workers made and dropped at once leak nothing") {
  auto const alive = std::make_shared<int>(0);
  for (int i = 0; i < 200; ++i) {
    Worker<int> worker([alive, n = 0]() mutable -> std::optional<int> { return n++; }, {.depth = 2},
                       "x");
    if (i % 2 == 0) CHECK(worker.next() == 0);
  }
  CHECK(alive.use_count() == 1);
}

TEST_CASE("a thread that ends within an item ends the items, and not the program") {
  Worker<int> worker(
      [next = 0]() mutable -> std::optional<int> {
        if (next == 2) ::pthread_exit(nullptr);
        return next++;
      },
      {.depth = 4}, "x");
  CHECK(worker.next() == 0);
  CHECK(worker.next() == 1);
  for (int again = 0; again < 2; ++again) {
    CHECK(message_of(worker).find("its thread was ended from within") != std::string::npos);
  }
  CHECK(worker.stop());
}

}  // namespace frugal_test::data_worker
