// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <frugal/policy/checkpoint.hpp>
#include <frugal/policy/optimize.hpp>
#include <frugal/report/audit.hpp>
#include <frugal/report/log.hpp>
#include <frugal/trainer.hpp>

#include "support/files.hpp"
#include "support/running.hpp"

namespace frugal_test::policy_audit {

using namespace frugal_test::support;
using frugal::Audit;
using frugal::AuditMark;
using frugal::BitExact;
using frugal::Every;
using frugal::Optimize;
using frugal::SGD;
using frugal::TensorDataset;
namespace k = frugal::kinds;

std::shared_ptr<Mlp> module() {
  return std::make_shared<Mlp>(Mlp::Shape{.dropout = 0.3, .norm = true});
}

/// Three epochs of 6 shuffled batches with dropout and normalization.
template <class... Ps>
std::vector<AuditMark> marks(frugal::Settings settings, Ps const&... policies) {
  if (!settings.epochs) settings.epochs = 3;
  frugal::Trainer trainer{module(),          frugal::CrossEntropy{},
                          settings,          Optimize<frugal::AdamW>{},
                          Audit<BitExact>{}, policies...};
  static_cast<void>(trainer.fit(TensorDataset(samples(22), {.batch = 4, .shuffle = true})));
  return trainer.template policy<k::audit>().marks();
}

/// The flags that an audit sets, as text.
std::string flags() {
  at::Context& context = at::globalContext();
  std::string text;
  for (bool const flag :
       {context.deterministicAlgorithms(), context.deterministicAlgorithmsWarnOnly(),
        context.deterministicCuDNN(), context.benchmarkCuDNN(), context.deterministicMkldnn(),
        context.float32MatmulPrecision() == at::Float32MatmulPrecision::HIGHEST,
        context.allowTF32CuDNN()}) {
    text += flag ? '1' : '0';
  }
  return text;
}

TEST_CASE("two runs have the same hashes, at the beginning and at each epoch's end") {
  auto const first = marks({});
  REQUIRE(first.size() == 4);
  for (std::uint64_t epoch = 0; epoch <= 3; ++epoch) {
    CHECK(first[epoch].epoch == epoch);
    CHECK(first[epoch].step == 6 * epoch);
    for (std::uint64_t before = 0; before < epoch; ++before) {
      CHECK(first[epoch].hash != first[before].hash);
    }
  }
  CHECK((marks({}) == first));
  auto const other = marks({.seed = 1});
  CHECK(other[0] == first[0]);
  CHECK(other[1].hash != first[1].hash);
}

TEST_CASE("a run that ends within an epoch has a hash of its end") {
  auto const found = marks({.steps = 8});
  REQUIRE(found.size() == 3);
  CHECK(found[2].epoch == 1);
  CHECK(found[2].step == 8);
}

TEST_CASE("the hash covers names, types, shapes and every bit of parameters and buffers") {
  auto const base = module();
  std::uint64_t const hash = frugal::hash_of_tensors(*base);
  CHECK(frugal::hash_of_tensors(*module()) == hash);
  at::NoGradGuard const no_gradients;
  base->norm->running_mean[3].fill_(-0.0);  // it was 0.0
  CHECK(frugal::hash_of_tensors(*base) != hash);
  base->norm->running_mean[3].fill_(0.0);
  CHECK(frugal::hash_of_tensors(*base) == hash);
  base->second->bias = base->second->bias.view({3, 1});
  torch::nn::Linear a(3, 2);
  torch::nn::Linear b(2, 3);
  for (auto const& net : {a, b}) {
    for (at::Tensor const& parameter : net->parameters()) parameter.fill_(1);
  }
  CHECK(frugal::hash_of_tensors(*a) != frugal::hash_of_tensors(*b));
}

TEST_CASE("LibTorch is deterministic during fit, and restored afterwards") {
  at::Context& context = at::globalContext();
  auto const precisions = [&] {
    std::vector<at::Float32Precision> all;
    for (auto const backend : {at::Float32Backend::CUDA, at::Float32Backend::MKLDNN}) {
      for (auto const op : {at::Float32Op::CONV, at::Float32Op::RNN, at::Float32Op::MATMUL}) {
        all.push_back(context.float32Precision(backend, op));
      }
    }
    return all;
  };
  std::string const before = flags();
  auto const precise = precisions();
  std::string within;
  Spy spy{.each_step = [&](frugal::Counters const&) { within = flags(); }};
  marks({.epochs = 1}, spy);
  CHECK(within == "1010110");
  CHECK(flags() == before);
  CHECK((precisions() == precise));

  context.setDeterministicAlgorithms(true, /*warn_only=*/true);
  context.setBenchmarkCuDNN(true);
  context.setFloat32MatmulPrecision("medium");
  std::string const set = flags();
  spy.each_step = [&](frugal::Counters const&) {
    within = flags();
    throw std::runtime_error("in the middle");
  };
  CHECK_THROWS_AS(marks({.epochs = 1}, spy), std::runtime_error);
  CHECK(within == "1010110");
  CHECK(flags() == set);
  CHECK(context.float32MatmulPrecision() == at::Float32MatmulPrecision::MEDIUM);
  context.setDeterministicAlgorithms(false, false);
  context.setBenchmarkCuDNN(false);
  context.setFloat32MatmulPrecision("highest");
  CHECK(flags() == before);
}

TEST_CASE("an operator without a deterministic kernel ends the run, and is named") {
  auto const objective = [](std::shared_ptr<Mlp>& net, frugal::Batch const& batch) {
    at::Tensor const target = batch.target.clone();
    target.put_(at::zeros({1}, at::kLong), at::zeros({1}, at::kLong), /*accumulate=*/false);
    return at::cross_entropy_loss(net->forward(batch.data), target);
  };
  frugal::Trainer trainer{module(), objective, frugal::Settings{}, Optimize<SGD>{},
                          Audit<BitExact>{}};
  try {
    static_cast<void>(trainer.fit(TensorDataset(samples(8))));
    FAIL("no error came");
  } catch (frugal::ModuleError const& error) {
    CHECK(std::string(error.what()).find("put_ does not have a deterministic implementation") !=
          std::string::npos);
  }
}

/// The "audit" lines of a log: epoch, step and hash.
std::vector<std::string> lines(std::filesystem::path const& file) {
  std::vector<std::string> found;
  for (std::string const& line : lines_of(text_of(file))) {
    Json const json = Json::parse(line);
    if (json.at("event") != "audit") continue;
    found.push_back(json.at("epoch").dump() + ' ' + json.at("step").dump() + ' ' +
                    json.at("hash").get<std::string>());
  }
  return found;
}
std::vector<std::string> lines(std::vector<AuditMark> const& all) {
  std::vector<std::string> found;
  for (AuditMark const& mark : all) {
    found.push_back(std::to_string(mark.epoch) + ' ' + std::to_string(mark.step) + ' ' +
                    frugal::hex_of(mark.hash));
  }
  return found;
}

TEST_CASE("a resumed run has the hashes of an uninterrupted one, in its log too") {
  auto const whole = marks({});
  for (std::uint64_t const steps : {9U, 8U}) {  // at a save's cadence, and off it
    CAPTURE(steps);
    TemporaryFolder const folder;
    auto const part = [&](std::optional<std::uint64_t> limit) {
      return marks({.run_dir = folder.path(), .steps = limit}, frugal::Log<Every<2>>{},
                   frugal::Checkpoint<Every<3>>{});
    };
    auto const first = part(steps);
    REQUIRE(first.size() == 3);
    CHECK(first[2].step == steps);
    CHECK((part(steps) == first));
    CHECK(lines(folder / "metrics.jsonl") == lines(first));

    CHECK((part(std::nullopt) == whole));
    auto expected = lines(whole);
    // A save after the end of the first part includes the line of that end.
    if (steps == 8) expected.insert(expected.begin() + 2, lines(first)[2]);
    CHECK(lines(folder / "metrics.jsonl") == expected);
    CHECK((part(std::nullopt) == whole));
    CHECK(lines(folder / "metrics.jsonl") == expected);
  }
}

TEST_CASE("another number of threads after a resume is reported") {
  TemporaryFolder const folder;
  int const threads = at::get_num_threads();
  auto const run = [&](std::uint64_t epochs) {
    frugal::Trainer trainer{module(),
                            frugal::CrossEntropy{},
                            frugal::Settings{.run_dir = folder.path(), .epochs = epochs},
                            Optimize<SGD>{},
                            Audit<BitExact>{},
                            frugal::Checkpoint<Every<3>>{}};
    return trainer.fit(TensorDataset(samples(22), {.batch = 4})).warnings;
  };
  CHECK(run(1).empty());
  at::set_num_threads(threads + 1);
  auto const advice = run(2);
  at::set_num_threads(threads);
  REQUIRE(advice.size() == 2);  // the checkpoint gives the recommendation as well
  CHECK(advice[1].find("resumed with " + std::to_string(threads + 1)) != std::string::npos);
}

TEST_CASE("cuBLAS requires a workspace of a fixed size") {
  CHECK_NOTHROW(frugal::detail::require_workspace(":4096:8"));
  CHECK_NOTHROW(frugal::detail::require_workspace(":16:8"));
  CHECK_THROWS_AS(frugal::detail::require_workspace(nullptr), frugal::SettingsError);
  CHECK_THROWS_AS(frugal::detail::require_workspace(":0:0"), frugal::SettingsError);
}

}  // namespace frugal_test::policy_audit
