// SPDX-License-Identifier: Apache-2.0
// Compares recomputation bit by bit with the same code without Recompute. Shapes: B rows, F = 16
// features.
#include <doctest/doctest.h>
#include <torch/nn/functional/activation.h>
#include <torch/nn/modules/activation.h>
#include <torch/nn/modules/batchnorm.h>
#include <torch/nn/modules/container/modulelist.h>
#include <torch/nn/modules/container/sequential.h>
#include <torch/nn/modules/dropout.h>
#include <torch/nn/modules/linear.h>
#include <torch/nn/modules/normalization.h>

#include <frugal/policy/accumulate.hpp>
#include <frugal/policy/clip.hpp>
#include <frugal/policy/optimize.hpp>
#include <frugal/policy/recompute.hpp>
#include <frugal/policy/validate.hpp>
#include <frugal/trainer.hpp>
#include <thread>

#include "support/live_bytes.hpp"
#include "support/running.hpp"

namespace frugal_test::policy_recompute {

using namespace frugal_test::support;
namespace fr = frugal;
namespace nn = torch::nn;
using Tensors = std::vector<at::Tensor>;

constexpr std::int64_t features = 16;

/// Linear, tanh, dropout; counts its calls.
struct BlockImpl : nn::Module {
  explicit BlockImpl(std::uint32_t which = 0)
      : linear(register_module("linear", nn::Linear(features, features))) {
    at::NoGradGuard const no_gradients;
    linear->weight.copy_(table({features, features}, 70, which) * 0.5);
    linear->bias.copy_(table({features}, 71, which));
  }
  at::Tensor forward(at::Tensor x_BF) {
    ++calls;
    if (fails && calls >= fails) throw std::runtime_error("the block broke");
    return at::dropout(at::tanh(linear(x_BF)), 0.3, is_training());
  }
  nn::Linear linear;
  int calls = 0;
  int fails = 0;
};
TORCH_MODULE(Block);

at::Tensor rows(std::int64_t b = 8) { return table({b, features}, 72, 0); }

at::Tensor generator_state() { return at::detail::getDefaultCPUGenerator().get_state(); }

Tensors gradients_of(nn::Module& module) {
  Tensors all;
  for (at::Tensor const& parameter : module.parameters()) all.push_back(parameter.grad().clone());
  return all;
}

bool equal(Tensors const& a, Tensors const& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](at::Tensor const& x, at::Tensor const& y) { return at::equal(x, y); });
}

/// Loss, gradients of x and of a block's parameters, and the generator's final state.
struct Outcome {
  at::Tensor loss, x;
  Tensors parameters;
  at::Tensor generator;

  friend bool operator==(Outcome const& a, Outcome const& b) {
    return at::equal(a.loss, b.loss) && at::equal(a.x, b.x) && equal(a.parameters, b.parameters) &&
           at::equal(a.generator, b.generator);
  }
};

/// Runs `body(block, x)` forward and backward, always from the same seed.
template <class Body>
Outcome outcome_of(Body const& body) {
  at::manual_seed(3);
  Block block;
  at::Tensor const x = rows().requires_grad_();
  at::Tensor const loss = body(block, x).square().sum();
  loss.backward();
  return {loss.detach(), x.grad(), gradients_of(*block), generator_state()};
}

TEST_CASE("a recomputed function has the plain one's gradients, dropout included") {
  auto const plain = outcome_of([](Block b, at::Tensor const& x) { return b(b(x)); });
  CHECK(plain == outcome_of([](Block b, at::Tensor const& x) {
          return fr::recompute([b](at::Tensor const& h) mutable { return b(b(h)); }, x);
        }));
  CHECK(plain == outcome_of([](Block b, at::Tensor const& x) {
          return fr::recompute(b, fr::recompute(b, x));
        }));
}

TEST_CASE("a recomputed function runs under the autocast of its forward pass") {
  auto const body = [](bool recomputed) {
    return [recomputed](Block b, at::Tensor const& x) {
      fr::detail::AutocastGuard const guard(at::kCPU, at::kBFloat16);
      at::Tensor const y = recomputed ? fr::recompute(b, x) : b(x);
      CHECK(b->linear->weight.grad().defined() == false);
      return y.to(at::kFloat);
    };
  };
  CHECK(outcome_of(body(false)) == outcome_of(body(true)));
  CHECK_FALSE(at::autocast::is_autocast_enabled(at::kCPU));
}

TEST_CASE("recomputed functions nest") {
  auto const plain = outcome_of([](Block b, at::Tensor const& x) { return b(b(b(x)).sin()); });
  CHECK(plain == outcome_of([](Block b, at::Tensor const& x) {
          auto const inner = [b](at::Tensor const& h) { return fr::recompute(b, h).sin(); };
          auto const outer = [b, inner](at::Tensor const& h) mutable {
            return b(fr::recompute(inner, b(h)));
          };
          return fr::recompute(outer, x);
        }));
}

TEST_CASE("inputs and results are tensors, tuples, vectors, optionals and plain values") {
  using Pair = std::tuple<at::Tensor, at::Tensor>;
  auto const f = [](at::Tensor const& a, Tensors const& more, std::optional<at::Tensor> const& b,
                    double factor) {
    return std::tuple<Tensors, at::Tensor>{{(a * more[0]).tanh(), more[1].exp()},
                                           b ? *b * factor * a : a};
  };
  auto const gradients = [&](bool recomputed, std::optional<at::Tensor> b) {
    at::Tensor const a = rows().requires_grad_();
    Tensors const more{rows(8).sin().requires_grad_(), rows(8).cos()};
    auto const [both, single] = recomputed ? fr::recompute(f, a, more, b, 2.0) : f(a, more, b, 2.0);
    (both[0] + both[1] * single).sum().backward();
    CHECK_FALSE(more[1].grad().defined());
    return Tensors{a.grad(), more[0].grad()};
  };
  CHECK(equal(gradients(true, rows() * 3), gradients(false, rows() * 3)));
  CHECK(equal(gradients(true, std::nullopt), gradients(false, std::nullopt)));

  at::Tensor const a = rows().requires_grad_();
  Pair const pair =
      fr::recompute([](Pair const& p) { return Pair{std::get<0>(p).exp(), std::get<1>(p).tanh()}; },
                    Pair{a, a * 2});
  (std::get<0>(pair) * std::get<1>(pair)).sum().backward();
  at::Tensor const b = rows().requires_grad_();
  (b.exp() * (b * 2).tanh()).sum().backward();
  CHECK(at::equal(a.grad(), b.grad()));
}

TEST_CASE("an input that needs no gradient gets none, and parameters get theirs") {
  auto const gradients = [](bool recomputed) {
    at::manual_seed(1);
    Block block;
    at::Tensor const x = rows();
    (recomputed ? fr::recompute(block, x) : block(x)).sum().backward();
    CHECK_FALSE(x.grad().defined());
    return gradients_of(*block);
  };
  CHECK(equal(gradients(true), gradients(false)));
}

TEST_CASE("in-place operators may be used inside a recomputed function, and on its result") {
  auto const plain =
      outcome_of([](Block b, at::Tensor const& x) { return b(b(x).add_(1).relu_()).mul_(3); });
  CHECK(plain == outcome_of([](Block b, at::Tensor const& x) {
          auto const f = [b](at::Tensor const& h) mutable { return b(b(h).add_(1).relu_()); };
          return fr::recompute(f, x).mul_(3);
        }));
}

TEST_CASE("a function that changes its input in place is refused in forward") {
  at::Tensor const x = rows().requires_grad_() * 1;
  auto const f = [](at::Tensor h) { return h.relu_().exp(); };
  CHECK_THROWS_WITH_AS(fr::recompute(f, x), doctest::Contains("changes its input [8, 16] Float"),
                       fr::ModuleError);
}

TEST_CASE("an input that is changed in place before backward is LibTorch's error") {
  at::Tensor const x = rows().requires_grad_() * 1;
  at::Tensor const y = fr::recompute([](at::Tensor const& h) { return h.exp().tanh(); }, x);
  x.add_(1);
  CHECK_THROWS_WITH_AS(y.sum().backward(), doctest::Contains("modified by an inplace operation"),
                       c10::Error);
}

/// Whether everything in this thread that a recomputation changes is restored.
bool untouched() {
  return fr::detail::saved_tensors == nullptr && fr::detail::inside_segment == 0 &&
         fr::detail::segmented_pass == nullptr && at::GradMode::is_enabled() &&
         !at::autocast::is_autocast_enabled(at::kCPU);
}

TEST_CASE("an exception of the function leaves forward, and all state is restored") {
  Block block;
  block->fails = 1;
  CHECK_THROWS_WITH_AS(fr::recompute(block, rows()), "the block broke", std::runtime_error);
  CHECK(untouched());
}

TEST_CASE("an exception of the function's second call leaves backward") {
  Block block;
  block->fails = 2;
  at::Tensor y;
  {
    fr::detail::AutocastGuard const guard(at::kCPU, at::kBFloat16);
    y = fr::recompute(block, rows());
  }
  at::Tensor const generator = generator_state();
  CHECK_THROWS_WITH_AS(y.sum().backward(), "the block broke", std::runtime_error);
  CHECK(untouched());
  CHECK(at::equal(generator, generator_state()));
}

TEST_CASE("a thrown value that is not a std::exception becomes one in backward") {
  auto const calls = std::make_shared<int>(0);
  auto const f = [calls](at::Tensor const& h) {
    at::Tensor y = h.exp();
    if (++*calls == 2) throw 7;
    return y.tanh();
  };
  at::Tensor const y = fr::recompute(f, rows().requires_grad_());
  CHECK_THROWS_AS(y.sum().backward(), fr::ModuleError);
  CHECK(untouched());
}

TEST_CASE("a function that behaves differently the second time is refused") {
  auto const calls = std::make_shared<int>(0);
  at::Tensor const x = rows().requires_grad_();
  auto const other_shapes = [calls](at::Tensor const& h) {
    return h.slice(0, 0, 8 - ++*calls).exp().tanh();
  };
  CHECK_THROWS_WITH_AS(fr::recompute(other_shapes, x).sum().backward(),
                       doctest::Contains("its tensor 0 is now [6, 16] Float"), fr::ModuleError);
  *calls = 0;
  auto const fewer = [calls](at::Tensor const& h) { return ++*calls == 1 ? h.exp().tanh() : h; };
  CHECK_THROWS_WITH_AS(fr::recompute(fewer, x).sum().backward(),
                       doctest::Contains("saved fewer tensors"), fr::ModuleError);
}

TEST_CASE("weights that change between forward and backward are refused") {
  Block block;
  at::Tensor const y = fr::recompute(block, rows().requires_grad_());
  {
    at::NoGradGuard const no_gradients;
    block->linear->weight.mul_(2);
  }
  CHECK_THROWS_WITH_AS(y.sum().backward(), doctest::Contains("was changed in between"),
                       fr::ModuleError);
}

TEST_CASE("a module's BatchNorm counts a batch once") {
  auto const buffers = [](bool recomputed) {
    nn::BatchNorm1d norm(features);
    at::Tensor const x = rows().requires_grad_();
    (recomputed ? fr::recompute(norm, x) : norm(x)).square().sum().backward();
    Tensors all = norm->buffers();
    all.push_back(x.grad());
    return all;
  };
  CHECK(equal(buffers(true), buffers(false)));
}

TEST_CASE("a retained graph gives its gradients twice, and gradients of gradients") {
  auto const twice = [](bool recomputed) {
    at::manual_seed(1);
    Block block;
    at::Tensor const x = rows().requires_grad_();
    at::Tensor const loss = (recomputed ? fr::recompute(block, x) : block(x)).square().sum();
    loss.backward({}, /*retain_graph=*/true);
    loss.backward({}, /*retain_graph=*/true);
    Tensors all = gradients_of(*block);
    at::Tensor const first =
        torch::autograd::grad({loss}, {x}, {}, std::nullopt, /*create_graph=*/true)[0];
    all.push_back(torch::autograd::grad({first.square().sum()}, {x})[0]);
    return all;
  };
  CHECK(equal(twice(true), twice(false)));
}

TEST_CASE("a function may run its own backward pass") {
  auto const f = [](at::Tensor const& h) {
    at::Tensor const inner = h.detach().requires_grad_();
    at::Tensor const slope = torch::autograd::grad({inner.tanh().sum()}, {inner})[0];
    return (h * slope).exp();
  };
  at::Tensor const x = rows().requires_grad_();
  at::Tensor const y = rows().requires_grad_();
  fr::recompute(f, x).sum().backward();
  f(y).sum().backward();
  CHECK(at::equal(x.grad(), y.grad()));
}

TEST_CASE("backward may run in another thread") {
  auto const with = [](bool recomputed) {
    return outcome_of([&](Block b, at::Tensor const& x) {
      at::Tensor const y = recomputed ? fr::recompute(b, x) : b(x);
      std::thread([&] { y.sum().backward({}, /*retain_graph=*/true); }).join();
      return y;
    });
  };
  CHECK(with(true) == with(false));
}

TEST_CASE("nothing is recomputed after the last tensor that backward needs") {
  Block block;
  auto const f = [block](at::Tensor const& h) mutable { return block(h.exp()) + 1; };
  at::Tensor const y = fr::recompute(f, rows().requires_grad_());
  auto const operators = operators_of([&] { y.sum().backward(); });
  CHECK(operators.at("aten::exp") == 1);
  CHECK(operators.at("aten::tanh") == 1);
  CHECK(operators.count("aten::add") == 0);
}

TEST_CASE("with gradients disabled a function is called once, and plainly") {
  Block block;
  at::NoGradGuard const no_gradients;
  CHECK_FALSE(fr::recompute(block, rows()).requires_grad());
  CHECK(block->calls == 1);
}

TEST_CASE("a recomputed function holds its inputs and no activation") {
  auto const held = [](bool recomputed) {
    std::vector<Block> blocks(10);
    auto f = [blocks](at::Tensor h) mutable {
      for (Block& block : blocks) h = block(h);
      return h;
    };
    at::Tensor const x = rows(256).requires_grad_();
    LiveBytes const live;
    at::Tensor const y = recomputed ? fr::recompute(f, x) : f(x);
    auto const bytes = live.now();
    y.sum().backward();
    return bytes;
  };
  // tanh's result, dropout's noise and its result, for each of ten blocks.
  CHECK(held(false) >= 30 * 256 * features * 4);
  // The result, and the generator's state.
  CHECK(held(true) <= 2 * 256 * features * 4);
}

TEST_CASE("a nested function's inputs are not held either") {
  std::vector<Block> blocks(10);
  auto const f = [blocks](at::Tensor h) mutable {
    for (Block& block : blocks) h = fr::recompute(block, h);
    return h;
  };
  LiveBytes const live;
  at::Tensor const y = fr::recompute(f, rows(256).requires_grad_());
  CHECK(live.now() <= 6 * 256 * features * 4);
  y.sum().backward();
}

// ---- the policy ---------------------------------------------------------------------------------

TEST_CASE("segments are nearly equal, and Auto's are not longer than the square root") {
  CHECK(fr::Segments<4>::number == 4);
  std::vector<std::size_t> segments;
  for (std::size_t const length : std::vector<std::size_t>{0, 1, 2, 3, 4, 9, 24, 100}) {
    segments.push_back(fr::Segments<fr::Auto>::of(length));
  }
  CHECK((segments == std::vector<std::size_t>{0, 1, 2, 3, 2, 3, 6, 10}));
  std::vector<std::size_t> members;
  for (auto const& segment :
       fr::detail::SegmentPlan<fr::Segments<3>>{}.assign(fr::detail::Members(8))) {
    members.push_back(segment.value());
  }
  CHECK((members == std::vector<std::size_t>{0, 0, 0, 1, 1, 1, 2, 2}));
}

nn::Sequential chain(int length = 7) {
  nn::Sequential net;
  for (int i = 0; i < length; ++i) net->push_back(Block(static_cast<std::uint32_t>(i)));
  return net;
}

std::vector<fr::Batch> batches() {
  std::vector<fr::Batch> all;
  for (std::uint32_t i = 0; i < 5; ++i) {
    all.push_back({table({8, features}, 73, i), table({8, features}, 74, i)});
  }
  return all;
}

/// 20 steps: all losses and the final weights.
template <class Net, class... Ps>
std::pair<std::vector<double>, std::map<std::string, at::Tensor>> train(Net net,
                                                                        Ps const&... policies) {
  Seen seen;
  fr::Trainer trainer{net,
                      fr::MeanSquaredError{},
                      fr::Settings{.epochs = 100, .steps = 20},
                      fr::Optimize<fr::AdamW>{.lr = 1e-2},
                      Spy{.seen = &seen},
                      policies...};
  CHECK(trainer.fit(batches()).steps == 20);
  return {seen.losses, tensors_of(fr::base_module(net))};
}

template <class A>
bool same(A const& a, A const& b) {
  return a.first == b.first && same_bits(a.second, b.second);
}

struct Odd {
  bool operator()(std::string_view name, nn::Module const&) const {
    return name == "1" || name == "3" || name == "5";
  }
};

TEST_CASE("20 steps of a Sequential end with the same bits, however it is segmented") {
  auto const plain = train(chain());
  CHECK(same(plain, train(chain(), fr::Recompute<>{})));
  CHECK(same(plain, train(chain(), fr::Recompute<fr::Segments<1>>{})));
  CHECK(same(plain, train(chain(), fr::Recompute<fr::Segments<4>>{})));
  CHECK(same(plain, train(chain(), fr::Recompute<fr::Segments<100>>{})));
  CHECK(same(plain, train(chain(), fr::Recompute<fr::Modules<Odd>>{})));
  CHECK(same(plain, train(chain(), fr::Recompute<fr::Modules<fr::OfType<Block>>>{})));
}

TEST_CASE("20 steps with accumulation and clipping under BF16 end with the same bits") {
  fr::Precision<fr::BF16> const bf16;
  fr::Accumulate<2> const two;
  fr::ClipNorm<> const clip;
  CHECK(same(train(chain(), bf16, two, clip), train(chain(), bf16, two, clip, fr::Recompute<>{})));
}

TEST_CASE("BatchNorm and in-place operators inside segments change nothing") {
  auto const net = [] {
    at::manual_seed(5);
    return nn::Sequential(nn::Linear(features, 32), nn::BatchNorm1d(32),
                          nn::ReLU(nn::ReLUOptions().inplace(true)), nn::Linear(32, 32),
                          nn::BatchNorm1d(32), nn::ReLU(), nn::Linear(32, features));
  };
  CHECK(same(train(net()), train(net(), fr::Recompute<fr::Segments<2>>{})));
}

TEST_CASE("the segment that runs last is kept, and the others are recomputed") {
  auto net = chain(6);
  fr::Trainer trainer{net, fr::MeanSquaredError{}, fr::Settings{.steps = 2},
                      fr::Optimize<fr::SGD>{}, fr::Recompute<fr::Segments<3>>{}};
  static_cast<void>(trainer.fit(batches()));
  std::vector<int> calls;
  for (auto const& block : net->children()) calls.push_back(block->as<Block>()->calls);
  // The first step does not know yet which segment is last.
  CHECK((calls == std::vector{4, 4, 4, 4, 3, 3}));
}

TEST_CASE("a fit with Recompute has a lower peak of memory") {
  auto const peak = [](auto const&... policies) {
    std::vector<fr::Batch> const large{{rows(1024), rows(1024)}};
    fr::Trainer trainer{chain(16), fr::MeanSquaredError{}, fr::Settings{.epochs = 2},
                        fr::Optimize<fr::SGD>{}, policies...};
    LiveBytes const live;
    static_cast<void>(trainer.fit(large));
    return live.peak();
  };
  CHECK(2 * peak(fr::Recompute<>{}) < peak());
}

TEST_CASE("a Sequential is whole outside of training passes: members, names, validation") {
  auto net = chain(4);
  struct Watching {
    std::vector<bool>* segmented;
    fr::Loss operator()(nn::Sequential& module, fr::Batch const& batch) const {
      // at<T>() finds a member by its holder's type.
      bool stands_in = false;
      try {
        module->at<BlockImpl>(0);
      } catch (c10::Error const&) {
        stands_in = true;
      }
      segmented->push_back(stands_in);
      CHECK(module->ptr(0)->as<Block>() != nullptr);
      CHECK(module->named_parameters().contains("0.linear.weight"));
      return fr::MeanSquaredError{}(module, batch);
    }
  };
  std::vector<bool> segmented;
  fr::Trainer trainer{net,
                      Watching{&segmented},
                      fr::Settings{.steps = 1},
                      fr::Optimize<fr::SGD>{},
                      fr::Recompute<fr::Segments<2>>{},
                      fr::Validate<fr::SanityBatches<0>>{}};
  auto valid = batches();
  valid.resize(1);
  static_cast<void>(trainer.fit(valid, valid));
  CHECK((segmented == std::vector{true, false}));
  CHECK(net->at<BlockImpl>(0).calls == 3);  // forward, recomputation, validation
}

TEST_CASE("members are restored after a forward pass that throws") {
  auto net = chain(4);
  net->at<BlockImpl>(2).fails = 1;
  fr::Trainer trainer{net, fr::MeanSquaredError{}, fr::Settings{}, fr::Optimize<fr::SGD>{},
                      fr::Recompute<fr::Segments<2>>{}};
  CHECK_THROWS_AS(trainer.fit(batches()), std::runtime_error);
  CHECK(untouched());
  CHECK(net->at<BlockImpl>(0).calls == 1);
}

/// Iterates over its Sequential by hand, and checks what every member returns.
struct ByHandImpl : nn::Module {
  ByHandImpl() { register_module("layers", layers); }
  at::Tensor forward(at::Tensor x_BF) {
    at::Tensor sum = at::zeros_like(x_BF);
    for (nn::AnyModule& layer : *layers) {
      at::Tensor const y = layer.forward(x_BF);
      x_BF = residual ? x_BF + y * at::rand({}) : y;
      sum = sum + x_BF;
    }
    return sum;
  }
  nn::Sequential layers = chain(5);
  bool residual = true;
};
TORCH_MODULE(ByHand);

TEST_CASE("a forward that iterates over a Sequential by hand still works") {
  for (bool const residual : {true, false}) {
    CAPTURE(residual);
    auto const net = [&] {
      ByHand made;
      made->residual = residual;
      return made;
    };
    CHECK(same(train(net()), train(net(), fr::Recompute<fr::Segments<2>>{})));
  }
}

struct Two : nn::Module {
  std::tuple<at::Tensor, at::Tensor> forward(at::Tensor a, at::Tensor b) {
    return {(a * b).tanh(), b.exp()};
  }
};
struct One : nn::Module {
  at::Tensor forward(std::tuple<at::Tensor, at::Tensor> both) {
    return std::get<0>(both) * std::get<1>(both).sin();
  }
};
struct PairsImpl : nn::Module {
  PairsImpl() {
    register_module("first", first);
    register_module("layers", layers);
  }
  at::Tensor forward(at::Tensor const& x) { return layers->forward(first(x), x); }
  Block first;
  nn::Sequential layers{Two{}, One{}, Block{}};
};
TORCH_MODULE(Pairs);

TEST_CASE("members of a Sequential may take several arguments and return tuples") {
  CHECK(same(train(Pairs()), train(Pairs(), fr::Recompute<fr::Segments<2>>{})));
}

TEST_CASE("a member that occurs several times is recomputed as often") {
  auto const net = [] {
    Block const shared(1);
    nn::BatchNorm1d const norm(features);
    return nn::Sequential(shared, norm, shared, norm, shared, norm, shared, norm);
  };
  CHECK(same(train(net()), train(net(), fr::Recompute<fr::Segments<2>>{})));
  auto module = net();
  fr::Trainer trainer{module, fr::MeanSquaredError{}, fr::Settings{.steps = 2},
                      fr::Optimize<fr::SGD>{}, fr::Recompute<fr::Segments<4>>{}};
  static_cast<void>(trainer.fit(batches()));
  CHECK(module->at<BlockImpl>(0).calls == (4 + 4) + (4 + 3));
}

/// A list of blocks, each with a Sequential.
struct ListImpl : nn::Module {
  ListImpl() {
    for (std::uint32_t i = 0; i < 5; ++i) {
      blocks->push_back(nn::Sequential(Block(i), nn::LayerNorm(nn::LayerNormOptions({features}))));
    }
    register_module("blocks", blocks);
  }
  at::Tensor forward(at::Tensor const& x) {
    if (plain) {
      at::Tensor h = x;
      for (auto& block : *blocks) h = block->as<nn::Sequential>()->forward(h);
      return h;
    }
    return fr::each(blocks, x, [](auto& block, at::Tensor const& h) {
      return block->template as<nn::Sequential>()->forward(h);
    });
  }
  nn::ModuleList blocks;
  bool plain = false;
};
TORCH_MODULE(List);

TEST_CASE("each runs a list by segments, and plainly without Recompute") {
  auto const by_hand = [] {
    List list;
    list->plain = true;
    return list;
  };
  auto const plain = train(by_hand());
  CHECK(same(plain, train(List())));
  CHECK(same(plain, train(List(), fr::Recompute<fr::Segments<2>>{})));
  CHECK(same(plain, train(List(), fr::Recompute<fr::Modules<fr::OfType<nn::Sequential>>>{})));
  // Both Sequentials and their members: the inner ones are part of what the outer ones recompute.
  CHECK(
      same(plain, train(List(), fr::Recompute<fr::Modules<fr::OfType<nn::Sequential, Block>>>{})));
  // The inner ones alone, in an unsegmented outer list.
  CHECK(same(plain, train(List(), fr::Recompute<fr::Modules<fr::OfType<Block>>>{})));
  CHECK(same(plain, train(by_hand(), fr::Recompute<fr::Modules<fr::OfType<Block>>>{})));
}

TEST_CASE("each runs any range of holders") {
  std::vector<Block> blocks{Block(0), Block(1)};
  auto const call = [](Block& block, at::Tensor const& h) { return block(h); };
  at::manual_seed(1);
  at::Tensor const x = fr::each(blocks, rows(), call);
  at::manual_seed(1);
  CHECK(at::equal(x, blocks[1](blocks[0](rows()))));
}

template <class Policy, class Net>
void refuse(Net net, char const* why) {
  fr::Trainer trainer{net, fr::MeanSquaredError{}, fr::Settings{}, fr::Optimize<fr::SGD>{},
                      Policy{}};
  CHECK_THROWS_WITH_AS(trainer.fit(batches()), doctest::Contains(why), fr::SettingsError);
}

TEST_CASE("a module with nothing to segment is refused before the first step") {
  refuse<fr::Recompute<>>(Block(), "found nothing to segment");
  List list;
  list->plain = true;
  refuse<fr::Recompute<>>(list, "frugal::each(list, x, call)");
}

TEST_CASE("a predicate that matches no module is refused when fit begins") {
  refuse<fr::Recompute<fr::Modules<fr::OfType<nn::BatchNorm1d>>>>(chain(2), "matches no module");
  refuse<fr::Recompute<fr::Modules<fr::OfType<nn::Linear>>>>(chain(2), "found nothing to segment");
}

TEST_CASE("a segment that begins with an in-place operator is refused") {
  nn::Sequential net(nn::Linear(features, features), nn::ReLU(nn::ReLUOptions().inplace(true)),
                     nn::Linear(features, features));
  fr::Trainer trainer{net, fr::MeanSquaredError{}, fr::Settings{}, fr::Optimize<fr::SGD>{},
                      fr::Recompute<fr::Segments<3>>{}};
  CHECK_THROWS_WITH_AS(trainer.fit(batches()), doctest::Contains("'torch::nn::ReLUImpl' changes"),
                       fr::ModuleError);
}

}  // namespace frugal_test::policy_recompute
