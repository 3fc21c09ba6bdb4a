// SPDX-License-Identifier: Apache-2.0
// needs: cluster
// One rank of bench/cluster_runs.py. --way exact or local: trains a GPT on the bytes of a text and prints, from rank 0, one line of
// JSON with the loss of a part of the text that it has not trained on. --way alone, sharded or pipeline: some steps of a large GPT,
// and the most memory that this rank has had, in bytes. Variables of a launcher say which rank it is.
//
// Shapes: N sequences, T tokens.
#include <frugal/cluster.hpp>
#include <frugal/frugal.hpp>

#include <sys/resource.h>

#include <CLI/CLI.hpp>
#include <chrono>
#include <cstdint>
#include <fstream>
#include <iostream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <string>

#include "../transformer.hpp"

namespace fr = frugal;

namespace {

constexpr int ranks = 4;

at::Tensor bytes_of(std::string const& file) {
  std::ifstream in(file, std::ios::binary);
  std::string text((std::istreambuf_iterator<char>(in)), std::istreambuf_iterator<char>());
  if (text.empty()) {
    throw fr::DataError({.what = "the text is empty or cannot be read",
                         .where = file,
                         .why = "",
                         .fix = "Give --text a file."});
  }
  auto const size = static_cast<std::int64_t>(text.size());
  return at::from_blob(text.data(), {size}, at::kByte).to(at::kLong);
}

/// Sequences and the same ones a byte further.
fr::Batch sequences(at::Tensor const& text, std::int64_t tokens) {
  std::int64_t const count = (text.numel() - 1) / tokens;
  return {text.narrow(0, 0, count * tokens).view({count, tokens}).contiguous(),
          text.narrow(0, 1, count * tokens).view({count, tokens}).contiguous()};
}

/// The loss of the last 1/20 of the text, of a run with this way of adding up.
template <class Replicate>
double loss_of(std::string const& file, std::uint64_t steps, std::uint64_t seed,
               Replicate const& replicate) {
  frugal_bench::TransformerShape const shape{
      .layers = 4, .batch = 4, .tokens = 64, .channels = 128, .heads = 4, .words = 256};
  at::Tensor const text = bytes_of(file);
  std::int64_t const held = text.numel() / 20;
  torch::manual_seed(seed);
  torch::nn::Sequential net = frugal_bench::make_gpt(shape);
  fr::TensorDataset train(sequences(text.narrow(0, 0, text.numel() - held), shape.tokens),
                          {.batch = shape.batch, .drop_last = true});
  fr::Batch const rest = sequences(text.narrow(0, text.numel() - held, held), shape.tokens);
  fr::Trainer trainer{net,
                      fr::CrossEntropy{},
                      fr::Settings{.steps = steps, .seed = seed},
                      fr::Optimize<fr::AdamW>{.lr = 2e-3},
                      fr::Schedule<fr::Warmup<128>, fr::CosineDecay<>>{},
                      fr::ClipNorm<>{},
                      fr::Accumulate<ranks>{},
                      replicate};
  static_cast<void>(trainer.fit(train));
  torch::NoGradGuard const no_gradients;
  net->eval();
  return fr::CrossEntropy{}(net, rest).value.template item<double>();
}

/// Steps of a GPT with 76 million parameters, 304 MB of weights. Returns the seconds of one.
template <int window, class... Policies>
double train_large(Policies const&... policies) {
  constexpr int steps = 4;
  frugal_bench::TransformerShape const shape{
      .layers = 6, .batch = 1, .tokens = 32, .channels = 1024, .heads = 8, .words = 256};
  torch::manual_seed(1);
  torch::nn::Sequential net = frugal_bench::make_gpt(shape);
  at::Tensor const text = at::randint(0, shape.words, {16, shape.tokens + 1}, at::kLong);
  fr::TensorDataset train(
      fr::Batch{text.slice(1, 0, shape.tokens).contiguous(), text.slice(1, 1).contiguous()},
      {.batch = shape.batch});
  fr::Trainer trainer{net,
                      fr::CrossEntropy{},
                      fr::Settings{.steps = steps},
                      fr::Optimize<fr::AdamW>{.lr = 1e-4},
                      fr::Accumulate<window>{},
                      policies...};
  auto const begun = std::chrono::steady_clock::now();
  static_cast<void>(trainer.fit(train));
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begun).count() / steps;
}

std::int64_t most_resident() {
  rusage used{};
  ::getrusage(RUSAGE_SELF, &used);
  return std::int64_t{used.ru_maxrss} << 10;
}

}  // namespace

int main(int argc, char** argv) {
  std::string way = "exact", text;
  std::uint64_t steps = 2048, seed = 1, limit = 0;
  CLI::App app("One rank of bench/cluster_runs.py.");
  app.add_option("--way", way)
      ->check(CLI::IsMember({"exact", "local", "alone", "sharded", "pipeline"}));
  app.add_option("--text", text);
  app.add_option("--steps", steps);
  app.add_option("--seed", seed);
  app.add_option("--limit-mib", limit, "of the process's data: RLIMIT_DATA");
  CLI11_PARSE(app, argc, argv);
  at::set_num_threads(1);
  if (limit != 0) {
    rlimit const most{.rlim_cur = limit << 20, .rlim_max = limit << 20};
    if (::setrlimit(RLIMIT_DATA, &most) != 0) return 2;
  }
  try {
    fr::World const world = fr::World::from_environment();
    nlohmann::json line;
    if (way == "exact") {
      line["loss"] = loss_of(text, steps, seed, fr::Replicate<fr::Exact>{});
    } else if (way == "local") {
      line["loss"] =
          loss_of(text, steps, seed, fr::Replicate<fr::LocalSteps<64>, fr::Outer<fr::Nesterov>>{});
    } else if (way == "alone") {
      line["seconds"] = train_large<ranks>();
    } else if (way == "sharded") {
      line["seconds"] = train_large<ranks>(
          fr::Replicate<fr::Exact, fr::Shard<fr::States, fr::Grads, fr::Params>>{});
    } else {
      line["seconds"] = train_large<ranks>(fr::Pipeline<>{});
    }
    line["bytes"] = most_resident();
    std::cout << line << std::endl;
    return 0;
  } catch (std::exception const& error) {
    std::cerr << error.what() << '\n';
    return 1;
  }
}
