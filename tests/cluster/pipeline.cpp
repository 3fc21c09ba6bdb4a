// SPDX-License-Identifier: Apache-2.0
// needs: cluster
#include <doctest/doctest.h>

#include <frugal/cluster.hpp>
#include <frugal/frugal.hpp>

#include "support/rank_processes.hpp"

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <sstream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace frugal_test::cluster_pipeline {

namespace fr = frugal;
namespace rank_processes = support::rank_processes;

/// Keeps the gradients of the first window, by name.
struct Keep {
  struct kind : fr::optional_kind {
    static constexpr std::string_view name = "test.Keep";
    static constexpr fr::Stage stage = fr::Stage::prepare;  // before gradients are clipped
  };
  using listens = fr::list<fr::on::gradients>;
  using properties = fr::list<fr::property::knows_stages>;

  inline static std::vector<std::pair<std::string, at::Tensor>> gradients;

  struct State {
    using transient = void;
    explicit State(Keep const&) {}
    void on_gradients(fr::Gradients const& phase) const {
      if (phase.counters().step != 0) return;
      fr::Parameters const& all = phase.parameters();
      for (std::size_t i = 0; i < all.size(); ++i) {
        if (all.tensors[i].grad().defined())
          gradients.emplace_back(all.names[i], all.tensors[i].grad().clone());
      }
    }
  };
};

torch::nn::Sequential layers(double dropout) {
  torch::manual_seed(3);
  torch::nn::Sequential net;
  net->push_back(torch::nn::Linear(8, 16));
  for (int i = 0; i < 7; ++i) {
    net->push_back(torch::nn::Tanh());
    net->push_back(torch::nn::Linear(16, 16));
    net->push_back(torch::nn::Dropout(dropout));
  }
  net->push_back(torch::nn::Linear(16, 12));
  return net;
}

/// A list of blocks with layers before and after it, of which two share their weight.
struct BlocksImpl : torch::nn::Module {
  explicit BlocksImpl(double dropout) : drop(dropout) {
    for (int i = 0; i < 4; ++i) blocks->push_back(torch::nn::Linear(16, 16));
  }
  torch::nn::Embedding embed{register_module("embed", torch::nn::Embedding(12, 16))};
  torch::nn::ModuleList blocks{register_module("blocks", torch::nn::ModuleList())};
  torch::nn::LayerNorm norm{
      register_module("norm", torch::nn::LayerNorm(torch::nn::LayerNormOptions({16})))};
  torch::nn::Dropout drop;
  torch::Tensor forward(torch::Tensor const& tokens) {
    torch::Tensor x = drop(embed(tokens));
    x = fr::each(blocks, x, [drop = drop](auto& block, torch::Tensor each) mutable {
      return each + drop(block->template as<torch::nn::Linear>()->forward(each).tanh());
    });
    return torch::nn::functional::linear(drop(norm(x)).mean(1), embed->weight);
  }
};
TORCH_MODULE(Blocks);

Blocks blocks(double dropout) {
  torch::manual_seed(4);
  return Blocks(dropout);
}

at::Tensor inputs(torch::nn::Sequential const&) {
  return at::randn({70, 8}, at::make_generator<at::CPUGeneratorImpl>(5));
}
at::Tensor inputs(Blocks const&) {
  return at::randint(0, 12, {70, 5}, at::make_generator<at::CPUGeneratorImpl>(5));
}
at::Tensor targets() {
  return at::randint(0, 12, {70}, at::make_generator<at::CPUGeneratorImpl>(6));
}

constexpr int batch = 4, window = 8,
              epochs = 3;  // windows of 8, 8 and 2, the last batch has 2 samples

/// The rival: LibTorch's own optimizer and clipping, in one process. Returns the first gradients.
template <class Net>
std::vector<std::pair<std::string, at::Tensor>> train_by_hand(Net& net) {
  torch::optim::SGD optimizer(net->parameters(), torch::optim::SGDOptions(0.05).momentum(0.9));
  at::Tensor const x = inputs(net), y = targets();
  std::vector<std::pair<std::string, at::Tensor>> first;
  for (int epoch = 0; epoch < epochs; ++epoch) {
    for (std::int64_t begin = 0; begin < 70; begin += batch * window) {
      std::int64_t const end = std::min<std::int64_t>(begin + batch * window, 70);
      optimizer.zero_grad();
      for (std::int64_t at = begin; at < end; at += batch) {
        std::int64_t const count = std::min<std::int64_t>(batch, end - at);
        auto const sum = torch::nn::functional::CrossEntropyFuncOptions().reduction(torch::kSum);
        (torch::nn::functional::cross_entropy(net->forward(x.narrow(0, at, count)),
                                              y.narrow(0, at, count), sum) /
         static_cast<double>(end - begin))
            .backward();
      }
      if (first.empty()) {
        for (auto const& item : net->named_parameters())
          first.emplace_back(item.key(), item.value().grad().clone());
      }
      torch::nn::utils::clip_grad_norm_(net->parameters(), 0.5);
      optimizer.step();
    }
  }
  return first;
}

/// The largest difference of tensors that both have, relative to the largest element of each.
double difference(std::vector<std::pair<std::string, at::Tensor>> const& some,
                  std::vector<std::pair<std::string, at::Tensor>> const& all) {
  double most = 0;
  REQUIRE(!some.empty());
  for (auto const& [name, tensor] : some) {
    auto const there = std::ranges::find(all, name, &std::pair<std::string, at::Tensor>::first);
    REQUIRE(there != all.end());
    double const scale = there->second.abs().max().item<double>();
    most = std::max(most, (tensor - there->second).abs().max().item<double>() / scale);
  }
  return most;
}

std::vector<std::pair<std::string, at::Tensor>> weights_of(torch::nn::Module const& module) {
  std::vector<std::pair<std::string, at::Tensor>> all;
  for (auto const& item : module.named_parameters()) all.emplace_back(item.key(), item.value());
  return all;
}

/// Steps, losses, elements here, differences of first gradients and final weights from the rival, and
/// the hash of the whole.
template <class Schedule, class Precision = fr::Precision<fr::FP32>, class Make>
std::string train(Make const& make, double dropout) {
  auto net = make(dropout);
  fr::TensorDataset const all(inputs(net), targets(), {.batch = batch, .shuffle = dropout != 0});
  fr::TensorDataset train = all, valid(inputs(net), targets(), {.batch = 16, .shuffle = false});
  fr::Trainer trainer{net,
                      fr::CrossEntropy{},
                      fr::Settings{.epochs = epochs},
                      fr::Optimize<fr::SGD>{.lr = 0.05, .momentum = 0.9},
                      fr::Accumulate<window>{},
                      fr::ClipNorm<0.5>{},
                      Precision{},
                      fr::Average<fr::Ema<0.9>>{.at_end = fr::Weights::trained},
                      fr::Pipeline<Schedule>{},
                      Keep{}};
  fr::Report const report = trainer.fit(train, valid);
  double gradients = 0, weights = 0;
  if (dropout == 0) {
    auto rival = make(dropout);
    gradients = difference(Keep::gradients, train_by_hand(rival));
    weights = difference(weights_of(*net), weights_of(*rival));
  }
  std::int64_t elements = 0;
  for (at::Tensor const& each : net->parameters()) elements += each.numel();
  auto whole = make(dropout);
  fr::gather_stages(*net, *whole);
  char numbers[200];
  std::snprintf(numbers, sizeof numbers, "%d %.17g %.17g %d %.3g %.3g ",
                static_cast<int>(report.steps), report.train_loss, report.last()["loss"],
                static_cast<int>(elements), gradients, weights);
  return numbers + fr::module_identity(*whole);
}

struct Answer {
  int steps = 0;
  double train_loss = 0, valid_loss = 0;
  std::int64_t elements = 0;
  double gradients = 0, weights = 0;
  std::string identity{};
};
Answer read(std::string const& text) {
  std::istringstream in(text.substr(text.find(' ') + 1));
  Answer all;
  in >> all.steps >> all.train_loss >> all.valid_loss >> all.elements >> all.gradients >>
      all.weights;
  std::getline(in, all.identity);
  return all;
}

TEST_CASE("a rank of a world" * doctest::skip()) {
  std::string const name = rank_processes::job();
  using Plain = fr::OneForwardOneBackward;
  std::string result;
  if (name == "layers") result = train<Plain>(layers, 0);
  if (name == "layers, dropout") result = train<Plain>(layers, 0.2);
  if (name == "layers, interleaved") result = train<fr::Interleaved<2>>(layers, 0);
  if (name == "layers, interleaved, dropout") result = train<fr::Interleaved<2>>(layers, 0.2);
  if (name == "layers, fp16, dropout")
    result = train<fr::Interleaved<2>, fr::Precision<fr::FP16>>(layers, 0.2);
  if (name == "blocks") result = train<Plain>(blocks, 0);
  if (name == "blocks, dropout") result = train<Plain>(blocks, 0.2);
  rank_processes::answer(result);
}

TEST_CASE("2 and 4 processes have the gradients and weights of a loop by hand in one") {
  for (std::string const name : {"layers", "layers, interleaved", "blocks"}) {
    for (int const size : name == "blocks" ? std::vector{4} : std::vector{2, 4}) {
      CAPTURE(name);
      CAPTURE(size);
      std::vector<std::string> const results = rank_processes::run(name, size);
      Answer const first = read(results.front());
      for (std::string const& result : results) {
        CAPTURE(result);
        Answer const found = read(result);
        CHECK(found.steps == 9);
        CHECK(found.gradients < 1e-6);
        CHECK(found.weights < 1e-6);
        CHECK(found.train_loss == first.train_loss);
        CHECK(found.valid_loss == first.valid_loss);
      }
    }
  }
}

TEST_CASE("1, 2 and 4 processes come to the same bits, with dropout and shuffled data") {
  for (std::string const name :
       {"layers, dropout", "layers, interleaved, dropout", "layers, fp16, dropout"}) {
    Answer const alone = read(rank_processes::run(name, 1).front());
    for (int const size : name == "layers, dropout" ? std::vector{2, 4} : std::vector{4}) {
      CAPTURE(name);
      CAPTURE(size);
      std::vector<std::string> const results = rank_processes::run(name, size);
      CHECK(read(results.front()).identity == alone.identity);
      std::int64_t all = 0;
      for (std::string const& result : results) {
        Answer const found = read(result);
        CHECK(found.train_loss == alone.train_loss);
        CHECK(found.valid_loss == alone.valid_loss);
        CHECK(found.elements < alone.elements);
        all += found.elements;
      }
      CHECK(all == alone.elements);  // each layer is in one process
    }
  }
}

TEST_CASE("layers around a list are in all processes, and come out the same") {
  Answer const alone = read(rank_processes::run("blocks, dropout", 1).front());
  for (std::string const& result : rank_processes::run("blocks, dropout", 4)) {
    Answer const found = read(result);
    CAPTURE(result);
    CHECK(found.train_loss == doctest::Approx(alone.train_loss).epsilon(1e-6));
    CHECK(found.valid_loss == doctest::Approx(alone.valid_loss).epsilon(1e-6));
    CHECK(found.elements == alone.elements - 3 * (16 * 16 + 16));
  }
}

}  // namespace frugal_test::cluster_pipeline
