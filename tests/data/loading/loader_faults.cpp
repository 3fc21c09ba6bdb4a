// SPDX-License-Identifier: Apache-2.0
#include "data/sources.hpp"

#include <doctest/doctest.h>

#include <frugal/base/io_error.hpp>
#include <frugal/data/loading/loader.hpp>
#include <frugal/data/loading/transformed.hpp>
#include <frugal/data/sampling/order.hpp>
#include <frugal/data/shards/damage.hpp>

#include <cerrno>
#include <chrono>
#include <cstdint>
#include <functional>
#include <future>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <pthread.h>

namespace frugal_test::data_loader_faults {

using namespace frugal_test::data_sources;
using namespace std::chrono_literals;
using frugal::DataError;
using frugal::loader;
using frugal::OnError;
using frugal::WorkerError;

/// Samples that are their numbers; each is read by a function that may fail.
struct Troubled {
  std::uint64_t count;
  std::function<void(std::uint64_t)> deed;
  std::uint64_t size() const { return count; }
  at::Tensor get(std::uint64_t index) const {
    deed(index);
    return at::full({1}, static_cast<std::int64_t>(index), at::kLong);
  }
  std::string name(std::uint64_t index) const { return "img/" + std::to_string(index) + ".png"; }
};

std::function<void(std::uint64_t)> damaged(std::vector<std::uint64_t> which) {
  return [which = std::move(which)](std::uint64_t index) {
    for (std::uint64_t const each : which) {
      if (each == index) throw DataError({"the file is cut off", "byte 7", "", ""});
    }
  };
}

frugal::LoaderSettings with(int workers, OnError on_error = OnError::Fail, double limit = 0.01) {
  return {.workers = workers, .on_error = on_error, .skip_limit = limit, .name = "pictures"};
}

std::vector<std::int64_t> numbers_in(std::vector<at::Tensor> const& batches) {
  std::vector<std::int64_t> all;
  for (at::Tensor const& batch : batches) {
    for (std::int64_t i = 0; i < batch.size(0); ++i) all.push_back(batch[i].item<std::int64_t>());
  }
  return all;
}

template <class S>
frugal::Fault fault_of_next(S& source) {
  try {
    source.next();
  } catch (frugal::Error const& error) {
    return error.fault();
  }
  return {"nothing was thrown", "", "", ""};
}

TEST_CASE("a sample that cannot be read ends the run at its batch, after those before it") {
  for (int const workers : {0, 1, 4}) {
    auto source = loader(Troubled{20,
                                  [](std::uint64_t index) {
                                    if (index == 9) throw std::runtime_error("no such file");
                                  }},
                         {.batch = 4, .shuffle = false}, frugal::Stack{}, with(workers));
    source.seek({.seed = 1, .epoch = 5});
    CHECK(numbers_in({*source.next(), *source.next()}) ==
          std::vector<std::int64_t>{0, 1, 2, 3, 4, 5, 6, 7});
    for (int again = 0; again < 2; ++again) {
      try {
        source.next();
        FAIL("nothing was thrown");
      } catch (WorkerError const& error) {
        CHECK(error.fault().what == "a sample cannot be read");
        CHECK(error.fault().where ==
              "img/9.png, sample 9, the batch at position 8 of epoch 5, pictures");
        CHECK(error.fault().why == "no such file");
        CHECK_THROWS_WITH_AS(std::rethrow_if_nested(error), "no such file", std::runtime_error);
      }
    }
    CHECK(source.consumed() == 8);
    source.seek({.seed = 1, .position = 12});
    CHECK(numbers_in(rest(source)) == std::vector<std::int64_t>{12, 13, 14, 15, 16, 17, 18, 19});
  }
}

TEST_CASE("what is thrown may be anything") {
  auto source =
      loader(Troubled{8, [](std::uint64_t) { throw 42; }}, {.batch = 4}, frugal::Stack{}, with(2));
  CHECK(fault_of_next(source).why == "it threw a value of type int");
}

TEST_CASE("LibTorch's error about a sample has no stack frames") {
  auto source =
      loader(Troubled{8, [](std::uint64_t) { at::ones({2, 3}).matmul(at::ones({2, 3})); }},
             {.batch = 4}, frugal::Stack{}, with(2));
  std::string const why = fault_of_next(source).why;
  CAPTURE(why);
  CHECK(why.find("mat1 and mat2 shapes cannot be multiplied") != std::string::npos);
  CHECK(why.find("frame #") == std::string::npos);
}

TEST_CASE("a batch that cannot be collated names its samples, also where samples may be skipped") {
  struct Ragged {
    std::uint64_t size() const { return 12; }
    at::Tensor get(std::uint64_t index) const { return at::zeros({index == 6 ? 2 : 1}); }
  };
  auto source =
      loader(Ragged{}, {.batch = 4, .shuffle = false}, frugal::Stack{}, with(2, OnError::Skip, 1));
  CHECK(source.next().has_value());
  frugal::Fault const fault = fault_of_next(source);
  CHECK(fault.what == "a batch cannot be collated");
  CHECK(fault.where == "samples 4, 5, 6, 7, the batch at position 4 of epoch 0, pictures");
  CHECK(fault.why.find("sample 6") != std::string::npos);
}

TEST_CASE("a worker whose thread ends names the sample that it was at") {
  auto source = loader(Troubled{20,
                                [](std::uint64_t index) {
                                  if (index == 9) ::pthread_exit(nullptr);
                                }},
                       {.batch = 4, .shuffle = false}, frugal::Stack{}, with(2));
  CHECK(source.next().has_value());
  CHECK(source.next().has_value());
  for (int again = 0; again < 2; ++again) {
    frugal::Fault const fault = fault_of_next(source);
    CHECK(fault.what == "a loader's worker ended");
    CHECK(fault.where == "img/9.png, sample 9, the batch at position 8 of epoch 0, pictures");
  }
  source.seek({.position = 12});
  CHECK(numbers_in(rest(source)).size() == 8);
}

TEST_CASE("a sample that hangs is named once the patience is over, and the program continues") {
  std::promise<void> let_go;
  {
    auto source = loader(Troubled{20,
                                  [free = let_go.get_future().share()](std::uint64_t index) {
                                    if (index == 2) free.wait();
                                  }},
                         {.batch = 4, .shuffle = false}, frugal::Stack{},
                         {.workers = 2, .patience = 100ms, .name = "pictures"});
    source.seek({});
    frugal::Fault fault = fault_of_next(source);
    CHECK(fault.what == "a loader's worker hangs");
    CHECK(fault.where == "img/2.png, sample 2, the batch at position 0 of epoch 0, pictures");
    CHECK(fault.why == "nothing came of it for 0.1 s");
    source.seek({.position = 4});
    std::vector<at::Tensor> batches;
    while (batches.size() < 4) {
      try {
        batches.push_back(*source.next());
      } catch (WorkerError const&) {
        // 100 ms are short on a busy machine.
      }
    }
    CHECK(numbers_in(batches).size() == 16);
  }
  let_go.set_value();
}

TEST_CASE("each sample of a batch that a worker reads is something that it has begun with") {
  struct Tasks {
    static auto of(std::uint64_t count) {
      return frugal::detail::BatchTasks(Troubled{count, [](std::uint64_t) {}}, frugal::Stack{},
                                        frugal::Pass(count, {.batch = 4}, "pictures"),
                                        frugal::LoaderSettings{});
    }
  };
  auto tasks = Tasks::of(8);
  tasks.seek({});
  frugal::detail::WorkerProgress progress;
  auto const before = progress.since.load();
  static_cast<void>(tasks.make(*tasks.deal(), progress));
  CHECK(progress.since.load() > before);
  CHECK(progress.whole);  // it has collated last
}

TEST_CASE("damaged samples are left out where that is wanted, and count as consumed") {
  for (int const workers : {0, 1, 4}) {
    auto source = loader(Troubled{20, damaged({2, 9, 10})}, {.batch = 4, .shuffle = false},
                         frugal::Stack{}, with(workers, OnError::Skip, 0.2));
    source.seek({});
    CHECK(source.next()->size(0) == 3);
    CHECK(source.consumed() == 4);
    CHECK(numbers_in(rest(source)) ==
          std::vector<std::int64_t>{4, 5, 6, 7, 8, 11, 12, 13, 14, 15, 16, 17, 18, 19});
    CHECK(source.consumed() == 20);
    CHECK(source.skipped().total == 3);
    CHECK(source.skipped().first ==
          std::vector<std::string>{"img/2.png: frugal: the file is cut off (byte 7).",
                                   "img/9.png: frugal: the file is cut off (byte 7)."});
    // From a cursor behind a skipped sample on: nothing twice, nothing lost.
    source.seek({.position = 4});
    CHECK(numbers_in(rest(source)).size() == 14);
    CHECK(source.skipped().since_seek == 2);
    CHECK(source.skipped().total == 5);
  }
}

TEST_CASE("a batch of which every sample is skipped is skipped") {
  auto source = loader(Troubled{12, damaged({4, 5, 6, 7})}, {.batch = 4, .shuffle = false},
                       frugal::Stack{}, with(2, OnError::Skip, 1));
  source.seek({});
  source.next();
  CHECK(numbers_in({*source.next()}) == std::vector<std::int64_t>{8, 9, 10, 11});
  CHECK(source.consumed() == 12);
  CHECK(source.skipped().total == 4);
}

TEST_CASE("a rank whose whole part of a batch is damaged ends the run: the others would wait") {
  auto const source_of = [](int rank, int world) {
    return loader(Troubled{12, damaged({4, 5})},
                  frugal::Shared(frugal::Pass(12, {.batch = 4, .shuffle = false}, "pictures"),
                                 {.rank = rank, .world = world}),
                  frugal::Stack{}, with(2, OnError::Skip, 1));
  };
  auto source = source_of(0, 2);
  CHECK(numbers_in({*source.next()}) == std::vector<std::int64_t>{0, 1});
  for (int again = 0; again < 2; ++again) {
    CHECK(fault_of_next(source).what == "every sample of this rank's part of a batch is damaged");
  }
  CHECK(source.consumed() == 4);
  auto other = source_of(1, 2);
  CHECK(numbers_in(rest(other)) == std::vector<std::int64_t>{2, 3, 6, 7, 10, 11});
  auto alone = source_of(0, 1);
  CHECK(numbers_in(rest(alone)).size() == 10);
}

TEST_CASE("processes do not share a set that has left out damaged shards") {
  struct Damaged : Troubled {
    frugal::DamageLog log{};
    frugal::DamageLog const& damage() const { return log; }
  };
  auto const share = [](Damaged const& set, int world) {
    auto const same = [](at::Tensor sample) { return sample; };
    return loader(frugal::Transformed(set, same),
                  frugal::Shared(frugal::Pass(12, {.batch = 4}, "pictures"), {.world = world}),
                  frugal::Stack{}, with(1));
  };
  Damaged const set{{12, [](std::uint64_t) {}}};
  CHECK(share(set, 2).next().has_value());
  set.log.add("b.tar", "it is empty");
  CHECK(share(set, 1).next().has_value());
  CHECK_THROWS_WITH_AS(share(set, 2), doctest::Contains("1 skipped: b.tar (it is empty); each"),
                       DataError);
}

TEST_CASE("more than the limit end the run, at the batch that exceeds it") {
  auto source = loader(Troubled{100, damaged({1, 10, 20})}, {.batch = 4, .shuffle = false},
                       frugal::Stack{}, with(3, OnError::Skip, 0.02));
  source.seek({});
  for (int batch = 0; batch < 5; ++batch) CHECK(source.next().has_value());
  for (int again = 0; again < 2; ++again) {
    frugal::Fault const fault = fault_of_next(source);
    CHECK(fault.what == "too many samples are damaged");
    CHECK(fault.where == "pictures");
    CHECK(fault.why ==
          "3 of 100 samples, and LoaderSettings::skip_limit is 0.02; the first: img/1.png: frugal: "
          "the file is cut off (byte 7).");
  }
  CHECK(source.consumed() == 20);
}

TEST_CASE("the limit is about an epoch, in however many pieces it is read") {
  auto source = loader(Troubled{10, damaged({1, 6})}, {.batch = 2, .shuffle = false},
                       frugal::Stack{}, with(1, OnError::Skip, 0.1));
  for (int again = 0; again < 3; ++again) {  // a sample that is met again is the same one
    source.seek({});
    CHECK(source.next()->size(0) == 1);
  }
  CHECK(source.skipped().total == 3);
  source.seek({.position = 6});
  CHECK(fault_of_next(source).why.starts_with("2 of 10 samples"));
  source.seek({.epoch = 1, .position = 6});
  CHECK(source.next()->size(0) == 1);
  CHECK(source.skipped().in_epoch == std::set<std::uint64_t>{6});
}

TEST_CASE("what cannot be read now, or has changed, is not skipped as damage") {
  for (auto const& deed : std::vector<std::function<void(std::uint64_t)>>{
           [](std::uint64_t) { throw frugal::detail::io_error("open", "a.tar", EMFILE); },
           [](std::uint64_t) { throw frugal::ChangedError({"it has changed", "", "", ""}); }}) {
    auto source =
        loader(Troubled{12, deed}, {.batch = 4}, frugal::Stack{}, with(2, OnError::Skip, 1));
    CHECK(fault_of_next(source).what == "a sample cannot be read");
    CHECK(source.skipped().total == 0);
  }
}

TEST_CASE("one damaged sample is within any limit above 0, and none within 0") {
  auto const skipping = [](double limit) {
    auto source = loader(Troubled{12, damaged({1})}, {.batch = 4, .shuffle = false},
                         frugal::Stack{}, with(1, OnError::Skip, limit));
    return source.next().has_value();
  };
  CHECK(skipping(0.01));
  CHECK_THROWS_AS(skipping(0), DataError);
}

TEST_CASE("an error that does not mean damage fails even where damaged samples are skipped") {
  auto source =
      loader(Troubled{12, [](std::uint64_t) { throw std::logic_error("a bug of the transform"); }},
             {.batch = 4}, frugal::Stack{}, with(2, OnError::Skip, 1));
  CHECK(fault_of_next(source).why == "a bug of the transform");
}

TEST_CASE("a damaged file of the store counts as damage") {
  auto source =
      loader(Troubled{12,
                      [](std::uint64_t index) {
                        if (index == 1) throw frugal::FormatError({"bad", "", "", ""});
                      }},
             {.batch = 4, .shuffle = false}, frugal::Stack{}, with(2, OnError::Skip, 0.1));
  CHECK(source.next()->size(0) == 3);
}

/// Stacks, but ends its thread at a sample.
struct Ending {
  std::int64_t at;
  at::Tensor operator()(std::vector<at::Tensor> const& samples) const {
    for (at::Tensor const& sample : samples) {
      if (sample.item<std::int64_t>() == at) ::pthread_exit(nullptr);
    }
    return at::stack(samples);
  }
};

TEST_CASE("a worker that ends at a whole batch blames none of its samples") {
  auto collated = loader(Troubled{20, [](std::uint64_t) {}}, {.batch = 4, .shuffle = false},
                         Ending{10}, with(2));
  CHECK(collated.next().has_value());
  CHECK(collated.next().has_value());
  CHECK(fault_of_next(collated).where ==
        "the samples read with img/8.png, sample 8, the batch at position 8 of epoch 0, pictures");

  struct Whole : Troubled {
    at::Tensor get_batch(std::span<std::uint64_t const> indices) const {
      if (indices[0] == 8) ::pthread_exit(nullptr);
      return at::zeros({static_cast<std::int64_t>(indices.size()), 1}, at::kLong);
    }
  };
  auto read = loader(Whole{{20, [](std::uint64_t) {}}}, {.batch = 4, .shuffle = false},
                     frugal::Stack{}, with(2));
  CHECK(read.next().has_value());
  CHECK(read.next().has_value());
  CHECK(fault_of_next(read).where ==
        "the samples read with img/8.png, sample 8, the batch at position 8 of epoch 0, pictures");
}

TEST_CASE("an order of another set is refused before anything is read") {
  for (int const workers : {0, 2}) {
    bool outside = false;
    auto source = loader(Troubled{4, [&](std::uint64_t index) { outside |= index >= 4; }},
                         frugal::Pass(6, {.batch = 4, .shuffle = false}, "six"), frugal::Stack{},
                         with(workers, OnError::Skip, 1));
    source.seek({});
    CHECK(source.next().has_value());
    frugal::Fault const fault = fault_of_next(source);
    CHECK(fault.what == "the order of a loader failed");
    CHECK(fault.why.find("the set has 4 samples") != std::string::npos);
    CHECK_FALSE(outside);
  }
}

TEST_CASE("a sample whose name cannot be said is named by its number") {
  struct Nameless {
    std::uint64_t size() const { return 4; }
    at::Tensor get(std::uint64_t) const { throw std::runtime_error("cut off"); }
    std::string name(std::uint64_t) const { throw std::runtime_error("no name, either"); }
  };
  auto source = loader(Nameless{}, {.batch = 2, .shuffle = false}, frugal::Stack{}, with(2));
  frugal::Fault const fault = fault_of_next(source);
  CHECK(fault.why == "cut off");
  CHECK(fault.where.starts_with("sample 0, the batch at position 0"));
}

TEST_CASE("the limit is a share, and not the next whole number") {
  frugal::SkippedSamples skipped;
  skipped.add(std::vector<std::size_t>{0, 1}, "two", "damaged");
  CHECK_FALSE(skipped.within(0.01, 150));  // 1.5 samples
  CHECK(skipped.within(0.02, 100));
  skipped.add(std::vector<std::size_t>{1, 2, 3, 4, 5, 6, 7}, "seven", "damaged");
  CHECK_FALSE(skipped.within(0.07, 100));
}

TEST_CASE("a set without names is named by its type, and its samples by their numbers") {
  struct Plain {
    std::uint64_t size() const { return 4; }
    at::Tensor get(std::uint64_t) const { throw std::runtime_error("no"); }
  };
  auto source = loader(Plain{}, {.batch = 2, .shuffle = false});
  std::string const where = fault_of_next(source).where;
  CAPTURE(where);
  CHECK(where.starts_with("sample 0, the batch at position 0 of epoch 0, "));
  CHECK(where.ends_with("::Plain"));
}

}  // namespace frugal_test::data_loader_faults
