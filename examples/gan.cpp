// SPDX-License-Identifier: Apache-2.0
// A GAN on Fashion-MNIST: generator and critic train in turns, and one checkpoint has both. Kill it, and run the same
// command again. Needs Debian's package dataset-fashion-mnist.
#include <frugal/apply.hpp>
#include <frugal/frugal.hpp>
#include <frugal/model/alternate.hpp>

#include <cstdint>
#include <exception>
#include <fstream>
#include <iostream>
#include <string>

namespace fr = frugal;
namespace nn = torch::nn;

namespace {

constexpr std::int64_t noise = 64;

struct GanImpl : nn::Module {
  nn::Sequential generator{register_module(
      "generator",
      nn::Sequential(nn::Linear(noise, 256), nn::BatchNorm1d(256), nn::ReLU(), nn::Linear(256, 512),
                     nn::BatchNorm1d(512), nn::ReLU(), nn::Linear(512, 784), nn::Tanh()))};
  nn::Sequential critic{register_module(
      "critic", nn::Sequential(nn::Linear(784, 256),
                               nn::LeakyReLU(nn::LeakyReLUOptions().negative_slope(0.2)),
                               nn::Dropout(0.3), nn::Linear(256, 1)))};
};
TORCH_MODULE(Gan);

/// The loss that does not saturate, of Goodfellow et al. (2014).
struct Game {
  template <class B>
  fr::Loss operator()(Gan& gan, B const& batch) const {
    at::Tensor const real = batch.data.flatten(1) * 2 - 1;  // pixels from 0 to 1
    at::Tensor const fake = gan->generator->forward(torch::randn({real.size(0), noise}));
    at::Tensor const says = gan->critic->forward(fake);
    if (fr::trains(gan->critic)) {
      at::Tensor const loss =
          at::softplus(says).mean() + at::softplus(-gan->critic->forward(real)).mean();
      return {.value = loss, .scalars = {{"critic", loss}}};
    }
    at::Tensor const loss = at::softplus(-says).mean();
    return {.value = loss, .scalars = {{"generator", loss}}};
  }
};

/// Writes 8 by 8 images as a PGM file, which most viewers show.
void write_samples(Gan& gan, std::string const& path) {
  at::NoGradGuard const no_gradients;
  gan->eval();
  at::Tensor const drawn = fr::seeded(7, [] { return torch::randn({64, noise}); });
  at::Tensor const sheet = gan->generator->forward(drawn)
                               .reshape({8, 8, 28, 28})
                               .permute({0, 2, 1, 3})
                               .reshape({224, 224})
                               .add(1)
                               .mul(127.5)
                               .to(at::kByte)
                               .contiguous();
  gan->train();
  std::ofstream file(path, std::ios::binary);
  file << "P5\n224 224\n255\n";
  file.write(reinterpret_cast<char const*>(sheet.const_data_ptr<std::uint8_t>()), sheet.numel());
}

}  // namespace

int main(int argc, char** argv) {
  try {
    auto images = fr::read_mnist("/usr/share/datasets/fashion-mnist", fr::Split::train);
    fr::TensorDataset train(std::move(images), {.batch = 128});
    fr::Trainer trainer{
        fr::seeded(1, [] { return Gan(); }),
        Game{},
        fr::Settings{.run_dir = "runs/gan", .epochs = 5, .seed = 2},
        fr::Optimize<fr::AdamW>{.lr = 2e-4, .beta1 = 0.5, .weight_decay = 0},
        fr::Alternate<fr::Turn<fr::Where<"critic.*">>, fr::Turn<fr::Where<"generator.*">>>{},
        fr::ClipNorm<1.0>{},
        fr::Checkpoint<fr::Every<100>>{},
        fr::Spot<fr::SigtermSave>{},
        fr::Log<fr::Every<50>>{},
        fr::Progress<>{}};
    CLI::App app("Trains a GAN on Fashion-MNIST.");
    bool json = false;
    app.add_flag("--json", json, "print the result as one line of JSON, and nothing else");
    fr::add_options(app, trainer);
    CLI11_PARSE(app, argc, argv);
    fr::Report const report = trainer.fit(train);
    if (json) {
      std::cout << fr::json_line(report) << '\n';
    } else {
      std::cout << report << '\n';
    }
    std::string const samples = (trainer.settings().run_dir / "samples.pgm").string();
    write_samples(trainer.module(), samples);
    if (!json) std::cout << "samples: " << samples << '\n';
    return report.exit_code();
  } catch (std::exception const& error) {
    std::cerr << error.what() << '\n';
    return 2;
  }
}
