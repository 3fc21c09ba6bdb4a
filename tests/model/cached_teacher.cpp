// SPDX-License-Identifier: Apache-2.0
#include <frugal/model/cached_teacher.hpp>

#include <doctest/doctest.h>

#include <frugal/data/cache/cache_folder.hpp>
#include <frugal/data/pad.hpp>
#include <frugal/metrics/accuracy.hpp>
#include <frugal/model/distill.hpp>
#include <frugal/policy/accumulate.hpp>
#include <frugal/policy/optimize.hpp>
#include <frugal/policy/train_metrics.hpp>
#include <frugal/trainer.hpp>

#include "support/files.hpp"
#include "support/reference.hpp"
#include "support/running.hpp"

#include <cstdint>
#include <fstream>
#include <map>
#include <memory>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

namespace frugal_test::model_cached_teacher {

using namespace frugal;
using namespace frugal_test::support;

constexpr std::int64_t classes = 5;

struct Rows {
  std::string name = "rows";
  std::uint64_t size() const { return 50; }
  std::pair<at::Tensor, std::int64_t> get(std::uint64_t i) const {
    return {table({6}, 20, static_cast<std::uint32_t>(i)), static_cast<std::int64_t>(i) % classes};
  }
  std::string identity() const { return name; }
};

/// Counts how often it is asked, and for how many samples. It makes the same bits of a sample at
/// every place of a batch of any size, which matrix products do not on every machine.
struct Counting : torch::nn::Module {
  explicit Counting(std::uint32_t which = 0) {
    first = register_parameter("first", table({16, 6}, 21, which) * 2);
    second = register_parameter("second", table({classes, 16}, 22, which) * 2);
  }
  at::Tensor forward(at::Tensor const& x) {
    ++calls;
    asked += x.size(0);
    return says(x);
  }
  at::Tensor says(at::Tensor const& x) const {
    at::NoGradGuard const no_gradients;
    at::Tensor const hidden = (x.unsqueeze(1) * first).sum(-1).relu();
    return (hidden.unsqueeze(1) * second).sum(-1);
  }
  at::Tensor first, second;
  std::int64_t calls = 0, asked = 0;
};

using Soft = Distill<Temperature<4>>;

struct Job {
  std::shared_ptr<Counting> teacher = std::make_shared<Counting>();
  Soft distill{.teachers = {Teacher(teacher)}, .alpha = 0.8};
  TemporaryFolder folder;

  TeacherCacheSettings settings(at::ScalarType type = at::kHalf, std::int64_t top_k = 0) const {
    return {.folder = folder.path(), .top_k = top_k, .type = type, .batch = 16, .out = nullptr};
  }
};

template <class Source, class... Ps>
std::map<std::string, at::Tensor> fit(Soft const& distill, Source&& train, Ps const&... policies) {
  Trainer trainer{Mlp({.hidden = 8, .classes = classes}),
                  distill.objective(CrossEntropy{}),
                  Settings{.epochs = 3},
                  Optimize<AdamW>{.lr = 0.05},
                  distill,
                  policies...};
  trainer.fit(train);
  return tensors_of(trainer.module());
}

TEST_CASE("a full FP32 cache gives the bits of the live teacher") {
  Job job;
  LoaderOptions const loading{.batch = 16};
  auto const live = fit(job.distill, loader(Rows{}, loading));
  CHECK(job.teacher->asked == 150);
  job.teacher->asked = job.teacher->calls = 0;

  CachedTeacher const taught(Rows{}, job.distill, job.settings(at::kFloat));
  CHECK(taught.filled());
  CHECK(job.teacher->calls == 4);  // in batches of one size
  CHECK(job.teacher->asked == 64);
  CHECK(same_bits(fit(job.distill, taught.source(loading)), live));
  CHECK(job.teacher->calls == 4);
  // The teacher itself may be gone.
  CHECK(same_bits(fit({.alpha = 0.8}, taught.source(loading)), live));
}

TEST_CASE("sixteen bits and the top K come near the live teacher") {
  Job job;
  auto const live = fit(job.distill, loader(Rows{}, {.batch = 10}));
  auto const away = [&](TeacherCacheSettings const& settings) {
    CachedTeacher const taught(Rows{}, job.distill, settings);
    double most = 0;
    for (auto const& [name, tensor] : fit(job.distill, taught.source({.batch = 10}))) {
      most = std::max(most, distance(tensor, live.at(name)));
    }
    return most;
  };
  double const half = away(job.settings());
  CHECK(half > 0);
  CHECK(half < 2e-3);
  CHECK(away(job.settings(at::kBFloat16)) < 2e-2);
  CHECK(away(job.settings(at::kHalf, classes - 1)) < 2e-3);  // and the bucket: all there is
  CHECK(away(job.settings(at::kHalf, 1)) > half);
}

TEST_CASE("the outputs of a batch are those of its samples, wherever it is sought") {
  Job job;
  CachedTeacher const taught(Rows{}, job.distill, job.settings(at::kFloat));
  auto source = taught.source({.batch = 7});
  auto const check = [&](Cursor const& cursor) {
    source.seek(cursor);
    int batches = 0;
    while (auto const batch = source.next()) {
      CHECK(batch->teacher.select(1, 0).equal(job.teacher->says(batch->data)));
      CHECK(batch_samples(*batch) == batch->data.size(0));
      CHECK(batch->field("teacher").is_same(batch->teacher));
      CHECK_THROWS_WITH_AS(batch->field("techer"), doctest::Contains("teacher"), DataError);
      auto const part = batch_narrow(*batch, 1, batch->data.size(0) - 1);
      CHECK(part.teacher.size(0) == part.target.size(0));
      ++batches;
    }
    return batches;
  };
  CHECK(check({.seed = 3, .epoch = 2}) == 8);
  CHECK(check({.seed = 3, .epoch = 2, .position = 21}) == 5);
}

TEST_CASE("the second object, and the next run, ask no teacher") {
  Job job;
  {
    CachedTeacher const first(Rows{}, job.distill, job.settings());
  }
  job.teacher->asked = 0;
  std::ostringstream out;
  auto settings = job.settings();
  settings.out = &out;
  CachedTeacher const second(Rows{}, job.distill, settings);
  CHECK_FALSE(second.filled());
  CHECK(job.teacher->asked == 0);
  CHECK(out.str().empty());
}

TEST_CASE("each part of the key makes another cache") {
  Job job;
  auto const folder = [&](auto const& set, TeacherCacheSettings const& settings) {
    return CachedTeacher(set, job.distill, settings).folder();
  };
  auto const first = folder(Rows{}, job.settings());
  CHECK(folder(Rows{}, job.settings()) == first);
  CHECK(folder(Rows{"others"}, job.settings()) != first);
  CHECK(folder(Rows{}, job.settings(at::kFloat)) != first);
  CHECK(folder(Rows{}, job.settings(at::kHalf, 2)) != first);
  auto const at_2 = CachedTeacher(Rows{}, Distill<Temperature<2>>{.teachers = job.distill.teachers},
                                  job.settings(at::kHalf, 2));
  CHECK(at_2.folder() != folder(Rows{}, job.settings(at::kHalf, 2)));
  Teacher const twice(job.teacher, [](std::shared_ptr<Counting>& teacher, at::Tensor const& data) {
    return 2 * teacher->forward(data);
  });
  CHECK(CachedTeacher(Rows{}, std::vector<Teacher>{twice}, job.settings()).folder() != first);
  {
    at::NoGradGuard const no_gradients;
    job.teacher->first += 1;
  }
  CHECK(folder(Rows{}, job.settings()) != first);
  // What is not used any more.
  CachedTeacher const used(Rows{}, job.distill, job.settings());
  RemovedKeys const removed = remove_unused_keys(job.folder.path());
  CHECK(removed.in_use == 2);
  CHECK(removed.removed == 5);
  CHECK_FALSE(std::filesystem::exists(first));
  CHECK(std::filesystem::exists(used.folder()));
}

TEST_CASE("a fill that fails, or that was killed, leaves nothing that is used") {
  Job job;
  struct Failing : Rows {
    std::pair<at::Tensor, std::int64_t> get(std::uint64_t i) const {
      if (i == 40) throw DataError({.what = "broken", .where = "", .why = "", .fix = ""});
      return Rows::get(i);
    }
  };
  CHECK_THROWS_AS(CachedTeacher(Failing{}, job.distill, job.settings()), DataError);
  CHECK(entries(job.folder.path()) == 0);
  // What a killed process leaves: a folder without a lock.
  CachedTeacher const other(Rows{"others"}, job.distill, job.settings());
  auto const name = [&] {
    TemporaryFolder elsewhere;
    auto settings = job.settings();
    settings.folder = elsewhere.path();
    return CachedTeacher(Rows{}, job.distill, settings).folder().filename().string();
  }();
  auto const left = job.folder.path() / (name + "-0123456789abcdef.filling");
  std::filesystem::create_directories(left);
  std::ofstream(left / "shard-000000.safetensors") << "half of it";
  CachedTeacher const taught(Rows{}, job.distill, job.settings());
  CHECK(taught.filled());
  CHECK_FALSE(std::filesystem::exists(left));
  CHECK(std::filesystem::exists(other.folder()));
}

TEST_CASE("damage is an error and never an output") {
  Job job;
  auto const folder = CachedTeacher(Rows{}, job.distill, job.settings()).folder();
  auto const shard = folder / "shard-000000.safetensors";
  auto const size = std::filesystem::file_size(shard);
  std::fstream file(shard, std::ios::binary | std::ios::in | std::ios::out);
  file.seekp(static_cast<std::streamoff>(size - 600));
  file.put('\x55');
  file.put('\x2a');
  file.close();
  auto const read = [&] {
    CachedTeacher const taught(Rows{}, job.distill, job.settings());
    auto source = taught.source({.batch = 50});
    source.seek({});
    static_cast<void>(source.next());
  };
  CHECK_THROWS_AS(read(), DataError);
  std::ofstream(folder / "key.txt") << "another key";
  CHECK_THROWS_WITH_AS(read(), doctest::Contains("something else"), DataError);
}

struct Shift {
  static constexpr int version = 1;
  std::string settings() const { return ""; }
  std::pair<at::Tensor, std::int64_t> operator()(std::pair<at::Tensor, std::int64_t> sample,
                                                 SampleKey const& key) const {
    sample.first = sample.first + static_cast<double>(key.epoch);
    return sample;
  }
};

TEST_CASE("variants of a random transform have outputs of their own") {
  Job job;
  auto const variants =
      offline(Rows{}, Shift{},
              {.cache = {.folder = job.folder.path() / "variants", .out = nullptr}, .variants = 3});
  CachedTeacher const taught(variants, job.distill, job.settings(at::kFloat));
  CHECK(job.teacher->calls == 10);  // 150 samples
  auto source = taught.source({.batch = 8});
  for (std::uint64_t epoch = 0; epoch < 4; ++epoch) {
    source.seek({.seed = 9, .epoch = epoch});
    while (auto const batch = source.next()) {
      CHECK(batch->teacher.select(1, 0).equal(job.teacher->says(batch->data)));
    }
  }
}

TEST_CASE("several teachers, metrics of training batches and split batches take it as it is") {
  Job job;
  auto second = std::make_shared<Counting>(1);
  Soft const distill{.teachers = {Teacher(job.teacher), Teacher(second, {.weight = 3})},
                     .alpha = 0.8};
  CachedTeacher const taught(Rows{}, distill, job.settings(at::kFloat));
  LoaderOptions const loading{.batch = 16, .drop_last = true};
  auto const live = fit(distill, loader(Rows{}, loading));
  CHECK(same_bits(fit(distill, taught.source(loading)), live));
  CHECK(same_bits(fit(distill, taught.source(loading), TrainMetrics<Accuracy>{}), live));
  auto const split = fit(distill, taught.source({.batch = 8, .drop_last = true}), Accumulate<2>{});
  auto const whole = fit(distill, taught.source(loading));
  for (auto const& [name, tensor] : whole) CHECK(distance(tensor, split.at(name)) < 1e-4);
}

TEST_CASE("a run that resumes with the cache of another teacher is refused by its data") {
  Job job;
  auto const identity = [&] {
    CachedTeacher const taught(Rows{}, job.distill, job.settings());
    return frugal::detail::data_identity_of(taught.source({.batch = 16})).values();
  };
  auto const before = identity();
  CHECK(before.contains("teacher"));
  CHECK(identity() == before);
  {
    at::NoGradGuard const no_gradients;
    job.teacher->first += 1;
  }
  CHECK(identity().at("teacher") != before.at("teacher"));
}

/// Makes outputs of the length of its batch, as padded sequences have them.
struct Uneven : torch::nn::Module {
  at::Tensor forward(at::Tensor const& x) { return at::zeros({x.size(0), classes, ++calls}); }
  std::int64_t calls = 0;
};

TEST_CASE("outputs of different shapes are refused, and nothing is left") {
  Job job;
  std::vector<Teacher> const teachers{Teacher(std::make_shared<Uneven>())};
  CHECK_THROWS_AS(CachedTeacher(Rows{}, teachers, job.settings()), ShapeError);
  CHECK(entries(job.folder.path()) == 0);
}

TEST_CASE("impossible settings are refused") {
  Job job;
  auto const refuses = [&](auto change) {
    auto settings = job.settings();
    change(settings);
    CHECK_THROWS_AS(CachedTeacher(Rows{}, job.distill, settings), SettingsError);
  };
  refuses([](auto& each) { each.folder.clear(); });
  refuses([](auto& each) { each.top_k = -1; });
  refuses([](auto& each) { each.top_k = classes; });
  refuses([](auto& each) { each.batch = 0; });
  refuses([](auto& each) { each.type = at::kLong; });
  CHECK_THROWS_AS(CachedTeacher(Rows{}, std::vector<Teacher>{}, job.settings()), SettingsError);
  CHECK_THROWS_AS(CachedTeacher(Rows{}, Distill<SquaredError>{.teachers = job.distill.teachers},
                                job.settings(at::kHalf, 2)),
                  SettingsError);
  {
    at::NoGradGuard const no_gradients;
    job.teacher->second += 1e6;
  }
  CHECK_THROWS_WITH_AS(CachedTeacher(Rows{}, job.distill, job.settings()),
                       doctest::Contains("does not fit"), DataError);
}

}  // namespace frugal_test::model_cached_teacher
