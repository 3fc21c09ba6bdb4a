// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <frugal/frugal.hpp>

#include "support/checkpoints.hpp"
#include "support/dying_runs.hpp"
#include "support/files.hpp"

#include <filesystem>
#include <limits>
#include <string>

namespace frugal_test::policy_checkpoint_find {

using namespace support;
using namespace support::dying_runs;
namespace fr = frugal;

/// Runs three epochs of 11 steps, and saves at the end of each, with its validation.
void run_with_checkpoints(std::filesystem::path const& folder) {
  Job const job{.folder = folder};
  run(job, fr::Optimize<fr::AdamW>{.lr = 0.05},
      fr::Validate<fr::Every<1, fr::Epoch>, fr::Accuracy>{},
      fr::Checkpoint<fr::Every<1, fr::Epoch>, fr::Keep<10>>{});
}

/// The best by the manifests, computed by hand.
fr::SavedCheckpoint best_by_hand(std::filesystem::path const& run, std::string const& metric,
                                 bool highest) {
  auto const list = fr::RunDirectory(run, fr::Access::read).list().whole;
  fr::SavedCheckpoint best;
  double value = std::numeric_limits<double>::quiet_NaN();
  for (auto const& each : list) {  // newest first
    auto const found = each.manifest.metrics.find(metric);
    if (found == each.manifest.metrics.end()) continue;
    bool const better = highest ? found->second > value : found->second < value;
    if (std::isnan(value) || better) {
      best = each;
      value = found->second;
    }
  }
  return best;
}

TEST_CASE("the latest and the best checkpoint of a run, by any metric of its validations") {
  TemporaryFolder const folder;
  run_with_checkpoints(folder.path());
  CHECK(fr::latest_checkpoint(folder.path()).filename() == "step-00000033");
  CHECK(fr::best_checkpoint(folder.path()) == best_by_hand(folder.path(), "loss", false).folder);
  CHECK(fr::best_checkpoint(folder.path(), "loss", fr::Better::higher) ==
        best_by_hand(folder.path(), "loss", true).folder);
  CHECK(fr::best_checkpoint<fr::WatchAccuracy>(folder.path()) ==
        best_by_hand(folder.path(), "accuracy", true).folder);
}

TEST_CASE("damaged checkpoints are skipped") {
  TemporaryFolder const folder;
  run_with_checkpoints(folder.path());
  auto const best = fr::best_checkpoint(folder.path());
  flip_bit(best / "model.safetensors", 2000);
  CHECK(fr::best_checkpoint(folder.path()) != best);
  flip_bit(folder.path() / "checkpoints" / "step-00000033" / "state.json", 100);
  CHECK(fr::latest_checkpoint(folder.path()).filename() != "step-00000033");
}

TEST_CASE("a run without checkpoints, or without the metric, is an error that says what there is") {
  TemporaryFolder const folder;
  CHECK_THROWS_WITH_AS(fr::latest_checkpoint(folder.path()),
                       doctest::Contains("its folder has no checkpoint"), fr::StoreError);
  run_with_checkpoints(folder.path());
  CHECK_THROWS_WITH_AS(fr::best_checkpoint(folder.path(), "f1", fr::Better::higher),
                       doctest::Contains("there are: accuracy, loss"), fr::StoreError);
}

TEST_CASE("the best of a run that was never validated: the error says why there is none") {
  TemporaryFolder const folder;
  fr::Trainer trainer{std::make_shared<Mlp>(),
                      fr::CrossEntropy{},
                      fr::Settings{.run_dir = folder.path(), .epochs = 1},
                      fr::Optimize<fr::SGD>{},
                      fr::Validate<fr::Every<100>>{},
                      fr::Checkpoint<fr::KeepBest<>>{}};
  fr::TensorDataset data(samples(8), {.batch = 4});
  static_cast<void>(trainer.fit(data, data));
  CHECK_THROWS_WITH_AS(fr::best_checkpoint(folder.path()),
                       doctest::Contains("was not due to validate before its end"), fr::StoreError);
}

TEST_CASE(
    "weights load from a run, a checkpoint or a file, and mismatches are refused or allowed") {
  TemporaryFolder const folder;
  run_with_checkpoints(folder.path());
  auto const checkpoint = fr::best_checkpoint(folder.path());
  Mlp trained({.dropout = 0.3, .norm = true});
  fr::LoadedWeights const all = fr::load_weights(trained, checkpoint);
  CHECK(all.complete());
  CHECK(all.matched.size() == tensors_of(trained).size());

  Mlp again({.dropout = 0.3, .norm = true});
  fr::load_weights(again, checkpoint / "model.safetensors");
  CHECK(same_bits(tensors_of(again), tensors_of(trained)));

  Mlp other;  // without a norm
  other.register_parameter("head", at::ones({2}));
  CHECK_THROWS_WITH_AS(fr::load_weights(other, folder.path()),
                       doctest::Contains("missing there: 'head'; unexpected there: 'norm."),
                       fr::StateError);
  fr::LoadedWeights const some = fr::load_weights(
      other, folder.path(), {.allow_missing = {"head"}, .allow_unexpected = {"norm.*"}});
  CHECK(some.missing == std::vector<std::string>{"head"});
  CHECK(some.unexpected.size() == 5);
  CHECK_FALSE(some.complete());
  CHECK(other.named_parameters()["head"].sum().item<double>() == 2);
}

TEST_CASE("weights of another shape are refused, and nothing is changed") {
  TemporaryFolder const folder;
  run_with_checkpoints(folder.path());
  Mlp wider({.hidden = 9, .dropout = 0.3, .norm = true});
  auto const before = tensors_of(wider);
  CHECK_THROWS_WITH_AS(fr::load_weights(wider, folder.path()),
                       doctest::Contains("'first.weight' is F32 [8, 6] there and F32 [9, 6] here"),
                       fr::StateError);
  CHECK(same_bits(tensors_of(wider), before));
}

}  // namespace frugal_test::policy_checkpoint_find
