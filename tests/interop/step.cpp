// SPDX-License-Identifier: Apache-2.0
// needs: step
// What step.py asks of a step package: trains it on the batches of a file, in their order, and writes its weights.
//
//   interop_step PACKAGE BATCHES.safetensors OUT [--optimizer sgd|adamw] [--lr X] [--epochs N] [--run FOLDER]
//                [--bf16] [--accumulate]
//
// BATCHES has the tensors "I/field" of batch I. OUT becomes a folder with model.safetensors.
#include <frugal/checkpoint/safetensors.hpp>
#include <frugal/frugal.hpp>
#include <frugal/model/load_weights.hpp>
#include <frugal/model/save_weights.hpp>
#include <frugal/policy/checkpoint.hpp>
#include <frugal/step.hpp>

#include <ATen/Parallel.h>

#include <algorithm>
#include <cstddef>
#include <cstdlib>
#include <exception>
#include <iomanip>
#include <iostream>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace fr = frugal;

namespace {

using Fields = std::map<std::string, at::Tensor>;

std::vector<Fields> batches_of(std::string const& path) {
  auto const file = fr::Safetensors::open(path);
  std::map<int, Fields> found;
  for (std::size_t i = 0; i < file.size(); ++i) {
    std::string const name(file[i].name);
    auto const slash = name.find('/');
    found[std::stoi(name.substr(0, slash))][name.substr(slash + 1)] =
        fr::detail::tensor_in_file(file[i]).clone();
  }
  std::vector<Fields> batches;
  for (auto& [number, fields] : found) batches.push_back(std::move(fields));
  return batches;
}

struct Options {
  std::string package, batches, out, optimizer = "sgd", run{};
  double lr = 0.1;
  std::uint64_t epochs = 1;
  bool half = false, accumulates = false;
};

template <class... Ps>
void train(Options const& options, Ps const&... policies) {
  fr::StepPackage const package(options.package);
  std::vector<Fields> const batches = batches_of(options.batches);
  fr::Trainer trainer{package.module(), package.objective(),
                      fr::Settings{.run_dir = options.run, .epochs = options.epochs}, policies...};
  std::cout << std::setprecision(9) << "before " << trainer.evaluate(batches)["loss"] << '\n';
  fr::Report const report = trainer.fit(batches, batches);
  std::cout << report << '\n' << "loss " << trainer.evaluate(batches)["loss"] << '\n';
  fr::save_weights(trainer.module(), options.out);
}

template <class... Ps>
void with_format(Options const& options, Ps const&... policies) {
  options.half ? train(options, fr::Precision<fr::BF16>{}, policies...)
               : train(options, policies...);
}

template <class... Ps>
void with_folder(Options const& options, Ps const&... policies) {
  if (options.run.empty()) return with_format(options, policies...);
  with_format(options, fr::Checkpoint<fr::Every<1, fr::Epoch>>{}, policies...);
}

Options parse(int count, char** arguments) {
  std::vector<std::string> words(arguments + 1, arguments + count);
  if (words.size() < 3)
    throw std::invalid_argument("usage: interop_step PACKAGE BATCHES OUT [options]");
  Options options{.package = words[0], .batches = words[1], .out = words[2]};
  for (std::size_t i = 3; i < words.size(); ++i) {
    if (words[i] == "--bf16") {
      options.half = true;
    } else if (words[i] == "--accumulate") {
      options.accumulates = true;
    } else {
      std::string const& value = words.at(i + 1);
      if (words[i] == "--optimizer") options.optimizer = value;
      if (words[i] == "--lr") options.lr = std::stod(value);
      if (words[i] == "--epochs") options.epochs = std::stoull(value);
      if (words[i] == "--run") options.run = value;
      ++i;
    }
  }
  return options;
}

}  // namespace

int main(int count, char** arguments) try {
  at::set_num_threads(1);
  Options const options = parse(count, arguments);
  if (options.accumulates) {
    with_folder(options, fr::Optimize<fr::SGD>{.lr = options.lr}, fr::Accumulate<2>{});
  } else if (options.optimizer == "sgd") {
    with_folder(options, fr::Optimize<fr::SGD>{.lr = options.lr});
  } else {
    with_folder(options, fr::Optimize<fr::AdamW>{.lr = options.lr});
  }
} catch (std::exception const& error) {
  std::cerr << error.what() << '\n';
  return 1;
}
