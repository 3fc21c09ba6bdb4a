// SPDX-License-Identifier: Apache-2.0
// Whether a set or a source gives every sample of an epoch exactly once, however the run is killed
// and resumed. For a new set write a case and add it to the list of matrix.cpp, or call
// `check_set<Case>()` in a test of its own:
//
//     struct Case {
//       static auto set();                                  // a SampleSet of 20 samples or more
//       static std::int64_t id(Sample const& sample);       // its number in the set
//     };
#pragma once

#include <doctest/doctest.h>

#include <frugal/core/source/source.hpp>
#include <frugal/data/loading/loader.hpp>
#include <frugal/data/sampling/buckets.hpp>
#include <frugal/data/sampling/order.hpp>
#include <frugal/data/sampling/pass.hpp>
#include <frugal/data/shards/shard_order.hpp>

#include <ATen/ATen.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace frugal_test::exactly_once {

using Ids = std::vector<std::int64_t>;

/// The stretch of a run between two kills.
struct Life {
  int batches;  ///< consumed before the kill, by each rank; -1: to the end of the epoch
  std::int64_t batch = 8;
  int world = 1;
};
using Run = std::vector<Life>;

/// Kills at the beginning, in the middle, before the last batch, behind it, twice, three times; and
/// resumes with another batch size, so that the position is within a batch.
inline std::vector<Run> const runs{
    {{-1}},
    {{0}, {-1}},
    {{1}, {-1}},
    {{3}, {2}, {-1}},
    {{1}, {0}, {1}, {-1}},
    {{100}, {-1}},
    {{2, 7}, {1, 11}, {1, 5}, {-1, 8}},
};
/// The same with another world size after each kill. Positions leave a last batch with a sample for
/// each rank.
inline std::vector<Run> const runs_of_changing_worlds{
    {{1, 8, 1}, {2, 8, 3}, {-1, 8, 2}},
    {{1, 12, 4}, {1, 12, 1}, {-1, 6, 4}},
    {{2, 5, 2}, {1, 9, 4}, {-1, 7, 3}},
};

/// The same run on another number of ranks.
inline Run on(int world, Run run) {
  for (Life& life : run) life.world = world;
  return run;
}

inline std::string text_of(Run const& run) {
  std::string text;
  for (Life const& life : run) {
    text += std::to_string(life.batches) + " batches of " + std::to_string(life.batch) + " on " +
            std::to_string(life.world) + "; ";
  }
  return text;
}

struct Outcome {
  Ids ids;  ///< in the order of batches, and of ranks within them
  std::string wrong{};
};

/// Runs an epoch with its kills. `make(life, rank)` gives the source of a rank, `ids(batch)` the
/// samples of a batch.
template <class Make, class IdsOf>
Outcome outcome_of(Run const& run, frugal::Cursor cursor, Make&& make, IdsOf&& ids) {
  Outcome outcome;
  for (Life const& life : run) {
    using Source = decltype(make(life, 0));
    std::vector<Source> ranks;
    ranks.reserve(static_cast<std::size_t>(life.world));
    for (int rank = 0; rank < life.world; ++rank) {
      ranks.push_back(make(life, rank));
      ranks.back().seek(cursor);
    }
    for (int step = 0; step != life.batches; ++step) {
      int ended = 0;
      std::uint64_t position = cursor.position;
      for (std::size_t rank = 0; rank < ranks.size(); ++rank) {
        auto batch = ranks[rank].next();
        if (!batch) {
          ++ended;
          continue;
        }
        Ids const mine = ids(*batch);
        outcome.ids.insert(outcome.ids.end(), mine.begin(), mine.end());
        if constexpr (frugal::ConsumingSource<Source>) {
          std::uint64_t const now = ranks[rank].consumed();
          if (rank != 0 && now != position) outcome.wrong = "the ranks differ in their position";
          position = now;
        } else {
          position += mine.size();
        }
      }
      if (ended != 0 && ended != life.world) outcome.wrong = "the ranks differ in their batches";
      if (ended != 0) break;
      cursor.position = position;
    }
  }
  return outcome;
}

inline bool is_each_once(Ids ids, std::size_t samples) {
  std::sort(ids.begin(), ids.end());
  for (std::size_t i = 0; i < ids.size(); ++i) {
    if (ids[i] != static_cast<std::int64_t>(i)) return false;
  }
  return ids.size() == samples;
}

/// A collate function that gives the samples' numbers, and checks that the right ones were read.
template <class Case>
struct IdsOfSamples {
  template <class Sample>
  at::Tensor operator()(std::vector<Sample> const& samples,
                        std::span<std::size_t const> indices) const {
    at::Tensor ids = at::empty({static_cast<std::int64_t>(samples.size())}, at::kLong);
    for (std::size_t i = 0; i < samples.size(); ++i) {
      auto const id = static_cast<std::int64_t>(Case::id(samples[i]));
      bool const right = id == static_cast<std::int64_t>(indices[i]);
      ids[static_cast<std::int64_t>(i)] = right ? id : -1;
    }
    return ids;
  }
};

inline Ids ids_in(at::Tensor const& ids) {
  auto const* const begin = static_cast<std::int64_t const*>(ids.const_data_ptr());
  return {begin, begin + ids.numel()};
}

/// Every run with loaders of these numbers of threads. `order(samples, life)` makes the order of
/// all ranks.
template <class Case, class MakeOrder>
void check_runs(std::vector<Run> const& all, std::vector<int> const& workers, MakeOrder&& order) {
  std::uint64_t const samples = static_cast<std::uint64_t>(Case::set().size());
  frugal::Cursor const cursor{.seed = 7, .epoch = 2};
  auto const outcome = [&](Run const& run, int threads) {
    auto const make = [&](Life const& life, int rank) {
      return frugal::loader(Case::set(),
                            frugal::Shared(order(samples, life),
                                           frugal::ProcessRank{.rank = rank, .world = life.world}),
                            IdsOfSamples<Case>{},
                            frugal::LoaderSettings{.workers = threads, .depth = 3});
    };
    return outcome_of(run, cursor, make, ids_in);
  };
  for (Run const& run : all) {
    CAPTURE(text_of(run));
    Outcome const alone = outcome(run, 0);
    CHECK(alone.wrong == "");
    CHECK(is_each_once(alone.ids, samples));
    for (int const threads : workers) {
      CAPTURE(threads);
      Outcome const found = outcome(run, threads);
      CHECK(found.wrong == "");
      CHECK(found.ids == alone.ids);  // no worker changes the order
    }
  }
}

/// The whole matrix for a set: orders x workers x kills and resumes x world sizes.
template <class Case>
void check_set() {
  auto const pass = [](std::uint64_t samples, Life const& life) {
    return frugal::Pass(samples, {.batch = life.batch}, "set");
  };
  // An order of shards, of sizes that fit no batch.
  auto const sizes = [](std::uint64_t samples) {
    return std::vector<std::uint64_t>{5, 1, samples - 13, 7};
  };
  auto const by_shard = [&](std::uint64_t samples, Life const& life) {
    return frugal::ShardOrder(sizes(samples), {.batch = life.batch}, {.shards = 2}, "set");
  };
  auto const by_length = [](std::uint64_t samples, Life const& life) {
    frugal::Buckets buckets{.lengths = {}, .pool = 2};
    for (std::uint64_t i = 0; i < samples; ++i) {
      buckets.lengths.push_back(static_cast<std::int64_t>(i * i % 11));
    }
    return frugal::BucketPass(samples, {.batch = life.batch}, std::move(buckets), "set");
  };
  for (int world = 1; world <= 4; ++world) {
    std::vector<Run> all;
    for (Run const& run : runs) all.push_back(on(world, run));
    check_runs<Case>(all, {1, 2, 4, 8}, pass);
    check_runs<Case>(all, {2}, by_shard);
    // An order by length depends on the batch size, so that a run keeps it.
    all.pop_back();
    check_runs<Case>(all, {2}, by_length);
  }
  check_runs<Case>(runs_of_changing_worlds, {1, 4}, pass);
  check_runs<Case>(runs_of_changing_worlds, {2}, by_shard);
}

/// The runs of one process for a source. `make(Loading)` gives it.
template <class Make, class IdsOf>
void check_source(std::uint64_t samples, bool any_batch, Make&& make, IdsOf&& ids) {
  for (Run const& run : runs) {
    if (&run == &runs.back() && !any_batch) continue;
    CAPTURE(text_of(run));
    Outcome const outcome = outcome_of(
        run, {.seed = 7, .epoch = 2},
        [&](Life const& life, int) { return make(frugal::LoaderOptions{.batch = life.batch}); },
        ids);
    CHECK(is_each_once(outcome.ids, samples));
  }
}

}  // namespace frugal_test::exactly_once
