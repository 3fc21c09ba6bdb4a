// SPDX-License-Identifier: Apache-2.0
// needs: cluster
#include <doctest/doctest.h>

#include <frugal/cluster.hpp>
#include <frugal/data.hpp>
#include <frugal/frugal.hpp>
#include <frugal/model.hpp>
#include <frugal/report.hpp>

#include "support/files.hpp"
#include "support/notice.hpp"
#include "support/rank_processes.hpp"
#include "support/ranks.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <limits>
#include <memory>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

namespace frugal_test::cluster_tensor_parallel {

namespace fr = frugal;
namespace ranks = support::ranks;
namespace rank_processes = support::rank_processes;

constexpr std::int64_t words = 24, width = 16, heads = 4, hidden = 32, length = 6;
constexpr std::int64_t classes = 8;

/// One block of a transformer, cut over a group.
struct NetImpl : torch::nn::Module {
  NetImpl(fr::TensorGroup const& group, double p, bool bias)
      : embed(register_module("embed", fr::ShardedEmbedding(words, width, group))),
        norm(register_module("norm", torch::nn::LayerNorm(torch::nn::LayerNormOptions({width})))),
        attend(register_module(
            "attend", fr::ShardedAttention(
                          width, heads, group,
                          fr::AttentionOptions{.bias = bias, .causal = true, .dropout = p}))),
        up(register_module("up", fr::ColumnLinear(width, hidden, group))),
        inner(register_module("inner", fr::ShardedDropout(p, group))),
        down(register_module("down", fr::RowLinear(hidden, width, group))),
        outer(register_module("outer", torch::nn::Dropout(p))),
        head(register_module(
            "head", fr::ColumnLinear(width, classes, group, fr::ColumnOptions{.gather = true}))) {}
  at::Tensor forward(at::Tensor const& tokens) {
    at::Tensor x = embed(tokens);
    x = x + outer(attend(norm(x)));
    x = x + down(inner(up(x).relu()));
    return head(x.mean(1));
  }
  fr::ShardedEmbedding embed;
  torch::nn::LayerNorm norm;
  fr::ShardedAttention attend;
  fr::ColumnLinear up;
  fr::ShardedDropout inner;
  fr::RowLinear down;
  torch::nn::Dropout outer;
  fr::ColumnLinear head;
};
TORCH_MODULE(Net);

/// The same of LibTorch's own layers.
struct PlainAttentionImpl : torch::nn::Module {
  explicit PlainAttentionImpl(bool bias)
      : query(register_module("query", linear(bias))),
        key(register_module("key", linear(bias))),
        value(register_module("value", linear(bias))),
        out(register_module("out", linear(bias))) {}
  static torch::nn::Linear linear(bool bias) {
    return torch::nn::Linear(torch::nn::LinearOptions(width, width).bias(bias));
  }
  at::Tensor forward(at::Tensor const& x) {
    auto const by_heads = [](at::Tensor const& y) {
      return y.view({y.size(0), y.size(1), heads, width / heads}).transpose(1, 2);
    };
    at::Tensor const q = by_heads(query(x)), k = by_heads(key(x)), v = by_heads(value(x));
    at::Tensor const later = at::ones({x.size(1), x.size(1)}, at::kBool).triu(1);
    at::Tensor const weights = (q.matmul(k.transpose(-2, -1)) / std::sqrt(4.0))
                                   .masked_fill(later, -std::numeric_limits<float>::infinity())
                                   .softmax(-1);
    return out(weights.matmul(v).transpose(1, 2).reshape({x.size(0), x.size(1), width}));
  }
  torch::nn::Linear query, key, value, out;
};
TORCH_MODULE(PlainAttention);

struct PlainImpl : torch::nn::Module {
  explicit PlainImpl(bool bias)
      : embed(register_module("embed", torch::nn::Embedding(words, width))),
        norm(register_module("norm", torch::nn::LayerNorm(torch::nn::LayerNormOptions({width})))),
        attend(register_module("attend", PlainAttention(bias))),
        up(register_module("up", torch::nn::Linear(width, hidden))),
        down(register_module("down", torch::nn::Linear(hidden, width))),
        head(register_module("head", torch::nn::Linear(width, classes))) {}
  at::Tensor forward(at::Tensor const& tokens) {
    at::Tensor x = embed(tokens);
    x = x + attend(norm(x));
    x = x + down(up(x).relu());
    return head(x.mean(1));
  }
  torch::nn::Embedding embed;
  torch::nn::LayerNorm norm;
  PlainAttention attend;
  torch::nn::Linear up, down, head;
};
TORCH_MODULE(Plain);

struct Data {
  at::Tensor x, y;
};
/// Three windows of 8 micro-batches of 4, and one of 5.
Data data() {
  at::Generator const generator = at::make_generator<at::CPUGeneratorImpl>(5);
  return {at::randint(0, words, {3 * 32 + 18, length}, generator),
          at::randint(0, classes, {3 * 32 + 18}, generator)};
}

fr::Grid grid() {
  return fr::Grid::join(fr::World::from_environment(),
                        {.tensor = std::atoi(std::getenv("FRUGAL_TEST_TENSOR"))});
}

/// The largest difference of any parameter from the plain module's, relative to its largest element.
double distance(fr::NamedTensors const& whole, torch::nn::Module const& plain) {
  double worst = 0;
  for (auto const& item : plain.named_parameters()) {
    at::Tensor const& other = whole.at(item.key());
    if (other.sizes() != item.value().sizes()) return 1e9;
    double const scale = item.value().abs().max().item<double>() + 1e-12;
    worst = std::max(worst, (other - item.value()).abs().max().item<double>() / scale);
  }
  return worst;
}

/// This rank's gradients, gathered whole.
fr::NamedTensors whole_gradients(Net& net, fr::Communicator& group) {
  fr::NamedTensors all;
  for (auto const& item : net->named_parameters()) {
    at::Tensor const& parameter = item.value();
    auto const part = fr::part_of(parameter);
    at::Tensor const gradient =
        at::empty_like(parameter.detach(), at::MemoryFormat::Preserve).copy_(parameter.grad());
    all.emplace(item.key(), part ? fr::detail::whole_of(group, gradient, *part) : gradient);
  }
  return all;
}

std::string text(std::vector<std::pair<char const*, double>> const& values) {
  std::string all;
  for (auto const& [name, value] : values) {
    char one[64];
    std::snprintf(one, sizeof one, "%s %.3g, ", name, value);
    all += one;
  }
  return all;
}

/// Outputs, gradients and five steps of a hand-written loop, against LibTorch's layers.
std::string by_hand(fr::Grid const& all) {
  torch::manual_seed(3);
  Net net(all.tensor, 0.0, true);
  torch::manual_seed(3);
  Plain plain(true);
  double const begin = distance(fr::whole_state(net, *all.tensor), *plain);
  Data const set = data();
  torch::optim::SGD optimizer(net->parameters(), torch::optim::SGDOptions(0.2).momentum(0.9));
  torch::optim::SGD other(plain->parameters(), torch::optim::SGDOptions(0.2).momentum(0.9));
  double output = 0, gradient = 0, same = 1;
  for (std::int64_t step = 0; step < 5; ++step) {
    at::Tensor const x = set.x.narrow(0, 20 * step, 20), y = set.y.narrow(0, 20 * step, 20);
    optimizer.zero_grad();
    other.zero_grad();
    at::Tensor const here = net(x), there = plain(x);
    output = std::max(output, (here - there).abs().max().item<double>());
    torch::nn::functional::cross_entropy(here, y).backward();
    torch::nn::functional::cross_entropy(there, y).backward();
    fr::NamedTensors const mine = whole_gradients(net, *all.tensor);
    for (auto const& item : plain->named_parameters()) {
      at::Tensor const& expected = item.value().grad();
      // The gradient of key.bias is 0 but for rounding.
      double const scale = std::max(expected.abs().max().item<double>(), 1e-3);
      gradient =
          std::max(gradient, (mine.at(item.key()) - expected).abs().max().item<double>() / scale);
    }
    at::Tensor const rows = all.everyone->gather(here.detach(), "outputs");
    for (std::int64_t rank = 0; rank < rows.size(0); ++rank) {
      if (!rows[rank].equal(here.detach())) same = 0;
    }
    optimizer.step();
    other.step();
  }
  double const end = distance(fr::whole_state(net, *all.tensor), *plain);
  return text(
      {{"begin", begin}, {"output", output}, {"gradient", gradient}, {"end", end}, {"same", same}});
}

/// Whole weights to a file and back, by load_weights and by load_whole_state.
bool files(fr::ShardedAttention& attend, fr::TensorGroup const& group) {
  std::filesystem::path const folder = std::getenv("FRUGAL_TEST_FOLDER");
  auto const throws = [](auto const& call) {
    try {
      call();
    } catch (fr::Error const&) {
      return true;
    }
    return false;
  };
  bool ok = throws([&] { fr::save_weights(attend, folder); });
  fr::save_weights(attend, folder, *group);
  static_cast<void>(group->gather(at::ones({1}), "the end of a save"));
  fr::NamedTensors const whole = fr::whole_state(attend, *group);
  auto const is_same = [&](fr::ShardedAttention& other) {
    fr::NamedTensors const now = fr::whole_state(other, *group);
    return std::ranges::all_of(
        whole, [&](auto const& item) { return now.at(item.first).equal(item.second); });
  };
  fr::ShardedAttention other(width, heads, group), third(width, heads, group);
  ok = ok && !is_same(other);
  fr::load_weights(other, folder);
  ok = ok && is_same(other);
  fr::NamedTensors wrong = whole;
  wrong.at("out.weight") = third->out->weight.detach();  // a shard
  ok = ok && throws([&] { fr::load_whole_state(third, wrong); });
  wrong = whole;
  wrong.erase("out.bias");
  ok = ok && throws([&] { fr::load_whole_state(third, wrong); }) && !is_same(third);
  fr::load_whole_state(third, whole);
  return ok && is_same(third);
}

/// torch.nn.MultiheadAttention with the same weights, a second derivative, dropout, and 16-bit sums.
std::string pieces(fr::Grid const& all) {
  fr::TensorGroup const& group = all.tensor;
  torch::manual_seed(7);
  fr::ShardedAttention attend(width, heads, group, fr::AttentionOptions{.causal = true});
  torch::nn::MultiheadAttention reference(width, heads);
  {
    torch::NoGradGuard const no_gradients;
    fr::NamedTensors const own = fr::whole_state(attend, *group);
    reference->in_proj_weight.copy_(
        at::cat({own.at("query.weight"), own.at("key.weight"), own.at("value.weight")}));
    reference->in_proj_bias.copy_(
        at::cat({own.at("query.bias"), own.at("key.bias"), own.at("value.bias")}));
    reference->out_proj->weight.copy_(own.at("out.weight"));
    reference->out_proj->bias.copy_(own.at("out.bias"));
  }
  at::Tensor const x = torch::randn({3, length, width}, torch::requires_grad());
  at::Tensor const x2 = x.detach().clone().requires_grad_();
  at::Tensor const ours = attend(x);
  at::Tensor const lengths_first = x2.transpose(0, 1);
  at::Tensor const theirs =
      std::get<0>(
          reference(lengths_first, lengths_first, lengths_first, at::Tensor(), false,
                    at::full({length, length}, -std::numeric_limits<float>::infinity()).triu(1)))
          .transpose(0, 1);
  ours.square().sum().backward();
  theirs.square().sum().backward();
  double const attention = std::max((ours - theirs).abs().max().item<double>(),
                                    (x.grad() - x2.grad()).abs().max().item<double>());

  torch::manual_seed(8);
  fr::ColumnLinear up(width, hidden, group);
  fr::RowLinear down(hidden, width, group);
  torch::manual_seed(8);
  torch::nn::Linear plain_up(width, hidden), plain_down(hidden, width);
  auto const second = [](at::Tensor const& in, at::Tensor const& out, at::Tensor const& weight) {
    at::Tensor const first =
        torch::autograd::grad({out.square().sum()}, {in}, {}, true, true).front();
    return torch::autograd::grad({first.square().sum()}, {weight}).front();
  };
  at::Tensor const own = second(x, down(up(x).tanh()), up->weight);
  at::Tensor const expected = second(x2, plain_down(plain_up(x2).tanh()), plain_up->weight);
  std::int64_t const rows = hidden / group->size();
  double const twice =
      (own - expected.narrow(0, group->rank() * rows, rows)).abs().max().item<double>() /
      expected.abs().max().item<double>();

  // One sum for a large tensor, which is exchanged by parts, and one for a small one.
  double sums = 0;
  for (std::int64_t const size : {std::int64_t{7}, std::int64_t{50001}}) {
    std::vector<at::Tensor> of_ranks;
    at::Tensor expected_sum = at::zeros({size}, at::kDouble);
    for (std::int64_t rank = 0; rank < group->size(); ++rank) {
      torch::manual_seed(static_cast<std::uint64_t>(100 + rank));
      of_ranks.push_back(at::randn({size}).to(at::kBFloat16));
      expected_sum += of_ranks.back().to(at::kDouble);
    }
    at::Tensor const sum =
        fr::reduce_from_group(of_ranks[static_cast<std::size_t>(group->rank())], group);
    at::Tensor const rounded = expected_sum.to(at::kFloat).to(at::kBFloat16);
    sums = std::max(sums, (sum - rounded).abs().max().item<double>());
  }

  // The masks are those of one process, and all ranks have drawn as many numbers.
  at::Tensor const wide = at::ones({5, hidden});
  fr::ShardedDropout sharded(0.4, group);
  torch::manual_seed(9);
  at::Tensor const mask = fr::gather_from_group(sharded(fr::scatter_to_group(wide, group)), group);
  at::Tensor const after = at::rand({3});
  torch::manual_seed(9);
  bool const same_mask = mask.equal(at::dropout(wide, 0.4, true)) && after.equal(at::rand({3}));

  // Initial values of one's own are those of one process.
  torch::manual_seed(12);
  for (at::Tensor const& each : {up->weight, down->weight, down->bias}) {
    fr::fill_whole(each, [](at::Tensor& whole) { whole.normal_(); });
  }
  torch::manual_seed(12);
  bool filled = true;
  for (auto const& [mine, sizes] : {std::pair(up->weight, plain_up->weight.sizes()),
                                    std::pair(down->weight, plain_down->weight.sizes()),
                                    std::pair(down->bias, plain_down->bias.sizes())}) {
    auto const part = fr::part_of(mine);
    at::Tensor const whole = part ? fr::detail::whole_of(*group, mine.detach(), *part) : mine;
    filled = filled && whole.equal(at::zeros(sizes).normal_());
  }

  fr::ShardedEmbedding embed(words, width, group);
  int refused = 0;
  for (std::int64_t const index : {std::int64_t{-1}, words}) {
    try {
      embed(at::full({2}, index, at::kLong));
    } catch (std::exception const&) {
      ++refused;
    }
  }
  return text({{"attention", attention},
               {"twice", twice},
               {"sums", sums},
               {"mask", same_mask ? 1 : 0},
               {"filled", filled ? 1 : 0},
               {"refused", static_cast<double>(refused)},
               {"files", files(attend, group) ? 1 : 0}});
}

struct Notice : support::Notice {
  using properties = fr::list<fr::property::knows_ranks, fr::property::works_on_parts>;
};

/// Trains in a folder with dropout, until a notice; a later start goes on. Saves its weights.
std::string train_in(fr::Grid const& all, std::filesystem::path const& folder) {
  torch::manual_seed(3);
  Net net(all.tensor, 0.2, false);
  Data const set = data();
  fr::TensorDataset train(set.x, set.y, {.batch = 4});
  fr::TensorDataset valid(set.x, set.y, {.batch = 16, .shuffle = false});
  fr::Trainer trainer{net,
                      fr::CrossEntropy{},
                      fr::Settings{.run_dir = folder / "run", .epochs = 3},
                      fr::Optimize<fr::AdamW>{.lr = 1e-2},
                      fr::Accumulate<8>{},
                      fr::ClipNorm<0.3>{},
                      fr::Validate<fr::Every<1, fr::Epoch>, fr::Accuracy>{},
                      fr::Average<fr::Ema<0.9>>{},
                      fr::EarlyStop<fr::Patience<9>, fr::WatchLoss>{.restore_best = true},
                      fr::Checkpoint<fr::Every<2>>{},
                      fr::Log<fr::Every<1>>{},
                      Notice{support::Notice::of_environment()},
                      fr::Replicate<fr::Exact>{.with = all.data}};
  fr::Report const report = trainer.fit(train, valid);
  if (all.data->rank() == 0) fr::save_weights(net, folder / "weights", *all.tensor);
  char numbers[128];
  std::snprintf(numbers, sizeof numbers, "exit %d, %lu steps, loss %a, ", report.exit_code(),
                static_cast<unsigned long>(report.steps), report.train_loss);
  return numbers;
}

/// Against a loop by hand over LibTorch's layers, with clip_grad_norm_.
std::string train_with_ring(fr::Grid const& all) {
  torch::manual_seed(3);
  Net net(all.tensor, 0.0, false);
  Data const set = data();
  fr::TensorDataset train(set.x, set.y, {.batch = 4, .shuffle = false});
  fr::Trainer trainer{net,
                      fr::CrossEntropy{},
                      fr::Settings{.epochs = 3},
                      fr::Optimize<fr::AdamW>{.lr = 1e-2},
                      fr::Accumulate<8>{},
                      fr::ClipNorm<0.3>{},
                      fr::Replicate<fr::Ring>{.with = all.data}};
  static_cast<void>(trainer.fit(train));
  torch::manual_seed(3);
  Plain plain(false);
  torch::optim::AdamW optimizer(plain->parameters(), torch::optim::AdamWOptions(1e-2));
  double clipped = 0;
  for (int epoch = 0; epoch < 3; ++epoch) {
    for (std::int64_t first = 0; first < set.x.size(0); first += 32) {
      std::int64_t const count = std::min<std::int64_t>(32, set.x.size(0) - first);
      optimizer.zero_grad();
      torch::nn::functional::cross_entropy(plain(set.x.narrow(0, first, count)),
                                           set.y.narrow(0, first, count))
          .backward();
      clipped += torch::nn::utils::clip_grad_norm_(plain->parameters(), 0.3) > 0.3 ? 1 : 0;
      optimizer.step();
    }
  }
  return text({{"end", distance(fr::whole_state(net, *all.tensor), *plain)}, {"clipped", clipped}});
}

/// With `norms` wrong: a LayerNorm of a shard, whose weights every rank has, and a part of their
/// gradient.
struct PairImpl : torch::nn::Module {
  PairImpl(fr::TensorGroup const& group, bool with_norm)
      : norms(with_norm),
        up(register_module("up", fr::ColumnLinear(width, hidden, group))),
        norm(register_module(
            "norm", torch::nn::LayerNorm(torch::nn::LayerNormOptions({hidden / group->size()})))),
        down(register_module("down", fr::RowLinear(hidden, classes, group))) {}
  at::Tensor forward(at::Tensor const& x) {
    if (gives_shard) return up(x);
    return down(norms ? norm(up(x)) : up(x));
  }
  bool norms;
  bool gives_shard = false;
  fr::ColumnLinear up;
  torch::nn::LayerNorm norm;
  fr::RowLinear down;
};
TORCH_MODULE(Pair);

/// How many windows a recipe has skipped, or what it is refused for.
template <class... Policies>
std::string train_pair(fr::Grid const& all, std::string_view name, Policies const&... policies) {
  torch::manual_seed(3);
  Pair net(all.tensor, name == "partial" || name == "late");
  net->gives_shard = name == "shard";
  {
    torch::NoGradGuard const no_gradients;
    if (name == "late")
      net->down->weight.zero_();  // hides the gradient of `norm` in the first step
    if (name == "equal shards" || name == "filled") {
      for (at::Tensor const& each : net->parameters()) {
        name == "filled" ? fr::fill_whole(each, [](at::Tensor& whole) { whole.normal_(0, 0.02); })
                         : static_cast<void>(at::Tensor(each).normal_(0, 0.02));
      }
    }
  }
  if (name == "skip" && all.everyone->rank() == 1) {
    auto const count = std::make_shared<int>(0);
    net->up->weight.register_hook([count](at::Tensor const& gradient) {
      double const factor = (*count)++ == 0 ? std::numeric_limits<double>::infinity() : 1;
      return gradient * factor;
    });
  }
  torch::manual_seed(name == "other data" && all.everyone->rank() == 1 ? 4 : 3);
  fr::TensorDataset train(torch::randn({32, width}), torch::randint(0, classes, {32}),
                          {.batch = 4, .shuffle = false});
  fr::Trainer trainer{net, fr::CrossEntropy{}, fr::Optimize<fr::SGD>{.lr = 0.1}, policies...};
  try {
    return std::to_string(trainer.fit(train).non_finite_windows) + " windows skipped";
  } catch (fr::Error const& error) {
    return error.what();
  }
}

std::string job(std::string_view name) {
  fr::Grid const all = grid();
  if (name == "by hand") return by_hand(all);
  if (name == "pieces") return pieces(all);
  if (name == "folder") return train_in(all, std::getenv("FRUGAL_TEST_FOLDER"));
  if (name == "ring") return train_with_ring(all);
  if (name == "alone") return train_pair(all, name);
  if (name == "rollback") {
    return train_pair(all, name, fr::Rollback<>{}, fr::Accumulate<2>{},
                      fr::Replicate<fr::Exact>{.with = all.data});
  }
  fr::Replicate<fr::Exact> const replicate{.with =
                                               name == "not of the grid" ? all.everyone : all.data};
  return train_pair(all, name, fr::Accumulate<4>{}, fr::SkipNonFinite{}, replicate);
}

/// A policy that says it works on parts, of whatever kind.
template <class Kind>
struct WorksOnParts {
  using kind = Kind;
  using listens = fr::list<fr::on::gradients>;
  using properties = fr::list<fr::property::works_on_parts>;
};
struct OwnKind : fr::optional_kind {
  static constexpr std::string_view name = "test.Own";
};

TEST_CASE(
    "a policy that works on parts is for shards, unless its kind takes a shard for the whole") {
  using fr::detail::works_with_shards;
  static_assert(works_with_shards<WorksOnParts<OwnKind>>);
  static_assert(works_with_shards<fr::ClipNorm<>> && works_with_shards<fr::Optimize<fr::AdamW>>);
  static_assert(!works_with_shards<WorksOnParts<fr::kinds::rollback>>);
  static_assert(!works_with_shards<fr::Optimize<fr::Any>> && !works_with_shards<fr::Rollback<>>);
}

TEST_CASE("a rank of a world" * doctest::skip()) {
  rank_processes::answer(job(rank_processes::job()));
}

std::vector<std::string> run(std::string const& name, int size, int tensor,
                             std::vector<std::string> more = {}) {
  more.push_back("FRUGAL_TEST_TENSOR=" + std::to_string(tensor));
  return rank_processes::run(name, size, more);
}

double number(std::string const& result, std::string const& name) {
  std::size_t const at = result.find(name + " ");
  REQUIRE(at != std::string::npos);
  return std::strtod(result.c_str() + at + name.size() + 1, nullptr);
}

TEST_CASE("outputs, gradients and steps are those of LibTorch's layers in one process") {
  for (auto const& [size, tensor] : {std::pair(2, 2), std::pair(4, 4)}) {
    for (std::string const& result : run("by hand", size, tensor)) {
      CAPTURE(result);
      CHECK(number(result, "begin") == 0);
      CHECK(number(result, "output") < 1e-6);
      CHECK(number(result, "gradient") < 2e-6);
      CHECK(number(result, "end") < 2e-6);
      CHECK(number(result, "same") == 1);
    }
  }
}

TEST_CASE("attention, second derivatives, sums in BF16, dropout, wrong indices and files") {
  support::TemporaryFolder const folder;
  for (std::string const& result :
       run("pieces", 4, 4, {"FRUGAL_TEST_FOLDER=" + folder.path().string()})) {
    CAPTURE(result);
    CHECK(number(result, "attention") < 1e-5);
    CHECK(number(result, "twice") < 1e-5);
    CHECK(number(result, "sums") == 0);
    CHECK(number(result, "mask") == 1);
    CHECK(number(result, "filled") == 1);
    CHECK(number(result, "refused") == 2);
    CHECK(number(result, "files") == 1);
  }
}

TEST_CASE("Trainer with clipping in a 2 x 2 world is a loop by hand in one process") {
  for (int tensor : {2, 4}) {
    for (std::string const& result : run("ring", 4, tensor)) {
      CAPTURE(result);
      CHECK(number(result, "end") < 5e-6);
      CHECK(number(result, "clipped") >= 6);
    }
  }
}

std::vector<std::string> run_in(std::filesystem::path const& folder, int size, int tensor,
                                int notice_rank, int notice_step) {
  return run("folder", size, tensor,
             support::Notice::environment(notice_rank, notice_step,
                                          {"FRUGAL_TEST_FOLDER=" + folder.string()}));
}

fr::NamedTensors weights_in(std::filesystem::path const& place,
                            fr::Weights which = fr::Weights::validated) {
  Plain plain(false);
  fr::load_weights(plain, place, which);
  fr::NamedTensors all;
  for (auto const& item : plain->named_parameters()) all.emplace(item.key(), item.value().detach());
  return all;
}
double distance(fr::NamedTensors const& a, fr::NamedTensors const& b) {
  double worst = 0;
  for (auto const& [name, tensor] : a) {
    worst = std::max(worst, (tensor - b.at(name)).abs().max().item<double>());
  }
  return worst;
}

TEST_CASE("preempted in one shape, and resumed in others: one checkpoint of whole tensors") {
  support::TemporaryFolder const folder;
  std::string const whole = run_in(folder / "whole", 4, 2, 0, 0).front();
  CHECK(whole.find("exit 0, 12 steps") != std::string::npos);
  fr::NamedTensors const expected = weights_in(folder / "whole" / "weights");
  // The last checkpoint has the same, which are the averages, and those that were trained: whole, so
  // that a module of one process loads them.
  CHECK(distance(weights_in(folder / "whole" / "run"), expected) == 0);
  auto const trained_in = [](std::filesystem::path const& run) {
    return weights_in(run, fr::Weights::trained);
  };
  fr::NamedTensors const trained = trained_in(folder / "whole" / "run");
  CHECK(distance(trained, expected) > 1e-3);

  // One process is the same run, with the same dropout.
  CHECK(run_in(folder / "one", 1, 1, 0, 0).front().find("exit 0, 12 steps") != std::string::npos);
  CHECK(distance(weights_in(folder / "one" / "weights"), expected) < 1e-5);
  CHECK(distance(trained_in(folder / "one" / "run"), trained) < 1e-5);

  std::filesystem::path const same = folder / "same";
  for (std::string const& result : run_in(same, 4, 2, 3, 6)) {
    CAPTURE(result);
    CHECK(result.find("exit 75, 6 steps") != std::string::npos);
  }
  for (std::string const& result : run_in(same, 4, 2, 0, 0)) CHECK(result == whole);
  CHECK(distance(weights_in(same / "weights"), expected) == 0);
  CHECK(distance(trained_in(same / "run"), trained) == 0);

  std::filesystem::path const other = folder / "other";
  for (auto const& [size, tensor, rank, step] : {std::tuple(4, 4, 3, 3), std::tuple(1, 1, 0, 6)}) {
    for (std::string const& result : run_in(other, size, tensor, rank, step)) {
      CAPTURE(result);
      CHECK(result.find("exit 75, " + std::to_string(step) + " steps") != std::string::npos);
    }
  }
  CHECK(run_in(other, 4, 2, 0, 0).front().find("exit 0, 12 steps") != std::string::npos);
  CHECK(distance(weights_in(other / "weights"), expected) < 1e-5);
  CHECK(distance(trained_in(other / "run"), trained) < 1e-5);
  std::size_t steps = 0;
  for (std::string const& line :
       support::lines_of(support::text_of(other / "run" / "metrics.jsonl"))) {
    if (line.find("\"event\":\"step\"") != std::string::npos) ++steps;
  }
  CHECK(steps == 12);
}

TEST_CASE("recipes and modules that would train silently wrong are refused in every rank") {
  std::vector<std::pair<std::string, std::string>> const all{
      {"alone", "Add the policy that trains with these processes"},
      {"rollback", "a policy of the kind Rollback"},
      {"not of the grid", "Set Replicate's member `with` to the `data` of the Grid"},
      {"other data", "the data of rank 1"},
      {"shard", "the loss of rank 1 is "},
      {"equal shards", "the shards of 'up.weight' are the same numbers in all 2 ranks"},
      {"filled", "RESULT 0 windows skipped"},
      {"late", "the gradient of 'norm.weight' differs between rank 1 and rank 0"},
      {"partial", "the gradient of 'norm.weight' differs between rank 1 and rank 0"}};
  for (auto const& [name, words_of_error] : all) {
    CAPTURE(name);
    for (std::string const& result : run(name, 2, 2)) {
      CAPTURE(result);
      CHECK(result.find(words_of_error) != std::string::npos);
    }
  }
}

TEST_CASE("a gradient that is infinite in one shard skips the window in all ranks") {
  for (std::string const& result : run("skip", 4, 2)) CHECK(result == "RESULT 1 windows skipped");
}

TEST_CASE("sizes that the group does not divide are refused") {
  auto const errors = ranks::run(3, [](std::shared_ptr<fr::Communicator> const& group) {
    CHECK_THROWS_AS(fr::ColumnLinear(4, 4, group), fr::SettingsError);
    CHECK_THROWS_AS(fr::RowLinear(4, 4, group), fr::SettingsError);
    CHECK_THROWS_AS(fr::ShardedEmbedding(4, 4, group), fr::SettingsError);
    CHECK_THROWS_AS(fr::ShardedAttention(12, 4, group), fr::SettingsError);
    CHECK_THROWS_AS(fr::scatter_to_group(at::ones({2, 4}), group), fr::ModuleError);
  });
  CHECK(ranks::none(errors));
  auto const one = fr::Communicator::join(fr::World{});
  CHECK_THROWS_AS(fr::ShardedDropout(1.5, one), fr::SettingsError);
  CHECK_THROWS_AS(fr::ShardedAttention(10, 4, one), fr::SettingsError);
}

TEST_CASE("a weight that was assigned to a layer of the group is registered there") {
  struct Tied : torch::nn::Module {
    explicit Tied(fr::TensorGroup const& of)
        : embed(register_module("embed", fr::ShardedEmbedding(words, width, of))),
          up(register_module("up", fr::ColumnLinear(width, words, of))),
          down(register_module("down", fr::RowLinear(width, width, of))) {}
    fr::ShardedEmbedding embed;
    fr::ColumnLinear up;
    fr::RowLinear down;
  };
  auto const errors = ranks::run(2, [](std::shared_ptr<fr::Communicator> const& group) {
    Tied net(group);
    net.up->weight = net.embed->weight;
    net.down->bias = net.up->bias;
    fr::detail::register_members(net);
    CHECK(net.named_parameters()["up.weight"].is_same(net.embed->weight));
    CHECK(net.named_parameters()["down.bias"].is_same(net.up->bias));
    CHECK(fr::Parameters::of(net).names ==
          std::vector<std::string>{"embed.weight", "up.bias", "down.weight"});
  });
  CHECK(ranks::none(errors));
}

}  // namespace frugal_test::cluster_tensor_parallel
