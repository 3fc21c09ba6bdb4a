// SPDX-License-Identifier: Apache-2.0
// torch-free
#include <frugal/data/loading/pool.hpp>

#include <doctest/doctest.h>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <future>
#include <memory>
#include <optional>
#include <stdexcept>
#include <thread>
#include <utility>
#include <vector>

#include <pthread.h>

namespace frugal_test::data_pool {

using frugal::detail::Pool;
using frugal::detail::WorkerProgress;
using namespace std::chrono_literals;

/// Counts to `count`, and does a deed at some of the numbers.
template <class Deed>
struct Counting {
  int count;
  Deed deed;
  std::shared_ptr<std::atomic<int>> threads = std::make_shared<std::atomic<int>>(0);
  int at = 0;

  std::optional<int> deal() { return at == count ? std::nullopt : std::optional(at++); }
  int make(int&& job, WorkerProgress& progress) const {
    progress.at = static_cast<std::uint64_t>(job);
    deed(job);
    return job;
  }
  void enter_thread() const { ++*threads; }
};
template <class Deed>
Counting(int, Deed) -> Counting<Deed>;

template <class P>
std::vector<int> rest(P& pool) {
  std::vector<int> all;
  for (;;) {
    auto taken = pool.take();
    if (taken.kind != taken.item) return all;
    all.push_back(*taken.made);
  }
}

std::vector<int> numbers(int begin, int end) {
  std::vector<int> all;
  for (; begin < end; ++begin) all.push_back(begin);
  return all;
}

auto const nothing = [](int) {};

TEST_CASE("items come in the order of their jobs, whatever the number of threads") {
  for (int const threads : {0, 1, 2, 4, 8}) {
    Pool pool(Counting{100, nothing}, threads, 4 + static_cast<std::size_t>(threads), 60s);
    CHECK(rest(pool) == numbers(0, 100));
    CHECK(pool.take().kind == frugal::detail::Taken<int>::end);
  }
}

TEST_CASE("an item that is slow keeps its place") {
  // The first item ends only when another one has been made.
  auto const made = std::make_shared<std::promise<void>>();
  auto const deed = [made, waits = made->get_future().share()](int job) {
    if (job == 0) waits.wait();
    if (job == 1) made->set_value();
  };
  Pool pool(Counting{20, deed}, 2, 6, 60s);
  CHECK(rest(pool) == numbers(0, 20));
}

/// An item that knows how many there are.
struct Counted {
  std::shared_ptr<std::atomic<int>> now;
  explicit Counted(std::shared_ptr<std::atomic<int>> count) : now(std::move(count)) { ++*now; }
  Counted(Counted&& other) noexcept : now(std::exchange(other.now, nullptr)) {}
  Counted& operator=(Counted&& other) noexcept {
    if (now) --*now;
    now = std::exchange(other.now, nullptr);
    return *this;
  }
  ~Counted() {
    if (now) --*now;
  }
};
struct Bounded {
  std::shared_ptr<std::atomic<int>> now, most;
  int left = 200;
  std::optional<int> deal() { return left == 0 ? std::nullopt : std::optional(--left); }
  Counted make(int&&, WorkerProgress&) const {
    Counted one(now);
    int const all = *now;
    int before = *most;
    while (all > before && !most->compare_exchange_weak(before, all)) {
    }
    return one;
  }
  void enter_thread() const {}
};

TEST_CASE("no more items exist than there is room for, and the one in use") {
  auto const now = std::make_shared<std::atomic<int>>(0);
  auto const most = std::make_shared<std::atomic<int>>(0);
  {
    Pool pool(Bounded{now, most}, 4, 6, 60s);
    for (int i = 0; i < 50; ++i) CHECK(pool.take().kind == 0);
    for (int i = 0; i < 20; ++i) {
      pool.seek([](Bounded& tasks) { tasks.left = 200; });
      CHECK(pool.take().kind == 0);
    }
    while (pool.take().kind == 0) {
    }
  }
  CHECK(*most <= 7);
  CHECK(*most >= 1);
  CHECK(*now == 0);
}

TEST_CASE("a seek throws away what was made ahead, and keeps the threads") {
  for (int const threads : {0, 1, 3}) {
    Counting tasks{100, nothing};
    auto const started = tasks.threads;
    Pool pool(tasks, threads, 8, 60s);
    for (int i = 0; i < 10; ++i) {
      int const to = 10 * i;
      pool.seek([to](auto& all) { all.at = to; });
      CHECK(*pool.take().made == to);
      CHECK(*pool.take().made == to + 1);
    }
    CHECK(rest(pool) == numbers(92, 100));
    pool.seek([](auto& all) { all.at = 0; });
    CHECK(rest(pool) == numbers(0, 100));
    CHECK(*started <= threads);
  }
}

TEST_CASE("a seek that throws changes nothing") {
  Pool pool(Counting{20, nothing}, 2, 4, 60s);
  CHECK(*pool.take().made == 0);
  CHECK_THROWS_AS(pool.seek([](auto&) { throw std::runtime_error("no"); }), std::runtime_error);
  CHECK(rest(pool) == numbers(1, 20));
}

TEST_CASE("what make throws comes at its item, and stays until a seek") {
  for (int const threads : {0, 1, 4}) {
    Pool pool(Counting{20,
                       [](int job) {
                         if (job == 7) throw 42;
                       }},
              threads, 8, 60s);
    CHECK(rest(pool) == numbers(0, 7));
    for (int again = 0; again < 2; ++again) {
      auto const taken = pool.take();
      REQUIRE(taken.kind == taken.failed);
      CHECK_THROWS_AS(std::rethrow_exception(taken.failure), int);
    }
    pool.seek([](auto& tasks) { tasks.at = 8; });
    CHECK(rest(pool) == numbers(8, 20));
  }
}

TEST_CASE("a thread that ends within an item is known by what it was at, and replaced at a seek") {
  Counting tasks{20, [](int job) {
                   if (job == 5) ::pthread_exit(nullptr);
                 }};
  Pool pool(tasks, 1, 4, 60s);
  CHECK(rest(pool) == numbers(0, 5));
  for (int again = 0; again < 2; ++again) {
    auto const taken = pool.take();
    REQUIRE(taken.kind == taken.died);
    CHECK(taken.at == 5);
  }
  pool.seek([](auto& all) { all.at = 6; });
  CHECK(rest(pool) == numbers(6, 20));
  CHECK(*tasks.threads == 2);
}

TEST_CASE("without the thread that ended the others go on, and the run ends at its item") {
  Pool pool(Counting{40,
                     [](int job) {
                       if (job == 30) ::pthread_exit(nullptr);
                     }},
            3, 8, 60s);
  CHECK(rest(pool) == numbers(0, 30));
  CHECK(pool.take().kind == frugal::detail::Taken<int>::died);
}

/// A deed that hangs at one number until it is let go.
struct Hanging {
  std::shared_future<void> free;
  std::shared_ptr<void> last;  // is gone when nothing of the pool is left
  void operator()(int job) const {
    if (job == 3) free.wait();
  }
};

TEST_CASE(
    "a thread that hangs is known by what it is at; it is left behind, and frees its memory") {
  std::promise<void> let_go;
  std::promise<void> gone;
  {
    Hanging hanging{let_go.get_future().share(),
                    std::shared_ptr<void>(nullptr, [&gone](void*) { gone.set_value(); })};
    Pool pool(Counting{20, std::move(hanging)}, 2, 4, 50ms);
    // A busy machine may make any item late.
    std::vector<int> all;
    auto taken = pool.take();
    while (all.size() < 3) {
      if (taken.kind == taken.item) all.push_back(*taken.made);
      taken = pool.take();
    }
    CHECK(all == numbers(0, 3));
    while (taken.at != 3) taken = pool.take();
    CHECK(taken.kind == taken.hangs);
    pool.seek([](auto& tasks) { tasks.at = 10; });
    all.clear();
    while (all.size() < 10) {
      taken = pool.take();
      if (taken.kind == taken.item) all.push_back(*taken.made);
    }
    CHECK(all == numbers(10, 20));
  }
  let_go.set_value();
  gone.get_future().wait();
}

TEST_CASE("a thread that goes on with its item, part by part, does not hang") {
  struct Parts {
    int at = 0;
    std::optional<int> deal() { return at == 1 ? std::nullopt : std::optional(at++); }
    int make(int&& job, WorkerProgress& progress) const {
      // Parts that begin as late as the clock can be read in a test: each is within the patience.
      auto const begin = std::chrono::steady_clock::now();
      progress.begin(0, false, begin + 1h);
      while (std::chrono::steady_clock::now() < begin + 30ms) std::this_thread::yield();
      return job;
    }
    void enter_thread() const {}
  };
  Pool pool(Parts{}, 1, 2, 1ms);
  auto taken = pool.take();
  // A thread may need more than the patience to begin at all.
  while (taken.kind == taken.hangs && taken.at == WorkerProgress::none) taken = pool.take();
  CHECK(taken.kind == taken.item);
}

TEST_CASE("a thread that was only slow is waited for again") {
  std::promise<void> let_go;
  Pool pool(Counting{6, Hanging{let_go.get_future().share(), nullptr}}, 1, 4, 20ms);
  std::vector<int> all;
  bool hung = false;
  while (all.size() < 6) {
    auto const taken = pool.take();
    if (taken.kind == taken.item) {
      all.push_back(*taken.made);
    } else if (!std::exchange(hung, true)) {
      CHECK(taken.kind == taken.hangs);
      let_go.set_value();
    }
  }
  CHECK(hung);
  CHECK(all == numbers(0, 6));
}

TEST_CASE("a seek while an item of before another seek is freed loses no thread") {
  struct Freed {
    std::shared_ptr<void> last;
  };
  struct Tasks {
    std::shared_future<void> go, freed_on;
    std::shared_ptr<std::promise<void>> begun = std::make_shared<std::promise<void>>();
    std::shared_ptr<std::promise<void>> freeing = std::make_shared<std::promise<void>>();
    int at = 0;
    std::optional<int> deal() { return at++; }
    Freed make(int&& job, WorkerProgress&) const {
      if (job != 0) return {};
      begun->set_value();
      go.wait();
      return {std::shared_ptr<void>(nullptr, [this](void*) {
        freeing->set_value();
        freed_on.wait();
      })};
    }
    void enter_thread() const {}
  };
  std::promise<void> go;
  std::promise<void> freed_on;
  Tasks tasks{go.get_future().share(), freed_on.get_future().share()};
  auto begun = tasks.begun->get_future();
  auto freeing = tasks.freeing->get_future();
  Pool pool(std::move(tasks), 1, 1, 60s);
  auto const to_one = [](Tasks& all) { all.at = 1; };
  pool.seek([](Tasks& all) { all.at = 0; });
  begun.wait();
  pool.seek(to_one);
  go.set_value();
  freeing.wait();
  pool.seek(to_one);
  freed_on.set_value();
  CHECK(pool.take().kind == 0);
  CHECK(pool.take().kind == 0);
}

TEST_CASE("threads that hang for ever take no room from the others") {
  std::promise<void> let_go;
  Pool pool(Counting{8, Hanging{let_go.get_future().share(), nullptr}}, 1, 2, 20ms);
  for (int again = 0; again < 5; ++again) {
    pool.seek([](auto& tasks) { tasks.at = 3; });
    while (pool.take().at != 3) {
    }
  }
  pool.seek([](auto& tasks) { tasks.at = 4; });
  std::vector<int> all;
  while (all.size() < 4) {
    auto const taken = pool.take();
    if (taken.kind == taken.item) all.push_back(*taken.made);
  }
  CHECK(all == numbers(4, 8));
  let_go.set_value();
}

TEST_CASE("while it is paused nothing is made, and nothing is lost") {
  auto const still = std::make_shared<std::atomic<bool>>(false);
  auto const disturbed = std::make_shared<std::atomic<int>>(0);
  Pool pool(Counting{300, [=](int) { *disturbed += still->load(); }}, 3, 6, 60s);
  std::vector<int> all;
  for (auto taken = pool.take(); taken.kind == taken.item; taken = pool.take()) {
    all.push_back(*taken.made);
    CHECK(pool.pause());
    *still = true;
    *still = false;
    pool.resume();
  }
  CHECK(all == numbers(0, 300));
  CHECK(*disturbed == 0);
}

TEST_CASE("a thread that does not hold still within the patience is reported") {
  std::promise<void> let_go;
  Pool pool(Counting{6, Hanging{let_go.get_future().share(), nullptr}}, 1, 8, 20ms);
  for (int given = 0; given < 3;) given += pool.take().kind == 0;
  while (pool.take().kind != frugal::detail::Taken<int>::hangs) {
  }
  CHECK_FALSE(pool.pause());
  let_go.set_value();
  pool.resume();
}

TEST_CASE("where all threads hang since before a seek, it is said at what") {
  std::promise<void> let_go;
  auto const begun = std::make_shared<std::promise<void>>();
  Pool pool(Counting{8,
                     [begun, free = let_go.get_future().share()](int job) {
                       if (job != 3) return;
                       begun->set_value();
                       free.wait();
                     }},
            1, 4, 50ms);
  for (int given = 0; given < 3;) given += pool.take().kind == 0;
  begun->get_future().wait();
  pool.seek([](auto& tasks) { tasks.at = 4; });  // nobody has waited for number 3
  auto const taken = pool.take();
  CHECK(taken.kind == taken.hangs);
  CHECK(taken.at == 3);
  let_go.set_value();
}

TEST_CASE("a thread whose set-up throws is an error, and not the end of the program") {
  struct Unready : Counting<decltype(nothing)> {
    std::shared_ptr<std::atomic<bool>> ready;
    void enter_thread() const {
      if (!*ready) throw std::runtime_error("Invalid thread pool!");
    }
  };
  auto const ready = std::make_shared<std::atomic<bool>>(false);
  Unready tasks{{5, nothing}, ready};
  Pool pool(std::move(tasks), 2, 4, 60s);
  for (int again = 0; again < 2; ++again) {
    auto const taken = pool.take();
    REQUIRE(taken.kind == taken.unstarted);
    CHECK_THROWS_WITH(std::rethrow_exception(taken.failure), "Invalid thread pool!");
  }
  *ready = true;
  std::vector<int> all;
  while (all.size() < 5) {  // the second thread may have failed before
    auto const taken = pool.take();
    if (taken.kind == taken.item) all.push_back(*taken.made);
  }
  CHECK(all == numbers(0, 5));
}

TEST_CASE("a thread that cannot be started is an error, and is tried again") {
  pthread_attr_t before, huge;
  REQUIRE(::pthread_getattr_default_np(&before) == 0);
  REQUIRE(::pthread_attr_init(&huge) == 0);
  REQUIRE(::pthread_attr_setstacksize(&huge, std::size_t{1} << 47) == 0);
  Pool pool(Counting{20, nothing}, 2, 4, 60s);
  REQUIRE(::pthread_setattr_default_np(&huge) == 0);
  CHECK_THROWS_AS(pool.take(), frugal::WorkerError);
  CHECK_THROWS_AS(pool.seek([](auto& tasks) { tasks.at = 5; }), frugal::WorkerError);
  REQUIRE(::pthread_setattr_default_np(&before) == 0);
  CHECK(rest(pool) == numbers(5, 20));
  ::pthread_attr_destroy(&huge);
  ::pthread_attr_destroy(&before);
}

}  // namespace frugal_test::data_pool
