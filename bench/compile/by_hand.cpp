// SPDX-License-Identifier: Apache-2.0
// The job of README's program, written by hand in LibTorch: bench/compile.py compares the time to
// compile both. It does less: no exact resume, no checks, no plan, no report.
#include <torch/torch.h>

#include <algorithm>
#include <cmath>
#include <csignal>
#include <cstdint>
#include <filesystem>
#include <iostream>
#include <numbers>
#include <string>

namespace nn = torch::nn;

namespace {

std::sig_atomic_t volatile interrupted = 0;

struct Images {
  at::Tensor images, targets;
};

double accuracy(nn::Sequential& net, Images const& set) {
  torch::NoGradGuard const no_grad;
  net->eval();
  std::int64_t right = 0;
  std::int64_t const samples = set.images.size(0);
  for (std::int64_t at = 0; at < samples; at += 500) {
    auto const data = set.images.narrow(0, at, std::min<std::int64_t>(500, samples - at));
    auto const target = set.targets.narrow(0, at, data.size(0));
    right += net->forward(data).argmax(1).eq(target).sum().item<std::int64_t>();
  }
  net->train();
  return static_cast<double>(right) / static_cast<double>(samples);
}

double factor(std::int64_t step, std::int64_t steps) {
  constexpr std::int64_t warm_up = 100;
  if (step < warm_up) return static_cast<double>(step + 1) / warm_up;
  double const share = static_cast<double>(step - warm_up) / static_cast<double>(steps - warm_up);
  return 0.5 * (1 + std::cos(std::numbers::pi * share));
}

}  // namespace

int main() {
  std::signal(SIGINT, [](int) { interrupted = 1; });
  std::string const folder = "/usr/share/datasets/fashion-mnist";
  torch::data::datasets::MNIST const all(folder);
  torch::manual_seed(1);
  auto const shuffled = torch::randperm(60000);
  auto const part = [&](std::int64_t from, std::int64_t count) {
    auto const which = shuffled.narrow(0, from, count);
    return Images{all.images().index_select(0, which), all.targets().index_select(0, which)};
  };
  Images const train = part(0, 54000), valid = part(54000, 6000);
  nn::Sequential net(nn::Flatten(), nn::Linear(784, 128), nn::ReLU(), nn::Linear(128, 10));

  constexpr std::int64_t epochs = 2, batch = 128;
  constexpr double rate = 2e-3;
  std::int64_t const samples = train.images.size(0);
  std::int64_t const steps = epochs * ((samples + batch - 1) / batch);
  torch::optim::AdamW optimizer(net->parameters(), torch::optim::AdamWOptions(rate));
  std::filesystem::create_directories("runs/by_hand");

  std::int64_t step = 0;
  double best = 0;
  for (std::int64_t epoch = 0; epoch < epochs && interrupted == 0; ++epoch) {
    torch::manual_seed(static_cast<std::uint64_t>(epoch));
    auto const order = torch::randperm(samples);
    double sum = 0;
    for (std::int64_t at = 0; at < samples && interrupted == 0; at += batch) {
      auto const which = order.narrow(0, at, std::min(batch, samples - at));
      auto const data = train.images.index_select(0, which);
      auto const target = train.targets.index_select(0, which);
      for (auto& group : optimizer.param_groups())
        group.options().set_lr(rate * factor(step, steps));
      optimizer.zero_grad();
      auto const loss = nn::functional::cross_entropy(net->forward(data), target);
      loss.backward();
      nn::utils::clip_grad_norm_(net->parameters(), 1.0);
      optimizer.step();
      sum += loss.item<double>();
      if (++step % 50 == 0) std::cerr << "\rstep " << step << " of " << steps << std::flush;
    }
    double const found = accuracy(net, valid);
    std::cout << "epoch " << epoch << ": loss " << sum / (static_cast<double>(samples) / batch)
              << ", accuracy " << found << '\n';
    torch::save(net, "runs/by_hand/last.pt");
    torch::save(optimizer, "runs/by_hand/optimizer.pt");
    if (found > best) torch::save(net, "runs/by_hand/best.pt");
    best = std::max(best, found);
  }
  return interrupted != 0 ? 130 : 0;
}
