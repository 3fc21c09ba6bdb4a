// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <frugal/frugal.hpp>
#include <frugal/policy/checkpoint/weights.hpp>

#include "support/checkpoints.hpp"
#include "support/dying_runs.hpp"
#include "support/files.hpp"

#include <algorithm>
#include <filesystem>
#include <map>
#include <memory>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

namespace frugal_test::policy_checkpoint_weights {

using namespace support;
using namespace support::dying_runs;
using frugal::Every;
using frugal::Weights;
using Tensors = std::map<std::string, at::Tensor>;

TEST_CASE("the report of a load has one line per name that differs") {
  frugal::LoadedWeights loaded;
  loaded.file = "runs/demo/model.safetensors";
  loaded.matched = {"first.weight", "first.bias"};
  CHECK(loaded.complete());
  loaded.missing = {"head.weight"};
  loaded.unexpected = {"classifier.weight"};
  CHECK_FALSE(loaded.complete());
  loaded.misshapen = {"tail.weight"};
  loaded.resized = {"embedding.weight"};
  std::ostringstream out;
  out << loaded;
  CHECK(out.str() ==
        "2 tensors from runs/demo/model.safetensors\n"
        "missing: 'head.weight' is not in the file\n"
        "unexpected: 'classifier.weight' is not in the module\n"
        "misshapen: 'tail.weight' is another one in the file\n"
        "resized: 'embedding.weight' has another number of rows in the file");
}

/// A file of weights, as another program writes it.
void write_file(std::filesystem::path const& path, Tensors const& tensors) {
  std::vector<frugal::TensorView> views;
  for (auto const& [name, tensor] : tensors) {
    views.push_back(frugal::detail::stored_view(name, tensor));
  }
  frugal::SafetensorsWriter const writer(std::move(views), {{"format", "pt"}}, path.string());
  frugal::File file = frugal::File::create(path);
  writer.write(file);
  file.close();
}

/// The head has the weight of the embedding, as in language models.
struct Tied : torch::nn::Module {
  Tied() {
    at::Tensor const weight = register_parameter("embedding", at::zeros({3, 2}));
    register_parameter("head", weight);
    register_parameter("bias", at::zeros({3}));
  }
};

TEST_CASE("a tied tensor that a file has under one of its names is not missing") {
  TemporaryFolder const folder;
  at::Tensor const weight = at::arange(6, at::kFloat).view({3, 2});
  for (std::string const name : {"embedding", "head"}) {
    Tied module;
    write_file(folder / name, {{name, weight}, {"bias", at::ones({3})}});
    auto const loaded = frugal::load_weights(module, folder / name);
    CHECK(loaded.complete());
    CHECK((loaded.matched == std::vector<std::string>{"embedding", "head", "bias"}));
    CHECK(module.named_parameters()["head"].equal(weight));
  }
  Tied module;
  write_file(folder / "neither", {{"bias", at::ones({3})}});
  CHECK((frugal::load_weights(module, folder / "neither", {.allow_missing = {"*"}}).missing ==
         std::vector<std::string>{"embedding", "head"}));
}

TEST_CASE("two values for one tied tensor are refused, and nothing is changed") {
  TemporaryFolder const folder;
  Tied module;
  Tensors const file{{"embedding", at::ones({3, 2})}, {"head", at::ones({3, 2})}};
  write_file(folder / "same", file);
  CHECK((frugal::load_weights(module, folder / "same", {.allow_missing = {"bias"}}).missing ==
         std::vector<std::string>{"bias"}));
  write_file(folder / "two", {{"embedding", at::zeros({3, 2})}, {"head", at::ones({3, 2})}});
  CHECK_THROWS_WITH_AS(
      frugal::load_weights(module, folder / "two", {.allow_missing = {"bias"}}),
      doctest::Contains("'embedding' and 'head' differ there and are one tied tensor here"),
      frugal::StateError);
  CHECK(module.named_parameters()["head"].equal(at::ones({3, 2})));
}

/// A module with the weights that a call of load_weights takes.
template <class... Which>
Tensors loaded(std::filesystem::path const& path, Which... which) {
  Mlp module({.dropout = 0.3, .norm = true});
  CHECK(frugal::load_weights(module, path, which...).complete());
  return tensors_of(module);
}

template <class... Ps>
Tensors run_with_average(std::filesystem::path const& folder, Ps const&... policies) {
  return run({.folder = folder, .epochs = 2}, frugal::Optimize<frugal::SGD>{.lr = 0.5},
             frugal::Checkpoint<Every<5>>{}, policies...)
      .tensors;
}

TEST_CASE("load_weights takes the validated weights of a checkpoint, or those that are named") {
  TemporaryFolder const folder;
  using Ema = frugal::Average<frugal::Ema<0.9>>;
  Tensors const average = run_with_average(folder / "yes", Ema{});
  Tensors const trained = run_with_average(folder / "no", Ema{.validate = false});
  REQUIRE_FALSE(same_bits(average, trained));
  for (std::string const name : {"yes", "no"}) {
    CAPTURE(name);
    auto const run = folder / name;
    auto const checkpoint = frugal::latest_checkpoint(run);
    // The files alone, as they are copied to a server.
    auto const copy = folder / (name + "-copy");
    std::filesystem::create_directories(copy);
    for (char const* const file : {"model.safetensors", "averaged.safetensors"}) {
      std::filesystem::copy_file(checkpoint / file, copy / file);
    }
    for (auto const& path : {run, checkpoint, copy}) {
      CAPTURE(path);
      CHECK(same_bits(loaded(path), name == "yes" ? average : trained));
      CHECK(same_bits(loaded(path, Weights::validated), name == "yes" ? average : trained));
      CHECK(same_bits(loaded(path, Weights::trained), trained));
      CHECK(same_bits(loaded(path, Weights::averaged), average));
    }
    CHECK(same_bits(loaded(checkpoint / "model.safetensors"), trained));
    CHECK(same_bits(loaded(checkpoint / "averaged.safetensors"), average));
  }
}

TEST_CASE("a checkpoint without averages has the trained weights alone") {
  TemporaryFolder const folder;
  Tensors const trained = run_with_average(folder.path());
  CHECK(same_bits(loaded(folder.path()), trained));
  CHECK(same_bits(loaded(folder.path(), Weights::trained), trained));
  Mlp module;
  CHECK_THROWS_WITH_AS(frugal::load_weights(module, folder.path(), Weights::averaged),
                       doctest::Contains("the checkpoint has no file of averaged weights"),
                       frugal::StoreError);
}

TEST_CASE("a run begins with the validated weights of another one, or with those that are named") {
  TemporaryFolder const folder;
  Tensors const average = run_with_average(folder / "donor", frugal::Average<frugal::Ema<0.9>>{});
  Tensors const trained = loaded(folder / "donor", Weights::trained);
  for (Weights const which : {Weights::validated, Weights::trained, Weights::averaged}) {
    Outcome const begun =
        run({.folder = folder / std::to_string(static_cast<int>(which)), .seed = 3, .dies_at = 1},
            frugal::Optimize<frugal::SGD>{},
            frugal::Checkpoint<Every<1000>>{
                .resume = frugal::Resume::Weights, .from = folder / "donor", .weights = which});
    at::Tensor const& expected = (which == Weights::trained ? trained : average).at("first.weight");
    CHECK(begun.tensors.at("first.weight").equal(expected));
  }
}

}  // namespace frugal_test::policy_checkpoint_weights
