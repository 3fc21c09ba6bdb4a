// SPDX-License-Identifier: Apache-2.0
// needs: cluster
// left to clang: shard.cpp has the same templates
#include <doctest/doctest.h>

#include <frugal/base/hash.hpp>
#include <frugal/cluster.hpp>
#include <frugal/data.hpp>
#include <frugal/frugal.hpp>

#include "support/rank_processes.hpp"
#include "support/ranks.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace frugal_test::cluster_divided_windows {

namespace fr = frugal;
namespace ranks = support::ranks;
namespace rank_processes = support::rank_processes;

/// Dropout in validations too, because it is no submodule.
struct NetImpl : torch::nn::Module {
  torch::nn::Linear in{register_module("in", torch::nn::Linear(8, 16))};
  torch::nn::Linear out{register_module("out", torch::nn::Linear(16, 3))};
  torch::nn::Dropout drop{0.2};
  torch::Tensor forward(torch::Tensor const& x) { return out(drop(in(x).relu())); }
};
TORCH_MODULE(Net);

struct Data {
  at::Tensor x, y;
};
Data data(std::int64_t samples = 64) {
  at::Generator const generator = at::make_generator<at::CPUGeneratorImpl>(5);
  at::Tensor const x = at::randn({samples, 8}, generator);
  return {x, at::randint(0, 3, {samples}, generator)};
}

/// Counts its calls in validations, and reports the mean of the logits.
struct Counting {
  std::shared_ptr<int> measured = std::make_shared<int>(0);
  template <class Module>
  fr::Loss operator()(Module& net, fr::Batch const& batch) const {
    if (!net->is_training()) ++*measured;
    at::Tensor const logits = net(batch.data);
    fr::Loss loss{.value = torch::nn::functional::cross_entropy(logits, batch.target),
                  .output = logits};
    // Of validations alone, and of some batches.
    if (!net->is_training() && batch.target[0].item<std::int64_t>() != 0) {
      loss.scalars = {{"mean_logit", logits.mean()}};
    }
    return loss;
  }
};

std::string text_of(fr::Metrics const& found) {
  std::string text;
  for (auto const& [name, value] : found) {
    char one[96];
    std::snprintf(one, sizeof one, "%s %a, ", name.c_str(), value);
    text += one;
  }
  return text;
}

/// With another name than that of TopK<>{.k = 2}.
struct ConstantTop2 : fr::TopK<2> {
  static constexpr std::string_view name = "constant_top2";
};

using Metrics = fr::Validate<fr::Every<2>, fr::Accuracy, fr::Perplexity, fr::ConfusionMatrix,
                             fr::RocAuc<fr::Macro>, fr::TopK<>, ConstantTop2>;

/// A run with three validation sources: of 13 batches, of 2, and of 130.
std::string train(int& measured) {
  torch::manual_seed(3);
  Net net;
  Data const all = data(), many = data(520);
  fr::TensorDataset train(all.x, all.y, {.batch = 4});
  fr::TensorDataset valid(all.x.narrow(0, 0, 50), all.y.narrow(0, 0, 50), {.batch = 4});
  fr::TensorDataset few(all.x.narrow(0, 0, 8), all.y.narrow(0, 0, 8), {.batch = 4});
  fr::TensorDataset blocks(many.x, many.y, {.batch = 4});
  Counting objective;
  fr::Trainer trainer{net,
                      objective,
                      fr::Settings{.epochs = 6},
                      fr::Optimize<fr::AdamW>{.lr = 3e-2},
                      fr::Accumulate<8>{},
                      Metrics{.metrics = {{}, {}, {}, {}, {.k = 2}, {}}},
                      fr::EarlyStop<fr::Patience<3>>{.restore_best = true},
                      fr::Replicate<fr::Exact>{}};
  fr::Report const report =
      trainer.fit(train, valid, fr::named<"few">(few), fr::named<"blocks">(blocks));
  measured = *trainer.objective().measured;
  std::string text = std::to_string(report.steps) + " steps, loss ";
  for (fr::Validation const& each : report.validations) text += text_of(each.metrics);
  text += report.last().table("confusion_matrix").sum().item<std::int64_t>() == 50 ? "" : "lost ";
  text += report.last()["top2"] == report.last()["constant_top2"] ? "" : "another top2 ";
  text += "by '" + report.stopped_by + "', ";
  return text + fr::module_identity(*net);
}

TEST_CASE("a rank of a world" * doctest::skip()) {
  int measured = 0;
  std::string const text = train(measured);
  std::size_t const validations = [&] {
    std::size_t count = 0;
    for (std::size_t at = text.find("blocks/loss"); at != std::string::npos;
         at = text.find("blocks/loss", at + 1)) {
      ++count;
    }
    return count;
  }();
  // Of all numbers a hash: what a rank says is cut to some length.
  std::string const last = text.substr(text.rfind("blocks/loss") - 900);
  rank_processes::answer(std::to_string(fr::Hash::of(std::as_bytes(std::span(text)))) + " " + last +
                         " MEASURED " + std::to_string(measured / static_cast<int>(validations)));
}

std::pair<std::string, int> split(std::string const& answer) {
  std::size_t const at = answer.find(" MEASURED ");
  return {answer.substr(0, at), std::stoi(answer.substr(at + 10))};
}

TEST_CASE("the same validations, to the bit, of 1, 2, 4 and 8 processes that divide them") {
  auto const [one, all] = split(rank_processes::run("", 1).front());
  CAPTURE(one);
  CHECK(one.find("mean_logit") != std::string::npos);
  CHECK(one.find("few/roc_auc_ovr") != std::string::npos);
  CHECK(one.find("blocks/top2") != std::string::npos);
  CHECK(one.find("another top2") == std::string::npos);
  CHECK(all >= 13 + 2 + 130);
  for (int size : {2, 4, 8}) {
    for (std::string const& each : rank_processes::run("", size)) {
      auto const [text, measured] = split(each);
      CHECK(text == one);
      // Its blocks, one batch where it has no block, and the trial.
      CHECK(measured <= all / size + 8);
    }
  }
}

/// What cannot be put together: a metric of a user's own without `reduce`.
struct Largest {
  static constexpr std::string_view name = "largest";
  double seen = 0;
  template <class B>
  void add(fr::Loss const& loss, B const&) {
    seen = std::max(seen, loss.value.template item<double>());
  }
  double result() const { return seen; }
};

/// Validates in 4 threads; without dropout, whose numbers threads would share.
template <class... Ms>
std::vector<std::string> validate_in_threads(std::vector<int>& measured, Data const& all,
                                             std::vector<std::string>& results) {
  std::vector<torch::nn::Linear> nets;
  for (int i = 0; i < 4; ++i) {
    torch::manual_seed(3);
    nets.emplace_back(8, 3);
  }
  return ranks::run(4, [&](std::shared_ptr<fr::Communicator> const& with) {
    auto const rank = static_cast<std::size_t>(with->rank());
    torch::nn::Linear net = nets[rank];
    fr::TensorDataset train(all.x.narrow(0, 0, 16), all.y.narrow(0, 0, 16), {.batch = 4});
    fr::TensorDataset valid(all.x, all.y, {.batch = 4, .shuffle = false});
    fr::Trainer trainer{net,
                        Counting{},
                        fr::Settings{.epochs = 1},
                        fr::Optimize<fr::SGD>{.lr = 0.1},
                        fr::Accumulate<4>{},
                        fr::Validate<fr::Every<1, fr::Epoch>, Ms...>{},
                        fr::Replicate<fr::Ring>{.with = with}};
    fr::Report const report = trainer.fit(train, valid);
    measured[rank] = *trainer.objective().measured;
    // Each measures all of it, and adds up in the same order.
    fr::Metrics const evaluated = trainer.evaluate(valid);
    results[rank] = text_of(report.last());
    if (text_of(evaluated) != results[rank]) throw std::runtime_error("evaluate: other numbers");

    // In one pass, by hand.
    at::NoGradGuard const no_gradients;
    at::Tensor const logits = net(all.x);
    double const loss = torch::nn::functional::cross_entropy(logits, all.y).item<double>();
    double const right = logits.argmax(1).eq(all.y).to(at::kDouble).mean().item<double>();
    if (std::abs(report.last()["loss"] - loss) > 1e-6) throw std::runtime_error("loss");
    if (report.last().has("accuracy") && report.last()["accuracy"] != right) {
      throw std::runtime_error("accuracy");
    }
  });
}

TEST_CASE("four processes measure what one pass gives, a quarter each") {
  std::vector<int> measured(4);
  std::vector<std::string> results(4);
  std::vector<std::string> const errors =
      validate_in_threads<fr::Accuracy, fr::RocAuc<fr::Macro>>(measured, data(), results);
  for (std::string const& error : errors) CHECK(error == "");
  // And two batches before the first step.
  CHECK(measured == std::vector<int>{4 + 2, 4 + 2, 4 + 2, 4 + 2});
  for (std::string const& result : results) CHECK(result == results.front());
}

TEST_CASE("a metric without `reduce` is measured in full by each process") {
  std::vector<int> measured(4);
  std::vector<std::string> results(4);
  std::vector<std::string> const errors =
      validate_in_threads<fr::Accuracy, Largest>(measured, data(), results);
  for (std::string const& error : errors) CHECK(error == "");
  CHECK(measured == std::vector<int>{16 + 2, 16 + 2, 16 + 2, 16 + 2});
  for (std::string const& result : results) CHECK(result == results.front());
}

TEST_CASE("an error of a metric in one process ends all, with its text") {
  std::vector<int> measured(4);
  std::vector<std::string> results(4);
  Data wrong = data();
  wrong.y[41] = 7;  // in batch 10, which the third process measures
  std::vector<std::string> const errors =
      validate_in_threads<fr::Accuracy, fr::RocAuc<fr::Macro>>(measured, wrong, results);
  CHECK(errors[2].find("label 7 is out of range") != std::string::npos);
  for (std::size_t const rank : {0U, 1U, 3U}) {
    CAPTURE(errors[rank]);
    CHECK(errors[rank].find("rank 2") != std::string::npos);
    CHECK(errors[rank].find("failed at step 0: frugal: label 7") != std::string::npos);
  }
}

}  // namespace frugal_test::cluster_divided_windows
