// SPDX-License-Identifier: Apache-2.0
// needs: tensorboard
#include <doctest/doctest.h>

#include <frugal/policy/clip.hpp>
#include <frugal/policy/tensorboard.hpp>

#include "support/files.hpp"
#include "support/scripted.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <fstream>
#include <limits>
#include <numeric>
#include <protozero/pbf_reader.hpp>
#include <string>
#include <vector>

namespace frugal_test::policy_tensorboard {

using namespace frugal_test::support;
using namespace frugal::literals;
using frugal::Every;
using frugal::TensorBoard;
using frugal::TensorBoardWriter;
namespace fr = frugal;

template <class... Ps>
auto trainer_of(fr::Settings settings, Ps const&... policies) {
  settings.epochs = 2;
  settings.seed = 5;
  return fr::Trainer{std::make_shared<Mlp>(), fr::CrossEntropy{}, settings, fr::Optimize<fr::SGD>{},
                     policies...};
}
auto train() { return fr::Resident(samples(18), {.batch = 4}); }
auto valid() { return fr::Resident(samples(9, 92), {.batch = 4}); }

/// The tags of an event file's values, each with its step; tests/interop reads the rest.
struct Found {
  std::vector<std::string> tags;
  std::size_t events = 0;
  std::vector<std::int64_t> restarts;
};

Found read(std::filesystem::path const& path) {
  Found found;
  std::string const bytes = text_of(path);
  for (std::size_t at = 0; at < bytes.size();) {
    std::uint64_t size = 0;
    REQUIRE(at + 12 <= bytes.size());
    std::memcpy(&size, bytes.data() + at, 8);
    REQUIRE(at + 16 + size <= bytes.size());
    protozero::pbf_reader event(bytes.data() + at + 12, size);
    at += 16 + size;
    ++found.events;
    std::int64_t step = 0;
    while (event.next()) {
      if (event.tag() == 2) {
        step = event.get_int64();
      } else if (event.tag() == 7) {
        event.skip();
        found.restarts.push_back(step);
      } else if (event.tag() == 5) {
        protozero::pbf_reader summary = event.get_message();
        while (summary.next(1)) {
          protozero::pbf_reader value = summary.get_message();
          if (value.next(1)) found.tags.push_back(value.get_string() + "@" + std::to_string(step));
        }
      } else {
        event.skip();
      }
    }
  }
  return found;
}

std::vector<std::filesystem::path> files_in(std::filesystem::path const& folder) {
  std::vector<std::filesystem::path> all;
  for (auto const& each : std::filesystem::directory_iterator(folder)) all.push_back(each.path());
  std::sort(all.begin(), all.end());
  return all;
}

bool has(Found const& found, std::string const& tag) {
  return std::find(found.tags.begin(), found.tags.end(), tag) != found.tags.end();
}

TEST_CASE(
    "an event file has the scalars of each record, the texts, and histograms at their cadence") {
  TemporaryFolder const folder;
  TensorBoard<Every<2>, fr::WeightHistograms<Every<5>>, fr::GradientHistograms<Every<4>>> const
      board{.texts = {{"recipe", "**AdamW**"}}};
  auto trainer = trainer_of({.run = folder.path()}, board, fr::ClipNorm<1.0_r>{});
  static_cast<void>(trainer.fit(train(), valid()));
  auto const files = files_in(folder / "tensorboard");
  REQUIRE(files.size() == 1);
  CHECK(files[0].filename().string().find("events.out.tfevents.") == 0);
  Found const found = read(files[0]);
  CHECK(found.restarts.empty());
  for (std::string const tag :
       {"recipe@0", "step/loss@2", "step/loss@10", "step/lr_factor@4", "step/gradient_norm@2",
        "step/memory_bytes@2", "epoch/loss@5", "validation/loss@10", "weights/first.weight@5",
        "weights/second.bias@10", "gradients/first.weight@4", "gradients/second.bias@8"}) {
    CAPTURE(tag);
    CHECK(has(found, tag));
  }
  CHECK_FALSE(has(found, "step/loss@3"));
  CHECK_FALSE(has(found, "weights/first.weight@4"));
  CHECK_FALSE(has(found, "gradients/first.weight@2"));
}

TEST_CASE("a histogram has every finite value in its bucket") {
  double const nan = std::numeric_limits<double>::quiet_NaN();
  double const inf = std::numeric_limits<double>::infinity();
  at::Tensor const values =
      at::tensor({-2.0, -0.5, 0.0, 0.0, 1e-30, 0.25, 0.25, 3.0, 1e25, nan, inf, -inf}, at::kDouble);
  fr::HistogramSummary const all = fr::detail::histogram_of(values);
  CHECK(all.count == 9);
  CHECK(all.min == -2);
  CHECK(all.max == 1e25);
  CHECK(std::accumulate(all.counts.begin(), all.counts.end(), 0.0) == 9);
  REQUIRE(all.limits.size() == all.counts.size());
  CHECK(std::is_sorted(all.limits.begin(), all.limits.end()));
  CHECK(all.counts.front() == 0);
  for (double const value : {-2.0, -0.5, 0.0, 0.25, 3.0, 1e25}) {
    auto const at = static_cast<std::size_t>(
        std::upper_bound(all.limits.begin(), all.limits.end(), value) - all.limits.begin());
    CAPTURE(value);
    REQUIRE(at < all.counts.size());
    CHECK(all.counts[at] == (value == 0.0 ? 3 : value == 0.25 ? 2 : 1));
  }
  CHECK(fr::detail::histogram_of(at::tensor({nan, inf}, at::kDouble)).count == 0);
  CHECK(fr::detail::histogram_of(at::empty({0})).count == 0);
}

TEST_CASE("a copy of the writer adds images, texts, scalars and histograms while a fit is open") {
  TemporaryFolder const folder;
  TensorBoardWriter const writer;
  writer.scalar("too/early", 0, 1);  // nothing is open
  Spy const spy{.each_step = [&](fr::Counters const& now) {
    if (now.step != 1) return;
    CHECK(writer.is_open());
    writer.image("picture", now.step, at::rand({3, 4, 5}));
    writer.image("grey", now.step, at::full({4, 5}, 7, at::kByte));
    writer.text("note", now.step, "hello");
    writer.scalar("mine", now.step, 0.5);
    writer.histogram("values", now.step, at::randn({10}));
    writer.scalar("caf\xe9", now.step, 1);  // in Latin-1
  }};
  auto trainer = trainer_of({.run = folder.path()}, TensorBoard<>{.writer = writer}, spy);
  static_cast<void>(trainer.fit(train()));
  CHECK_FALSE(writer.is_open());
  Found const found = read(writer.path());
  for (std::string const tag :
       {"picture@1", "grey@1", "note@1", "mine@1", "values@1", "caf\xef\xbf\xbd@1"}) {
    CAPTURE(tag);
    CHECK(has(found, tag));
  }
  CHECK_FALSE(has(found, "too/early@0"));
  CHECK(writer.lost() == 0);
}

TEST_CASE("a tensor that is no image is refused") {
  TensorBoardWriter const writer;
  for (at::Tensor const& tensor : {at::Tensor(), at::rand({2, 4, 5}), at::rand({1, 3, 4, 5}),
                                   at::rand({3, 0, 5}), at::zeros({3, 4, 5}, at::kLong)}) {
    CHECK_THROWS_WITH_AS(writer.image("x", 0, tensor), doctest::Contains("is not an image but"),
                         fr::ShapeError);
  }
}

TEST_CASE("a removed folder changes no weight, and is reported once") {
  TemporaryFolder const folder;
  auto plain = trainer_of({});
  static_cast<void>(plain.fit(train(), valid()));
  Spy const remover{.each_step = [&](fr::Counters const& now) {
    if (now.step == 3) std::filesystem::remove_all(folder / "run");
  }};
  auto watched = trainer_of({.run = folder / "run"},
                            TensorBoard<Every<1>, fr::WeightHistograms<Every<1>>>{}, remover);
  auto const report = watched.fit(train(), valid());
  CHECK(same_bits(tensors_of(*plain.module()), tensors_of(*watched.module())));
  REQUIRE(report.advice.size() == 1);
  CHECK(report.advice[0].find("TensorBoard could not write at step 4 (") == 0);
  auto const* const outcome = watched.template policy<fr::kinds::tensorboard>().outcome.get();
  REQUIRE(outcome != nullptr);
  CHECK(outcome->lost > 10);
}

TEST_CASE("a resumed run has another file, which voids what came after the checkpoint") {
  TemporaryFolder const folder;
  Frozen from;
  std::map<std::uint64_t, Frozen> after_step;
  auto first = trainer_of({.run = folder.path()}, TensorBoard<Every<1>>{},
                          Resume{.after_step = &after_step, .stop_at = 7});
  static_cast<void>(first.fit(train(), valid()));
  auto second = trainer_of({.run = folder.path()}, TensorBoard<Every<1>>{},
                           Resume{.from = &after_step.at(4)});
  static_cast<void>(second.fit(train(), valid()));
  auto const files = files_in(folder / "tensorboard");
  REQUIRE(files.size() == 2);
  CHECK(read(files[0]).restarts.empty());
  Found const found = read(files[1]);
  CHECK(found.restarts == std::vector<std::int64_t>{5});
  CHECK(has(found, "step/loss@5"));
  CHECK_FALSE(has(found, "step/loss@4"));
}

TEST_CASE("a place that is no folder is refused, and leaves no file") {
  TemporaryFolder const folder;
  std::ofstream(folder / "tensorboard") << "in the way";
  auto trainer = trainer_of({.run = folder.path()}, TensorBoard<>{});
  CHECK_THROWS_AS(static_cast<void>(trainer.fit(train())), fr::DataError);
  auto nowhere = trainer_of({}, TensorBoard<>{});
  CHECK_THROWS_AS(static_cast<void>(nowhere.fit(train())), fr::SettingsError);
}

}  // namespace frugal_test::policy_tensorboard
