// SPDX-License-Identifier: Apache-2.0
// needs: text
// A published encoder of 22 million parameters learns which part of the Bible a verse is from, in four ways: all
// of it is trained, its head alone, adapters (LoRA) and the head, and all of it from random weights.
//
//     finetune MODEL TEXT [VERSES] [WAY...]
//
// MODEL is a folder with model.safetensors, config.json and tokenizer.json, TEXT has a verse on each line
// ("Ge1:1 In the beginning ..."), and VERSES are trained on (3000). `./dev finetune` gets both and calls it.
#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <map>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include <torch/torch.h>

#include <frugal/data.hpp>
#include <frugal/data/text/tokenizer_json.hpp>
#include <frugal/frugal.hpp>
#include <frugal/model.hpp>
#include <frugal/models.hpp>

namespace fr = frugal;
using fr::models::Bert;
using fr::models::BertOptions;

namespace {

constexpr std::int64_t longest = 64;  // tokens; longer verses are cut
constexpr std::int64_t groups = 6;

/// The encoder, and a head over the mean of its tokens.
struct ClassifierImpl : torch::nn::Module {
  explicit ClassifierImpl(BertOptions const& options)
      : encoder(register_module("encoder", Bert(options))),
        head(register_module("head", torch::nn::Linear(options.width, groups))) {}

  at::Tensor forward(at::Tensor const& ids_BT) {
    at::Tensor const mask_BT = ids_BT.ne(0);
    // Columns that are padding in every verse of the batch cost time and change nothing.
    std::int64_t const used = mask_BT.sum(1).max().item<std::int64_t>();
    at::Tensor const ids = ids_BT.narrow(1, 0, used);
    at::Tensor const mask = mask_BT.narrow(1, 0, used);
    at::Tensor const hidden_BTW = encoder(ids, mask);
    at::Tensor const weight_BT1 = mask.unsqueeze(2).to(hidden_BTW.scalar_type());
    return head((hidden_BTW * weight_BT1).sum(1) / weight_BT1.sum(1));
  }

  Bert encoder;
  torch::nn::Linear head;
};
TORCH_MODULE(Classifier);

/// Law, history, poetry, prophets, gospels, letters: by the first book of each.
std::int64_t group_of(std::string_view book, std::int64_t now) {
  constexpr std::array<std::string_view, groups> first{"Ge", "Josh", "Job", "Isa", "Mat", "Rom"};
  auto const found = std::ranges::find(first, book);
  return found == first.end() ? now : found - first.begin();
}

struct Verses {
  at::Tensor ids{}, groups{};
};

/// Every verse, shuffled, as ids and group.
Verses read(std::filesystem::path const& text, fr::Wordpiece const& words) {
  std::ifstream in(text);
  std::vector<std::vector<std::int32_t>> all;
  std::vector<std::int64_t> labels;
  std::int64_t group = 0;
  for (std::string line; std::getline(in, line);) {
    std::size_t const blank = line.find(' ');
    if (blank == std::string::npos) continue;
    std::string_view const place = std::string_view(line).substr(0, blank);
    std::size_t const digits = place.find_first_of("0123456789", 1);
    group = group_of(place.substr(0, digits), group);
    all.push_back(words.encode(std::string_view(line).substr(blank + 1), longest).ids);
    labels.push_back(group);
  }
  Verses verses{at::zeros({static_cast<std::int64_t>(all.size()), longest}, at::kLong),
                at::tensor(labels)};
  for (std::size_t i = 0; i < all.size(); ++i) {
    verses.ids[static_cast<std::int64_t>(i)]
        .narrow(0, 0, static_cast<std::int64_t>(all[i].size()))
        .copy_(at::tensor(all[i]));
  }
  torch::manual_seed(1);
  at::Tensor const order = at::randperm(verses.groups.size(0));
  return {verses.ids.index_select(0, order), verses.groups.index_select(0, order)};
}

struct Job {
  std::filesystem::path model{};
  BertOptions options{};
  Verses verses{};
  std::int64_t trained_on = 3000;
};

/// Trains one way, and prints a line of the table.
template <class... Policies>
void train(Job const& job, char const* way, bool pretrained, double rate,
           Policies const&... policies) {
  torch::manual_seed(2);
  Classifier net(job.options);
  if (pretrained) {
    fr::load_weights(*net->encoder, job.model / "model.safetensors",
                     {.allow_unexpected = {"*position_ids"}});
  }
  auto const part = [&](std::int64_t from, std::int64_t count, bool shuffle) {
    return fr::TensorDataset(job.verses.ids.narrow(0, from, count),
                             job.verses.groups.narrow(0, from, count),
                             {.batch = 32, .shuffle = shuffle});
  };
  auto training = part(0, job.trained_on, true);
  auto valid = part(job.trained_on, std::min<std::int64_t>(1000, job.trained_on), false);
  fr::Trainer trainer{net,
                      fr::CrossEntropy{},
                      fr::Settings{.epochs = 2},
                      fr::Optimize<fr::AdamW>{.lr = rate},
                      fr::Schedule<fr::Warmup<10>, fr::LinearDecay<>>{},
                      fr::ClipNorm<1.0>{},
                      fr::Validate<fr::Every<2, fr::Epoch>, fr::Accuracy>{},
                      policies...};
  fr::Report const report = trainer.fit(training, valid);
  std::int64_t trained = 0;
  for (at::Tensor const& each : net->parameters())
    trained += each.requires_grad() ? each.numel() : 0;
  // Unknown if an earlier way took more: name one way, and it has the process for itself.
  std::string const memory =
      report.memory.growth ? std::to_string(*report.memory.growth >> 20U) : "-";
  std::printf("%-10s %12ld %9.1f %10.1f %9s %9.3f\n", way, static_cast<long>(trained),
              report.seconds, static_cast<double>(job.trained_on * 2) / report.seconds,
              memory.c_str(), report.validations.back().metrics["accuracy"]);
  std::fflush(stdout);
}

}  // namespace

int main(int count, char** arguments) {
  std::vector<std::string> const words(arguments + 1, arguments + count);
  if (words.size() < 2) {
    std::cerr << "finetune MODEL TEXT [VERSES] [whole|head|lora|scratch...]\n";
    return 2;
  }
  try {
    Job job;
    job.model = words[0];
    job.options = BertOptions::from(fr::ModelConfig::read(job.model));
    if (words.size() > 2) job.trained_on = std::stoll(words[2]);
    job.verses = read(words[1], fr::read_tokenizer(job.model));
    auto const wanted = [&](char const* way) {
      return words.size() < 4 || std::ranges::count(words, way) != 0;
    };
    std::printf("%-10s %12s %9s %10s %9s %9s\n", "way", "trained", "seconds", "verses/s", "MiB",
                "accuracy");
    using Layers = fr::On<"query", "key", "value", "*.layer.*.dense">;
    using Adapters = fr::Lora<fr::Rank<8>, fr::Alpha<32>, Layers, fr::AlsoTrain<"head.*">>;
    if (wanted("whole")) train(job, "whole", true, 2e-4);
    if (wanted("head")) train(job, "head", true, 1e-2, fr::Freeze<fr::Where<"encoder.*">>{});
    if (wanted("lora")) train(job, "lora", true, 2e-3, Adapters{});
    if (wanted("scratch")) train(job, "scratch", false, 3e-4);
  } catch (std::exception const& error) {
    std::cerr << error.what() << '\n';
    return 1;
  }
  return 0;
}
