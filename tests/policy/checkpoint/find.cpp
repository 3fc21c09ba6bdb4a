// SPDX-License-Identifier: Apache-2.0
#include "support/checkpoints.hpp"
#include "support/curve.hpp"
#include "support/dying_runs.hpp"
#include "support/files.hpp"
#include "support/running.hpp"

#include <doctest/doctest.h>

#include <frugal/data.hpp>
#include <frugal/frugal.hpp>
#include <frugal/policy/checkpoint/find.hpp>
#include <frugal/report.hpp>

#include <nlohmann/json.hpp>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <typeinfo>
#include <utility>
#include <vector>

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

namespace frugal_test::policy_checkpoint_former_validation {

using namespace support;
using namespace support::dying_runs;
namespace fr = frugal;

TEST_CASE("sources that both have, with other data, are the changed ones") {
  std::map<std::string, std::string> const one{
      {"content", "a"}, {"validation", "b"}, {"validation 'far'", "c"}};
  std::map<std::string, std::string> other = one;
  other["content"] = "z";
  auto const texts = [](auto const& data) { return fr::detail::validation_texts(data); };
  CHECK(fr::detail::changed_sources(texts(one), texts(other)).empty());
  other["validation 'far'"] = "y";
  CHECK(fr::detail::changed_sources(texts(one), texts(other)).size() == 1);
  CHECK(fr::detail::changed_sources(texts(one), texts(other)).contains("far"));
  other.erase("validation 'far'");
  other["validation"] = "x";
  CHECK(fr::detail::changed_sources(texts(one), texts(other)).contains(""));
}

TEST_CASE("after a change of the validation data, best values on the former ones do not count") {
  TemporaryFolder const folder;
  using Saves = fr::Checkpoint<fr::Every<1000>, fr::KeepBest<>, fr::Keep<1>>;
  follow(folder.path(), {5, 1, 1}, Saves{});
  CHECK(fr::best_checkpoint(folder.path()).filename() == "step-00000003");
  fr::Report const report =
      follow(folder.path(), {0, 0, 0, 9, 8, 8.5, 9}, Saves{.changed_data = {"validation"}}, 2);
  CHECK(advises(report,
                "the best values on the former ones are forgotten: KeepBest's best \"loss\""));
  CHECK((steps_in(folder.path()) == Steps{5, 7}));
  CHECK(fr::best_checkpoint(folder.path()).filename() == "step-00000005");
}

TEST_CASE("a metric in an old manifest does not win over one on the new validation data") {
  TemporaryFolder const folder;
  follow(folder.path(), {5, 1, 1}, fr::Checkpoint<fr::Every<1, fr::Epoch>, fr::Keep<9>>{});
  fr::Checkpoint<fr::Every<1, fr::Epoch>, fr::Keep<9>> const changed{
      .changed_data = {"validation"}};
  CHECK_FALSE(advises(follow(folder.path(), {0, 0, 0, 9, 8, 8.5}, changed, 2), "forgotten"));
  CHECK(fr::best_checkpoint(folder.path()).filename() == "step-00000005");
}

TEST_CASE(
    "EarlyStop and Plateau forget a best value on former validation data, and their patience") {
  TemporaryFolder const folder;
  using Stop = fr::EarlyStop<fr::Patience<2>>;
  using Lowers = fr::Schedule<fr::Plateau<0.5, fr::Patience<1>>>;
  fr::Checkpoint<fr::Every<1>> const saves{.changed_data = {"validation"}};
  auto const start = [&](std::vector<double> const& losses, double value) {
    return follow(folder.path(), losses, saves, value, Stop{.restore_best = true}, Lowers{});
  };
  start({1, 1.5}, 1);
  fr::Report const report = start({0, 0, 9, 8, 7}, 2);
  CHECK(report.stopped_by.empty());
  CHECK(report.steps == 5);
  CHECK(report.restored_step == 5u);
  CHECK(report.validations.size() == 5);
  CHECK(advises(report, "EarlyStop's best \"loss\"; Plateau's best \"loss\""));
}

}  // namespace frugal_test::policy_checkpoint_former_validation

namespace frugal_test::policy_checkpoint_changed_data {

using namespace support;
using namespace support::dying_runs;
namespace fr = frugal;
using fr::Every;
using fr::detail::changed_data;

TEST_CASE("every difference is named with both values, and one that is allowed is returned") {
  std::map<std::string, std::string> const there{{"order", "ShardOrder"}, {"window", "16 shards"}};
  std::map<std::string, std::string> const here{{"order", "Pass"}};
  CHECK(changed_data(there, there, {}, "state.json").empty());
  CHECK(changed_data(here, there, {"window", "order"}, "state.json") ==
        std::vector<std::string>{"order was ShardOrder and is Pass",
                                 "window was 16 shards and is nothing"});
  std::optional<fr::Fault> fault;
  try {
    changed_data(here, there, {}, "state.json");
  } catch (fr::StateError const& error) {
    fault = error.fault();
  }
  REQUIRE(fault);
  CHECK(fault->where == "state.json");
  // Of a user's source, and not of a validation source, which may come or go.
  CHECK_THROWS_AS(changed_data({}, {{"validation_share", "0.1"}}, {}, "state.json"),
                  fr::StateError);
  CHECK(changed_data({}, {{"validation", "a"}, {"validation 'b'", "c"}}, {}, "state.json").empty());
  CHECK(fault->why ==
        "order is ShardOrder there and Pass here; window is 16 shards there and nothing here");
  CHECK(fault->fix.find("Checkpoint::changed_data to {\"order\", \"window\"}") !=
        std::string::npos);
}

/// 40 samples in shards of 10, by number.
struct Shards {
  std::int64_t first = 0;
  std::uint64_t size() const { return 40; }
  fr::Batch get(std::uint64_t i) const {
    fr::Batch const all = samples(80);
    auto const at = first + static_cast<std::int64_t>(i);
    return {all.data[at], all.target[at]};
  }
  std::vector<std::uint64_t> shard_sizes() const { return {10, 10, 10, 10}; }
  std::string identity() const { return "from sample " + std::to_string(first); }
};

TEST_CASE(
    "a difference of data is shown by the parts that differ, with types as they are written") {
  auto const text = [](std::string const& hash, std::string const& more) {
    return "data [40, 6] Float, hash " + hash + ", order Pass, shuffle false, " +
           typeid(Shards).name() + more +
           ", target [40] Long, hash 30ac0000000000000000000000000000";
  };
  using fr::detail::shown_identity;
  CHECK(shown_identity(text("0a", ""), text("1b", "")) == "data [40, 6] Float, hash 0a");
  CHECK(shown_identity(text("0a", ""), text("0a", ", version 2")) == "without that");
  CHECK(shown_identity(text("0a", ", version 2"), text("0a", "")) == "version 2");
  CHECK(shown_identity(typeid(Shards).name(), "i 16 3abc") ==
        "frugal_test::policy_checkpoint_changed_data::Shards");
  CHECK(shown_identity("i 16 3abc", "j") == "i 16 3abc");
  std::string const longest(400, 'x');
  CHECK(shown_identity(longest, "nothing") ==
        std::string(50, 'x') + " ... " + std::string(25, 'x'));
  CHECK(shown_identity(longest + ", y", "y, " + longest) == "the same in another order");
  CHECK(shown_identity(longest + ", y, y", "y, " + longest) == "y");
  CHECK(shown_identity("y, " + longest, longest + ", y, y") == "without that");
  // A difference in the middle of a long part is not left out of the error.
  std::string const other = std::string(200, 'x') + "y" + std::string(199, 'x');
  std::string text_of_error;
  try {
    static_cast<void>(
        fr::detail::changed_data({{"data", longest}}, {{"data", other}}, {}, "state.json"));
  } catch (fr::StateError const& error) {
    text_of_error = error.what();
  }
  CHECK(text_of_error.find("data is " + other + " there and " + longest) != std::string::npos);
}

/// Trains for two epochs, or up to a step; the losses of the batches.
template <class Source>
std::vector<double> train(Source source, std::filesystem::path const& folder,
                          std::optional<std::uint64_t> steps = {},
                          fr::Checkpoint<Every<4>> const& saves = {},
                          fr::Report* report = nullptr) {
  std::vector<double> losses;
  fr::Settings settings{.run_dir = folder, .epochs = 2, .seed = 7};
  settings.steps = steps;
  fr::Trainer trainer{std::make_shared<Mlp>(), Witness{.losses = &losses}, settings,
                      fr::Optimize<fr::AdamW>{}, saves};
  fr::Report const made = trainer.fit(source);
  if (report != nullptr) *report = made;
  return losses;
}

template <class Source>
std::string refusal(Source source, std::filesystem::path const& folder) {
  try {
    static_cast<void>(train(std::move(source), folder));
  } catch (fr::StateError const& error) {
    CHECK(error.fault().what == "this checkpoint was made with other data");
    return error.fault().why;
  }
  return "nothing was refused";
}

auto shards(std::uint64_t window, std::int64_t first = 0, std::int64_t batch = 4, int workers = 0) {
  Shards set{first};
  fr::ShardOrder order(set, {.batch = batch}, {.shards = window});
  return fr::Loader(std::move(set), std::move(order), fr::Stack{}, {.workers = workers});
}

TEST_CASE("another window of shards is refused, and so is another set of as many samples") {
  TemporaryFolder const folder;
  train(shards(2), folder.path(), 6);
  CHECK(refusal(shards(3), folder.path()) == "window is 2 shards there and 3 shards here");
  CHECK(refusal(shards(2, 40), folder.path()) ==
        "data is from sample 0 there and from sample 40 here");
  CHECK(refusal(shards(3, 40), folder.path()) ==
        "data is from sample 0 there and from sample 40 here; window is 2 shards there and 3 "
        "shards here");
}

TEST_CASE("workers, the batch size and another place in memory change no sample, and resume") {
  TemporaryFolder const folder;
  train(shards(2), folder.path(), 6);
  fr::Report report;
  CHECK(train(fr::Prefetch(shards(2, 0, 4, 2)), folder.path(), 10, {}, &report).size() == 4);
  CHECK(report.resumed);
  CHECK(report.resumed->changed.empty());
  CHECK(train(shards(2, 0, 8), folder.path(), 12, {}, &report).size() == 2);
}

TEST_CASE("a difference that is named goes through, is reported, and is that of the next start") {
  TemporaryFolder const folder;
  train(shards(2), folder.path(), 6);
  fr::Checkpoint<Every<4>> const saves{.changed_data = {"window"}};
  fr::Report report;
  train(shards(3), folder.path(), 12, saves, &report);
  REQUIRE(report.resumed);
  CHECK(report.resumed->step == 6);
  CHECK(report.resumed->changed == std::vector<std::string>{"window was 2 shards and is 3 shards"});
  CHECK(advises(report, "window was 2 shards and is 3 shards"));
  train(shards(3), folder.path(), 14, {}, &report);
  CHECK(report.resumed->changed.empty());
}

TEST_CASE("tensors in memory are known by their bytes, on whatever they lie") {
  TemporaryFolder const folder;
  fr::Batch const all = samples(40);
  train(fr::TensorDataset(all, {.batch = 4}), folder.path(), 6);
  fr::Batch const other{all.data.clone(), all.target};
  train(fr::TensorDataset(other, {.batch = 4}), folder.path(), 7);
  other.data[39][0] += 1;
  CHECK(refusal(fr::TensorDataset(other, {.batch = 4}), folder.path())
            .starts_with("data is [40, 6]"));
  CHECK(refusal(fr::TensorDataset(all, {.batch = 4, .shuffle = false}), folder.path()) ==
        "shuffle is true there and false here");
}

TEST_CASE("buckets with another batch size would lose and repeat samples: refused") {
  TemporaryFolder const folder;
  auto const buckets = [](std::int64_t batch) {
    fr::Buckets lengths{.lengths = std::vector<std::int64_t>(40), .pool = 2};
    for (std::size_t i = 0; i < 40; ++i) lengths.lengths[i] = static_cast<std::int64_t>(i % 7);
    return fr::Loader(Shards{}, fr::BucketPass(40, {.batch = batch}, lengths, "set"), fr::Stack{},
                      {.workers = 0});
  };
  train(buckets(4), folder.path(), 6);
  CHECK(refusal(buckets(8), folder.path()) == "batch is 4 there and 8 here");
}

TEST_CASE("other validation data are refused, and a validation source may come or go") {
  TemporaryFolder const folder;
  fr::Batch const all = samples(40);
  fr::Batch const near = samples(12, 5);
  fr::Batch const far = samples(12, 6);
  auto const run = [&](std::uint64_t steps, std::vector<std::string> const& changed,
                       auto&&... valid) {
    fr::Trainer trainer{
        std::make_shared<Mlp>(), fr::CrossEntropy{},
        fr::Settings{.run_dir = folder.path(), .epochs = 9, .steps = steps, .seed = 7},
        fr::Optimize<fr::AdamW>{}, fr::Checkpoint<Every<4>>{.changed_data = changed}};
    return trainer.fit(fr::TensorDataset(all, {.batch = 4}), valid...);
  };
  fr::TensorDataset one(near, {.batch = 4});
  fr::TensorDataset other(far, {.batch = 4});
  run(4, {}, one);
  try {
    run(5, {}, other);
    FAIL("the validation data are others");
  } catch (fr::StateError const& error) {
    CHECK(error.fault().why.starts_with("validation is data [12, 6]"));
    CHECK(error.fault().fix.find("changed_data to {\"validation\"}") != std::string::npos);
  }
  CHECK(run(5, {}).resumed.has_value());
  CHECK(run(6, {}, one).resumed->changed.empty());
  CHECK(run(7, {}, one, fr::named<"far">(other)).resumed->changed.empty());
  CHECK_THROWS_AS(run(8, {}, one, fr::named<"far">(one)), fr::StateError);
  CHECK(run(8, {"validation"}, other).resumed->changed.size() == 1);
}

/// A source of a user, of which the loop knows the size alone.
struct Own {
  std::uint64_t count = 40;
  std::uint64_t at = 0;
  void seek(fr::Cursor const& cursor) { at = cursor.position; }
  std::optional<fr::Batch> next() {
    if (at == count) return std::nullopt;
    fr::Batch const all = support::samples(80);
    at += 4;
    auto const end = static_cast<std::int64_t>(at);
    return fr::Batch{all.data.slice(0, end - 4, end), all.target.slice(0, end - 4, end)};
  }
  std::uint64_t samples() const { return count; }
  std::uint64_t batches() const { return count / 4; }
};

TEST_CASE("of a user-defined source the number of samples is compared, and so is the cursor") {
  TemporaryFolder const folder;
  train(Own{}, folder.path(), 9);
  CHECK(refusal(Own{.count = 20}, folder.path()) == "samples is 40 there and 20 here");
  std::vector<double> losses;
  fr::Trainer trainer{std::make_shared<Mlp>(), Witness{.losses = &losses},
                      fr::Settings{.run_dir = folder.path(), .epochs = 2, .seed = 7},
                      fr::Optimize<fr::AdamW>{},
                      fr::Checkpoint<Every<4>>{.changed_data = {"samples"}}};
  Own shorter{.count = 20};
  try {
    static_cast<void>(trainer.fit(shorter));
    FAIL("the cursor is past the last sample");
  } catch (fr::StateError const& error) {
    CHECK(error.fault().why == "it is at sample 36 of epoch 0, and there are 20");
  }
  CHECK(losses.empty());
}

/// Writes the newest checkpoint again, with other values and with right hashes.
template <class Change>
void seal(std::filesystem::path const& folder, Change const& change) {
  fr::RunDirectory directory(folder);
  fr::SavedCheckpoint const saved = *directory.newest_valid().checkpoint;
  auto state = nlohmann::json::parse(text_of(saved.folder / "state.json"));
  change(state);
  auto writer = directory.begin(saved.step());
  for (char const* const name : {"model.safetensors", "optimizer.safetensors", "state.json"}) {
    std::string const bytes =
        name == std::string("state.json") ? state.dump() : text_of(saved.folder / name);
    writer.add(name, [&](auto& sink) { sink.write(bytes_of(bytes)); });
  }
  directory.commit(writer, saved.manifest.metrics);
}

TEST_CASE("a checkpoint with a place that no run can have is refused, although its hashes fit") {
  TemporaryFolder const folder;
  train(Own{}, folder.path(), 9);
  auto const with = [&](char const* name, nlohmann::json const& value) {
    TemporaryFolder const copy;
    std::filesystem::copy(folder.path(), copy.path(), std::filesystem::copy_options::recursive);
    seal(copy.path(), [&](nlohmann::json& state) { state.at("values").at(name) = value; });
    static_cast<void>(train(Own{}, copy.path(), 11));
  };
  CHECK_NOTHROW(with("counters/position", 36));
  CHECK_THROWS_AS(with("counters/position", 44), fr::StateError);
  CHECK_THROWS_AS(with("counters/position", -4), fr::StateError);
  CHECK_THROWS_AS(with("counters/epoch", std::uint64_t{1} << 63), fr::FormatError);
}

}  // namespace frugal_test::policy_checkpoint_changed_data

namespace frugal_test::checkpoint_best {

using frugal::BestBy;
using frugal::Metrics;
using frugal::detail::BestSoFar;

Metrics measured(double loss, double accuracy) {
  Metrics metrics;
  metrics.set("loss", loss);
  metrics.set("accuracy", accuracy);
  return metrics;
}

BestSoFar both() {
  return BestSoFar({{.metric = "loss", .highest = false, .count = 1},
                    {.metric = "accuracy", .highest = true, .count = 1}});
}

/// An archive of lists of numbers.
template <bool Loading>
struct Lists {
  static constexpr bool loading = Loading;
  std::map<std::string, std::vector<double>> values{};

  void operator()(std::string const& name, std::vector<double>& value) {
    if (Loading) {
      value = values.at(name);
    } else {
      values[name] = value;
    }
  }
};

TEST_CASE("the first value is an improvement, then each better one of any metric") {
  BestSoFar best = both();
  CHECK(best.look(measured(2.0, 0.1)));
  CHECK_FALSE(best.look(measured(2.0, 0.1)));
  CHECK_FALSE(best.look(measured(2.5, 0.05)));
  CHECK(best.look(measured(1.9, 0.05)));
  CHECK(best.look(measured(3.0, 0.2)));
}

TEST_CASE("an improvement is one until it is saved, however late") {
  BestSoFar best = both();
  CHECK_FALSE(best.improved());
  CHECK(best.look(measured(2.0, 0.1)));
  CHECK_FALSE(best.look(measured(2.5, 0.1)));
  CHECK(best.improved());
  best.begin_save();
  CHECK_FALSE(best.improved());
}

TEST_CASE("a best value whose save failed is dropped, and that of one on disk stays") {
  BestSoFar best = both();
  best.look(measured(2.0, 0.5));
  best.begin_save();
  best.saved();
  best.look(measured(1.0, 0.5));
  best.begin_save();
  best.not_saved();
  CHECK_FALSE(best.improved());
  CHECK(best.look(measured(1.5, 0.5)));
  CHECK_FALSE(best.look(measured(1.6, 0.5)));
  best.begin_save();
  // Better while the write is in progress: that value is of the next save.
  CHECK(best.look(measured(1.2, 0.6)));
  best.not_saved();
  CHECK(best.improved());
  CHECK_FALSE(best.look(measured(1.3, 0.55)));

  BestSoFar first = both();
  first.look(measured(2.0, 0.5));
  first.begin_save();
  first.not_saved();
  CHECK(first.look(measured(9.0, 0.1)));
}

TEST_CASE("a resume makes the best values those on disk") {
  BestSoFar best = both();
  best.look(measured(0.5, 0.9));
  best.reset_to(
      {{{"loss", 1.5}, {"accuracy", 0.7}}, {}, {{"loss", 1.2}}, {{"loss", std::nan("")}}});
  CHECK_FALSE(best.look(measured(1.3, 0.7)));
  CHECK(best.look(measured(1.1, 0.6)));
  CHECK(best.look(measured(1.1, 0.8)));
  best.reset_to({});
  CHECK(best.look(measured(9.0, 0.1)));
}

TEST_CASE("a NaN is no improvement, and the first number after it is one") {
  BestSoFar best = both();
  CHECK_FALSE(best.look(measured(std::nan(""), std::nan(""))));
  CHECK_FALSE(best.improved());
  CHECK(best.look(measured(2.0, std::nan(""))));
  CHECK(best.look(measured(std::nan(""), 0.1)));
  CHECK_FALSE(best.look(measured(std::nan(""), std::nan(""))));
  CHECK(best.look(measured(1.9, 0.1)));
}

TEST_CASE("a return to before a best value forgets it, and that it is to be saved") {
  BestSoFar best = both();
  best.look(measured(1.5, 0.4));
  Lists<false> then;
  best.persist(then);
  best.look(measured(0.5, 0.9));
  Lists<true> back{then.values};
  best.persist(back);
  CHECK_FALSE(best.improved());
  CHECK(best.look(measured(1.4, 0.3)));
  Lists<true> start{{{"best.loss", {}}, {"best.accuracy", {}}}};
  best.persist(start);
  CHECK(best.look(measured(9.0, 0.1)));
}

TEST_CASE("a resumed run compares with the best before it") {
  BestSoFar best = both();
  Lists<false> nothing;
  best.persist(nothing);
  CHECK(nothing.values.at("best.loss").empty());
  best.look(measured(1.5, 0.4));
  Lists<false> writer;
  best.persist(writer);
  CHECK(writer.values.at("best.loss") == std::vector{1.5});

  BestSoFar resumed = both();
  Lists<true> reader{writer.values};
  resumed.persist(reader);
  CHECK_FALSE(resumed.look(measured(1.6, 0.3)));
  CHECK(resumed.look(measured(1.6, 0.5)));
}

}  // namespace frugal_test::checkpoint_best
