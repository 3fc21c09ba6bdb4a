// SPDX-License-Identifier: Apache-2.0
// torch-free
#include <doctest/doctest.h>

#include <frugal/core/libtorch/capture_attempt.hpp>

#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

namespace frugal_test::libtorch_capture_attempt {

/// LibTorch's bookkeeping of a memory pool, as in its source.
struct Pool {
  int uses = 0;
  bool routed = false;  ///< allocations go into the pool
  std::vector<std::string> asked{};
};

enum class Fails { nowhere, at_begin, in_body, at_end };

/// A graph of LibTorch 2.11, or of a later version, which always releases its pool.
template <bool later>
class FakeGraph {
 public:
  FakeGraph(Pool& pool, Fails fails) : pool_(pool), fails_(fails) {}
  ~FakeGraph() {
    if (ended_ || (later && holds_)) {
      pool_.routed = pool_.routed && !later;
      --pool_.uses;
    }
  }
  void begin() {
    pool_.asked.push_back("begin");
    if (fails_ == Fails::at_begin) throw std::runtime_error("begin");
    ++pool_.uses;
    pool_.routed = holds_ = true;
  }
  void end() {
    pool_.asked.push_back("end");
    if (!holds_ || fails_ == Fails::at_end) throw std::runtime_error("end");
    pool_.routed = false;
    ended_ = true;
  }

 private:
  Pool& pool_;
  Fails fails_;
  bool holds_ = false;
  bool ended_ = false;
};

struct Pools {
  Pool* pool;
  void free_cached() const { pool->asked.push_back("free cached"); }
  int uses() const { return pool->uses; }
  void end() const { pool->routed = false; }
  void release() const { --pool->uses; }
};

template <bool later>
void leaves_nothing(Fails fails, std::string const& error) {
  CAPTURE(later);
  CAPTURE(static_cast<int>(fails));
  for (int const held : {0, 2}) {  // by earlier captures of the same step
    Pool pool{.uses = held};
    auto const body = [&] {
      if (fails == Fails::in_body) throw std::runtime_error("body");
    };
    CHECK_THROWS_WITH_AS(frugal::detail::attempt_capture(
                             std::make_unique<FakeGraph<later>>(pool, fails), Pools{&pool}, body),
                         error.c_str(), std::runtime_error);
    CHECK(pool.uses == held);
    CHECK_FALSE(pool.routed);
  }
}

TEST_CASE_TEMPLATE("a failed capture does not change its pool, and throws its own error", Later,
                   std::false_type, std::true_type) {
  leaves_nothing<Later::value>(Fails::at_begin, "begin");
  leaves_nothing<Later::value>(Fails::in_body, "body");
  leaves_nothing<Later::value>(Fails::at_end, "end");
}

TEST_CASE("a successful capture holds its pool for the lifetime of its graph") {
  Pool pool;
  {
    auto const graph = frugal::detail::attempt_capture(
        std::make_unique<FakeGraph<false>>(pool, Fails::nowhere), Pools{&pool}, [] {});
    CHECK(pool.uses == 1);
  }
  CHECK(pool.uses == 0);
}

TEST_CASE("cached memory is freed before the capture begins, while it still can be") {
  Pool pool;
  frugal::detail::attempt_capture(std::make_unique<FakeGraph<false>>(pool, Fails::nowhere),
                                  Pools{&pool}, [&] { pool.asked.push_back("body"); });
  CHECK((pool.asked == std::vector<std::string>{"free cached", "begin", "body", "end"}));
}

}  // namespace frugal_test::libtorch_capture_attempt
