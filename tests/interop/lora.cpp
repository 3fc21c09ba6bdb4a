// SPDX-License-Identifier: Apache-2.0
// The operations for tests/interop/lora.py, on one small network:
//
//  save FOLDER MODE     writes the network's weights (base.safetensors), trains an adapter (MODE lora, dora
//                       or rslora), saves it to FOLDER/adapter, and the outputs to FOLDER/outputs.safetensors
//  load FOLDER          loads FOLDER/base.safetensors and FOLDER/adapter; prints the outputs of the inputs in
//                       FOLDER/inputs.safetensors
#include <torch/torch.h>

#include <frugal/frugal.hpp>
#include <frugal/model.hpp>

#include <exception>
#include <filesystem>
#include <iomanip>
#include <iostream>
#include <map>
#include <string>
#include <vector>

namespace {

namespace fr = frugal;

struct NetImpl : torch::nn::Module {
  torch::nn::Embedding embed{register_module("embed", torch::nn::Embedding(10, 6))};
  torch::nn::Linear q_proj{register_module("q_proj", torch::nn::Linear(6, 8))};
  torch::nn::Conv2d conv{
      register_module("conv", torch::nn::Conv2d(torch::nn::Conv2dOptions(2, 8, 3).padding(1)))};
  torch::nn::BatchNorm1d norm{register_module("norm", torch::nn::BatchNorm1d(8))};
  torch::nn::Linear head{register_module("head", torch::nn::Linear(8, 3))};

  // Rows of ten numbers: four tokens, and six features, of which an image is made.
  at::Tensor forward(at::Tensor const& rows) {
    at::Tensor const features = rows.slice(1, 4);
    at::Tensor const image = features.repeat({1, 3}).view({-1, 2, 3, 3});
    at::Tensor const hidden = q_proj(features + embed(rows.slice(1, 0, 4).to(at::kLong)).mean(1)) +
                              conv(image).mean({2, 3});
    return head(norm(hidden).tanh());
  }
};
TORCH_MODULE(Net);

void write(std::filesystem::path const& path, std::map<std::string, at::Tensor> const& tensors) {
  std::vector<fr::TensorView> views;
  for (auto const& [name, tensor] : tensors) views.push_back(fr::detail::stored_view(name, tensor));
  fr::detail::TextSink sink;
  fr::SafetensorsWriter(views, {{"format", "pt"}}).write(sink);
  fr::detail::write_whole_file(path, sink.text, fr::detail::Durable::no);
}

at::Tensor some_rows(std::int64_t count) {
  return at::cat({torch::randint(0, 10, {count, 4}).to(at::kFloat), torch::randn({count, 6})}, 1);
}

template <class Policy>
void save(std::filesystem::path const& folder) {
  torch::manual_seed(7);
  Net net;
  std::map<std::string, at::Tensor> base;
  for (auto const& item : net->named_parameters())
    base.emplace(item.key(), item.value().detach().clone());
  for (auto const& item : net->named_buffers()) base.emplace(item.key(), item.value().clone());
  write(folder / "base.safetensors", base);
  fr::TensorDataset data(some_rows(64), torch::randint(0, 3, {64}), {.batch = 8});
  fr::Trainer trainer{net, fr::CrossEntropy{}, fr::Settings{.epochs = 3},
                      fr::Optimize<fr::AdamW>{.lr = 0.02}, Policy{}};
  static_cast<void>(trainer.fit(data));
  fr::save_adapter(net, folder / "adapter");
  at::NoGradGuard const no_gradients;
  net->eval();
  at::Tensor const inputs = some_rows(16);
  write(folder / "outputs.safetensors", {{"inputs", inputs}, {"outputs", net(inputs)}});
}

void load(std::filesystem::path const& folder) {
  Net net;
  static_cast<void>(fr::load_weights(net, folder / "base.safetensors"));
  fr::load_adapter(net, folder / "adapter");
  at::NoGradGuard const no_gradients;
  net->eval();
  auto const file = fr::Safetensors::open(folder / "inputs.safetensors");
  at::Tensor const outputs =
      net(fr::detail::tensor_in_file(*file.find("inputs"))).contiguous().flatten();
  std::cout << std::setprecision(9);
  for (std::int64_t i = 0; i < outputs.numel(); ++i) std::cout << outputs[i].item<float>() << '\n';
}

}  // namespace

int main(int count, char** arguments) {
  std::vector<std::string> const words(arguments + 1, arguments + count);
  try {
    if (words.size() == 3 && words[0] == "save") {
      using Names = fr::On<"q_proj", "conv", "embed">;
      using Head = fr::AlsoTrain<"head.*", "norm.*">;
      if (words[2] == "dora") {
        save<fr::Lora<fr::Rank<2>, fr::Alpha<4>, fr::Dora, Names, Head>>(words[1]);
      } else if (words[2] == "rslora") {
        save<fr::Lora<fr::Rank<4>, fr::Alpha<0.5>, fr::RankStabilized, Names, Head>>(words[1]);
      } else {
        save<fr::Lora<fr::Rank<2>, fr::Alpha<4>, Names, Head>>(words[1]);
      }
    } else if (words.size() == 2 && words[0] == "load") {
      load(words[1]);
    } else {
      std::cerr << "interop_lora: save FOLDER MODE, or load FOLDER\n";
      return 2;
    }
  } catch (std::exception const& error) {
    std::cerr << error.what() << '\n';
    return 1;
  }
  return 0;
}
