// SPDX-License-Identifier: Apache-2.0
// A small GPT-2 learns a text byte by byte, and writes on.
//
//     generate [--text FILE] [--epochs N] [--prompt TEXT] ...
#include <frugal/frugal.hpp>
#include <frugal/models.hpp>

#include <CLI/CLI.hpp>
#include <cstdint>
#include <exception>
#include <fstream>
#include <iostream>
#include <iterator>
#include <stdexcept>
#include <string>

namespace fr = frugal;

namespace {

constexpr std::int64_t window = 64;  // bytes

std::string built_in() {
  std::string const verse =
      "I know an old lady who swallowed a fly. I do not know why she swallowed the fly. "
      "I know an old lady who swallowed a spider. She swallowed the spider to catch the fly. "
      "I know an old lady who swallowed a bird. She swallowed the bird to catch the spider. ";
  std::string text;
  for (int i = 0; i < 40; ++i) text += verse;
  return text;
}

std::string read(std::string const& path) {
  std::ifstream file(path, std::ios::binary);
  std::string text{std::istreambuf_iterator<char>(file), {}};
  if (text.size() <= 2 * window) throw std::runtime_error(path + ": not a text of 128 bytes");
  return text;
}

at::Tensor bytes_of(std::string& text) {
  return at::from_blob(text.data(), {static_cast<std::int64_t>(text.size())}, at::kByte)
      .to(at::kLong);
}

/// Windows of the text, half of each in the next one too, and the byte behind each of theirs.
fr::TensorDataset windows(std::string& text, std::int64_t batch) {
  at::Tensor const rows = bytes_of(text).unfold(0, window + 1, window / 2);
  return {rows.slice(1, 0, -1), rows.slice(1, 1), {.batch = batch}};
}

std::string text_of(at::Tensor const& ids) {
  std::string text;
  for (std::int64_t i = 0; i < ids.size(0); ++i) {
    text += static_cast<char>(ids[i].item<std::int64_t>());
  }
  return text;
}

}  // namespace

int main(int argc, char** argv) {
  std::string path, prompt = "I know ";
  std::uint64_t epochs = 8;
  std::int64_t width = 64, layers = 2, batch = 8;
  fr::models::GenerateOptions options{
      .max_new_tokens = 57, .temperature = 0.7, .top_k = 20, .top_p = 0.95};

  CLI::App app("Trains a small GPT-2 on a text, and prints what it writes.");
  app.add_option("--text", path, "the file; a built-in text if left out")->check(CLI::ExistingFile);
  app.add_option("--epochs", epochs, "passes over the text")
      ->check(CLI::Range(1, 1000))
      ->capture_default_str();
  app.add_option("--width", width, "of the model, a multiple of 4")->capture_default_str();
  app.add_option("--layers", layers, "of the model")->capture_default_str();
  app.add_option("--batch", batch, "windows per step")
      ->check(CLI::Range(1, 4096))
      ->capture_default_str();
  app.add_option("--prompt", prompt, "the beginning of what it writes")->capture_default_str();
  app.add_option("--tokens", options.max_new_tokens, "how many bytes it writes")
      ->capture_default_str();
  app.add_option("--temperature", options.temperature, "0: the likeliest byte each time")
      ->capture_default_str();
  app.add_option("--seed", options.seed, "of what it draws")->capture_default_str();
  CLI11_PARSE(app, argc, argv);

  try {
    std::string text = path.empty() ? built_in() : read(path);
    auto data = windows(text, batch);
    torch::manual_seed(1);
    fr::models::Gpt2 net(fr::models::Gpt2Options{.vocabulary = 256,
                                                 .positions = window,
                                                 .width = width,
                                                 .layers = layers,
                                                 .heads = 4,
                                                 .dropout = 0,
                                                 .attention_dropout = 0,
                                                 .embedding_dropout = 0});
    fr::Trainer trainer{net,
                        fr::models::NextToken{},
                        fr::Settings{.epochs = epochs},
                        fr::Optimize<fr::AdamW>{.lr = 3e-3},
                        fr::Schedule<fr::Warmup<10>, fr::Cosine>{},
                        fr::ClipNorm<1.0>{}};
    fr::Report const report = trainer.fit(data);
    std::cout << report << '\n';
    std::cout << text_of(fr::models::generate(net, bytes_of(prompt), options)) << '\n';
    return report.exit_code();
  } catch (std::exception const& error) {
    std::cerr << error.what() << '\n';
    return 1;
  }
}
