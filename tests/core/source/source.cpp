// SPDX-License-Identifier: Apache-2.0
// Sources whose batches stand for other numbers of samples than they hold.
#include <doctest/doctest.h>

#include <frugal/core/source/source.hpp>
#include <frugal/data/loading/prefetch.hpp>
#include <frugal/data/mapped.hpp>
#include <frugal/policy/accumulate.hpp>
#include <frugal/policy/accumulate/split.hpp>
#include <frugal/policy/optimize.hpp>
#include <frugal/trainer.hpp>

#include "core/loop/stand_ins.hpp"

#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

namespace frugal_test::data_source {

using namespace frugal_test::loop;

/// Each batch holds 3 samples and stands for 5: the others are damaged, or of another rank.
struct Partial {
  std::uint64_t count = 7;  ///< batches
  std::vector<Cursor> sought{};
  std::uint64_t at = 0;

  void seek(Cursor const& cursor) {
    sought.push_back(cursor);
    at = cursor.position;
  }
  std::optional<Batch> next() {
    if (at == 5 * count) return std::nullopt;
    at += 5;
    return batch_of_size(3, at);
  }
  std::uint64_t consumed() const { return at; }
};
static_assert(ConsumingSource<Partial> && !ConsumingSource<Stream>);
static_assert(std::is_empty_v<frugal::detail::ConsumedAt<Stream>>);

/// Keeps the counters of every step, and skips some windows.
struct Watched {
  struct kind : optional_kind {
    static constexpr std::string_view name = "consumed.Watched";
  };
  using listens = list<on::window, on::step>;

  std::vector<Counters>* seen = nullptr;
  std::uint64_t skips_at = 1000;  ///< position

  class State {
   public:
    using transient = void;
    explicit State(Watched const& settings) : seen_(settings.seen), skips_at_(settings.skips_at) {}
    flow on_window(WindowBegin& phase) {
      if (phase.counters().position == skips_at_) phase.skip();
      return flow::proceed;
    }
    void on_step(Step& phase) { seen_->push_back(phase.counters()); }

   private:
    std::vector<Counters>* seen_;
    std::uint64_t skips_at_;
  };
};

using Sgd = Optimize<SGD>;

template <class... Ps>
std::vector<Counters> steps_of(Partial& source, Settings const& settings, Ps const&... policies) {
  std::vector<Counters> seen;
  Trainer trainer(std::make_shared<Net>(), CrossEntropy{}, settings, Sgd{.lr = 0.1},
                  Watched{.seen = &seen}, policies...);
  static_cast<void>(trainer.fit(source));
  return seen;
}

TEST_CASE(
    "the position is what the source has consumed, and the samples are those of the batches") {
  Partial source;
  auto const seen = steps_of(source, {.epochs = 1});
  REQUIRE(seen.size() == 7);
  for (std::uint64_t i = 0; i < 7; ++i) {
    CHECK(seen[i].position == 5 * (i + 1));
    CHECK(seen[i].sample == 3 * (i + 1));
    CHECK(seen[i].window_samples == 3);
  }
}

TEST_CASE("a window of several batches ends where the source is, the ragged one too") {
  Partial source;
  auto const seen = steps_of(source, {.epochs = 1}, Accumulate<3>{});
  REQUIRE(seen.size() == 3);
  CHECK(seen[0].position == 15);
  CHECK(seen[1].position == 30);
  CHECK(seen[2].position == 35);
}

TEST_CASE("a batch that memory may split moves the position once") {
  Partial source;
  auto const seen = steps_of(source, {.epochs = 1}, Accumulate<Auto>{});
  REQUIRE(seen.size() == 7);
  CHECK(seen[0].position == 5);
  CHECK(seen[6].position == 35);
}

TEST_CASE("a skipped window moves the position as far as the source") {
  Partial source;
  std::vector<Counters> seen;
  Trainer trainer(std::make_shared<Net>(), CrossEntropy{}, Settings{.epochs = 1}, Sgd{.lr = 0.1},
                  Watched{.seen = &seen, .skips_at = 10});
  static_cast<void>(trainer.fit(source));
  REQUIRE(seen.size() == 6);
  CHECK(seen[1].position == 10);
  CHECK(seen[2].position == 20);
}

TEST_CASE("a mapped and a prefetched source report what was given, not what was read ahead") {
  auto const same_batch = [](Batch batch) { return batch; };
  Mapped mapped(Partial{}, same_batch);
  Prefetch prefetched(Mapped(Partial{}, same_batch), {.depth = 4});
  static_assert(!ConsumingSource<Prefetch<Stream>> &&
                !ConsumingSource<Mapped<Stream, decltype(same_batch)>>);
  auto const follows = [](auto& source) {
    source.seek({.position = 10});
    CHECK(source.consumed() == 10);
    for (std::uint64_t i = 1; i <= 5; ++i) {
      CHECK(source.next().has_value());
      CHECK(source.consumed() == 10 + 5 * i);
    }
    CHECK_FALSE(source.next().has_value());
    CHECK(source.consumed() == 35);
    source.seek({.position = 5});
    CHECK(source.consumed() == 5);
  };
  follows(mapped);
  follows(prefetched);
}

/// Knows its size, and seeks anywhere.
struct Sized : Stream {
  std::uint64_t samples() const { return 40; }
  std::uint64_t batches() const { return 10; }
};

TEST_CASE("a cursor behind the last sample is refused where a source knows how many there are") {
  using frugal::detail::require_in_epoch;
  require_in_epoch(Sized{}, {.position = 40});
  CHECK_THROWS_AS(require_in_epoch(Sized{}, {.position = 41}), StateError);
  CHECK_THROWS_AS(require_in_epoch(Sized{}, {.position = static_cast<std::uint64_t>(-4)}),
                  StateError);
  require_in_epoch(Stream{}, {.position = 41});
}

}  // namespace frugal_test::data_source
