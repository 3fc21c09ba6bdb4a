// SPDX-License-Identifier: Apache-2.0
// What the levers of bench/model.py cost and save that make models smaller. Prints one line of JSON.
//
//     model_parts live|cached FOLDER     five epochs of distillation, the teacher asked live or once
//     model_parts cut IMAGES FOLDER      a residual network, cut and tuned; its weights go to FOLDER
//     model_parts linear                 one linear layer, in FP32 and quantized
//     model_parts int8                   the linear layers of a GPT, forward and backward
//     model_parts seeds TEXT STEPS       a GPT trained in FP32 and INT8, with five seeds
#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <exception>
#include <filesystem>
#include <functional>
#include <iostream>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <torch/torch.h>

#include <frugal/data.hpp>
#include <frugal/frugal.hpp>
#include <frugal/model.hpp>

#include "../../examples/finetune/letters.hpp"
#include "../classifier.hpp"

namespace fr = frugal;
namespace nn = torch::nn;
using frugal_bench::Classifier;
using nlohmann::json;
using Clock = std::chrono::steady_clock;

namespace {

double since(Clock::time_point begun) {
  return std::chrono::duration<double>(Clock::now() - begun).count();
}

/// Seconds of the fastest of some calls.
double fastest(int calls, std::function<void()> const& call) {
  double best = 1e9;
  for (int i = 0; i < calls; ++i) {
    auto const begun = Clock::now();
    call();
    best = std::min(best, since(begun));
  }
  return best;
}

// ---- a teacher ----------------------------------------------------------------------------------

/// 512 texts of 48 tokens.
struct Tokens {
  at::Tensor ids = at::randint(5, 30000, {512, 48}), labels = at::randint(0, 6, {512});
  std::uint64_t size() const { return 512; }
  std::pair<at::Tensor, std::int64_t> get(std::uint64_t i) const {
    auto const at = static_cast<std::int64_t>(i);
    return {ids[at], labels[at].item<std::int64_t>()};
  }
  std::string identity() const { return "512 texts of 48 random tokens"; }
};

json distill(bool cached, std::filesystem::path const& folder) {
  torch::manual_seed(1);
  Tokens const tokens;
  Classifier teacher;
  Classifier student(
      fr::models::BertOptions{.width = 192, .layers = 3, .heads = 6, .intermediate = 768});
  fr::Distill<fr::Temperature<4>> const distill{.teachers = {fr::Teacher(teacher)}, .alpha = 0.9};
  auto const fit = [&](auto source) {
    fr::Trainer trainer{student, distill.objective(fr::CrossEntropy{}), fr::Settings{.epochs = 5},
                        fr::Optimize<fr::AdamW>{}, distill};
    return trainer.fit(source).train_loss;
  };
  auto const begun = Clock::now();
  double const loss =
      cached ? fit(fr::CachedTeacher(tokens, distill, {.folder = folder, .out = nullptr})
                       .source({.batch = 32}))
             : fit(fr::loader(tokens, fr::LoaderOptions{.batch = 32}));
  return {{"seconds", since(begun)}, {"loss", loss}};
}

// ---- channels -----------------------------------------------------------------------------------

nn::Conv2d convolution(std::int64_t inputs, std::int64_t outputs, std::int64_t stride) {
  return nn::Conv2d(nn::Conv2dOptions(inputs, outputs, 3).stride(stride).padding(1).bias(false));
}

struct BlockImpl : nn::Module {
  explicit BlockImpl(std::int64_t width)
      : conv1(register_module("conv1", convolution(width, width, 1))),
        bn1(register_module("bn1", nn::BatchNorm2d(width))),
        conv2(register_module("conv2", convolution(width, width, 1))),
        bn2(register_module("bn2", nn::BatchNorm2d(width))) {}
  at::Tensor forward(at::Tensor const& x) { return (x + bn2(conv2(bn1(conv1(x)).relu()))).relu(); }
  nn::Conv2d conv1;
  nn::BatchNorm2d bn1;
  nn::Conv2d conv2;
  nn::BatchNorm2d bn2;
};
TORCH_MODULE(Block);

/// For images of 28 x 28. bench/model_pruning.py has the same network.
struct ResNetImpl : nn::Module {
  at::Tensor forward(at::Tensor const& x) {
    at::Tensor const half = bn1(conv1(x)).relu();
    at::Tensor const quarter = bn2(conv2(first(half))).relu();
    return head(second(quarter).mean({2, 3}));
  }
  /// Multiplications of an image's forward pass, in the convolutions.
  double operations() const {
    auto const of = [](nn::Conv2d const& conv, double pixels) {
      return static_cast<double>(conv->weight.numel()) * pixels;
    };
    return of(conv1, 14 * 14) + of(first->conv1, 14 * 14) + of(first->conv2, 14 * 14) +
           of(conv2, 7 * 7) + of(second->conv1, 7 * 7) + of(second->conv2, 7 * 7);
  }
  nn::Conv2d conv1{register_module("conv1", convolution(1, 128, 2))};
  nn::BatchNorm2d bn1{register_module("bn1", nn::BatchNorm2d(128))};
  Block first{register_module("first", Block(128))};
  nn::Conv2d conv2{register_module("conv2", convolution(128, 256, 2))};
  nn::BatchNorm2d bn2{register_module("bn2", nn::BatchNorm2d(256))};
  Block second{register_module("second", Block(256))};
  nn::Linear head{register_module("head", nn::Linear(256, 10))};
};
TORCH_MODULE(ResNet);

json cut(std::string const& images, std::filesystem::path const& folder) {
  torch::manual_seed(1);
  fr::Batch const train = fr::read_mnist(images, fr::Split::train);
  fr::Batch const test = fr::read_mnist(images, fr::Split::test);
  fr::TensorDataset data(train.data.narrow(0, 0, 4000), train.target.narrow(0, 0, 4000),
                         {.batch = 64});
  fr::TensorDataset judged(test.data.narrow(0, 0, 2000), test.target.narrow(0, 0, 2000),
                           {.batch = 200, .shuffle = false});
  ResNet net;
  auto const fit = [&](std::uint64_t epochs, double rate) {
    fr::Trainer trainer{net, fr::CrossEntropy{}, fr::Settings{.epochs = epochs},
                        fr::Optimize<fr::AdamW>{.lr = rate},
                        fr::Schedule<fr::Warmup<10>, fr::LinearDecay<>>{}};
    static_cast<void>(trainer.fit(data));
  };
  auto const accuracy = [&] {
    fr::Trainer trainer{net, fr::CrossEntropy{}, fr::Settings{}, fr::Optimize<fr::AdamW>{},
                        fr::Validate<fr::Every<1, fr::Epoch>, fr::Accuracy>{}};
    return trainer.evaluate(judged)["accuracy"];
  };
  auto const seconds = [&] {
    at::NoGradGuard const no_gradients;
    net->eval();
    at::Tensor const some = test.data.narrow(0, 0, 64);
    return fastest(30, [&] { net->forward(some); });
  };
  fit(3, 2e-3);
  fr::save_weights(net, folder);
  json made{{"accuracy", accuracy()}, {"seconds", seconds()}};
  double const before = net->operations();
  fr::prune_structured(net, test.data.narrow(0, 0, 2),
                       fr::Structured<fr::KeepShare<0.75>, fr::RoundTo<fr::Auto>>{});
  made["operations"] = net->operations() / before;
  made["cut_accuracy"] = accuracy();
  made["cut_seconds"] = seconds();
  fit(1, 1e-3);
  made["tuned_accuracy"] = accuracy();
  return made;
}

// ---- integers -----------------------------------------------------------------------------------

json linear() {
  at::NoGradGuard const no_gradients;
  auto const net = [] { return nn::Sequential(nn::Linear(384, 1536)); };
  at::Tensor const x = at::randn({32, 384});
  nn::Sequential plain = net(), quantized = net();
  plain->eval();
  quantized->eval();
  fr::quantize<fr::INT8>(quantized);
  json made;
  made["fp32"] = fastest(3000, [&] { plain->forward(x); });
  made["int8"] = fastest(3000, [&] { quantized->forward(x); });
  return made;
}

/// The linear layers of a layer of a GPT, one after the other; each needs the gradient of its input.
struct LinearsImpl : nn::Module {
  LinearsImpl() {
    for (auto const& [inputs, outputs] : std::array<std::pair<std::int64_t, std::int64_t>, 6>{
             {{384, 384}, {384, 384}, {384, 384}, {384, 384}, {384, 1536}, {1536, 384}}}) {
      all.push_back(register_module(std::to_string(all.size()), nn::Linear(inputs, outputs)));
    }
  }
  at::Tensor forward(at::Tensor const& input) {
    at::Tensor x = input + shift;
    for (nn::Linear& each : all) x = each(x);
    return x;
  }
  at::Tensor shift = register_parameter("shift", at::zeros({384}));
  std::vector<nn::Linear> all{};
};
TORCH_MODULE(Linears);

/// Seconds from the begin of a forward pass to the end of the backward pass.
struct PassClock {
  struct kind : fr::optional_kind {
    static constexpr std::string_view name = "PassClock";
  };
  using listens = fr::list<fr::around::forward, fr::on::gradients>;
  double* best = nullptr;
  class State {
   public:
    using transient = void;
    explicit State(PassClock const& of) : best_(of.best) {}
    template <class Next>
    fr::Loss around_forward(fr::Forward const&, Next&& next) {
      begun_ = Clock::now();
      return next();
    }
    void on_gradients(fr::Gradients&) { *best_ = std::min(*best_, since(begun_)); }

   private:
    double* best_;
    Clock::time_point begun_{};
  };
};

template <class Precision>
double passes(Precision const& precision) {
  torch::manual_seed(1);
  Linears net;
  fr::TensorDataset data(at::randn({1024 * 12, 384}), at::randn({1024 * 12, 384}), {.batch = 1024});
  double best = 1e9;
  auto const objective = [](Linears& module, fr::Batch const& batch) {
    return fr::Loss{.value = (module(batch.data).to(at::kFloat) * batch.target).sum()};
  };
  fr::Trainer trainer{
      net,       objective,       fr::Settings{.steps = 12}, fr::Optimize<fr::SGD>{.lr = 0},
      precision, PassClock{&best}};
  static_cast<void>(trainer.fit(data));
  return best;
}

json seeds(std::string const& path, std::uint64_t steps) {
  finetune::Text const text(path);
  auto const train = [&](std::uint64_t seed, auto const& precision) {
    torch::manual_seed(seed);
    finetune::Letters net(finetune::LlamaOptions{.vocabulary = 128,
                                                 .width = 128,
                                                 .layers = 4,
                                                 .heads = 4,
                                                 .key_value_heads = 2,
                                                 .intermediate = 384});
    auto data = text.train();
    auto test = text.test();
    fr::Trainer trainer{net,
                        fr::CrossEntropy{},
                        fr::Settings{.steps = steps, .seed = seed},
                        fr::Optimize<fr::AdamW>{.lr = 2e-3},
                        fr::Schedule<fr::Warmup<20>, fr::LinearDecay<>>{},
                        fr::ClipNorm<1.0>{},
                        precision};
    static_cast<void>(trainer.fit(data));
    return trainer.evaluate(test)["loss"];
  };
  json made{{"fp32", json::array()}, {"int8", json::array()}};
  for (std::uint64_t seed = 1; seed <= 5; ++seed) {
    made["fp32"].push_back(train(seed, fr::Precision<fr::FP32>{}));
    made["int8"].push_back(train(seed, fr::Precision<fr::INT8>{}));
  }
  return made;
}

json measure(std::vector<std::string> const& words) {
  std::string const& way = words.at(0);
  if (way == "live" || way == "cached") return distill(way == "cached", words.at(1));
  if (way == "cut") return cut(words.at(1), words.at(2));
  if (way == "linear") return linear();
  if (way == "seeds") return seeds(words.at(1), std::stoull(words.at(2)));
  if (way == "int8") {
    return {{"fp32", passes(fr::Precision<fr::FP32>{})},
            {"bf16", passes(fr::Precision<fr::BF16>{})},
            {"int8", passes(fr::Precision<fr::INT8>{})}};
  }
  throw std::invalid_argument("there is no way '" + way + "'");
}

}  // namespace

int main(int count, char** arguments) {
  try {
    std::cout << measure({arguments + 1, arguments + count}) << '\n';
  } catch (std::exception const& error) {
    std::cerr << error.what() << '\n';
    return 1;
  }
  return 0;
}
