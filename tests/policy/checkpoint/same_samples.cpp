// SPDX-License-Identifier: Apache-2.0
// needs: archive arrow
// Random data sets, orders, workers, stops, and one change between stop and resume: a resume trains
// on the samples of an uninterrupted run, or is refused.
//
//     FRUGAL_RESUME_CASES=10000 ./dev test -R 'policy: checkpoint/same_samples'  # more of them
//     FRUGAL_RESUME_CASE=17 ./dev test -R 'policy: checkpoint/same_samples'      # this one alone
#include <doctest/doctest.h>

#include <unistd.h>

#include <torch/nn/module.h>
#include <torch/types.h>

#include <frugal/data/sampling/permutation.hpp>
#include <frugal/policy/checkpoint.hpp>
#include <frugal/policy/optimize.hpp>
#include <frugal/trainer.hpp>

#include "policy/checkpoint/same_samples/sources.hpp"
#include "support/files.hpp"

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <numeric>
#include <optional>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

namespace frugal_test::same_samples {

using support::TemporaryFolder;

/// What is another way at the resume.
enum class Change {
  none,
  workers,
  depth,
  prefetch,
  moved,
  fetched_again,
  batch,
  shuffle,
  drop_last,
  window,
  pool,
  weights,
  limit,
  shift,
  order,
  shards_exchanged,
  shard_replaced,
  sample_replaced,
  samples_exchanged,
  shard_removed,
  shard_added,
};
constexpr std::uint64_t changes = 21;

/// A number as small as modules get.
struct One : torch::nn::Module {
  One() : w(register_parameter("w", torch::zeros({1}))) {}
  at::Tensor w;
};

/// Thrown to simulate the loss of the machine.
struct Gone {};

/// Keeps the samples of each batch; none of them changes the weight.
struct Record {
  std::vector<Ids>* batches = nullptr;
  std::size_t dies_at = 0;  ///< batches; 0: never

  at::Tensor operator()(std::shared_ptr<One>& module, Batch const& batch) const {
    at::Tensor const ids = batch.data.flatten().contiguous();
    auto const* const first = static_cast<std::int64_t const*>(ids.const_data_ptr());
    batches->emplace_back(first, first + ids.numel());
    if (batches->size() == dies_at) throw Gone{};
    return (module->w * 0).sum();
  }
};

struct Run {
  std::uint64_t epochs = 2;
  std::uint64_t seed = 0;
  std::optional<std::uint64_t> stops_at{};  ///< steps
  std::size_t dies_at = 0;                  ///< batches
  std::vector<std::string> changed_data{};
};

struct Trained {
  std::vector<Ids> batches;
  std::uint64_t resumed_at = 0;  ///< steps
  std::vector<std::string> changed;
};

Trained train(AnySource source, fs::path const& folder, Run const& how) {
  Trained out;
  frugal::Settings settings{.run_dir = folder, .epochs = how.epochs, .seed = how.seed};
  settings.steps = how.stops_at;
  frugal::Trainer trainer{
      std::make_shared<One>(), Record{&out.batches, how.dies_at}, settings,
      frugal::Optimize<frugal::SGD>{},
      frugal::Checkpoint<frugal::Every<5>, frugal::Keep<1>>{.changed_data = how.changed_data}};
  try {
    frugal::Report const report = trainer.fit(source);
    if (report.resumed) out.resumed_at = report.resumed->step;
    if (report.resumed) out.changed = report.resumed->changed;
  } catch (Gone const&) {
  }
  return out;
}

/// What an uninterrupted run trains on: the source as it is, without a trainer.
std::vector<Ids> uninterrupted(AnySource source, Run const& how) {
  std::vector<Ids> batches;
  for (std::uint64_t epoch = 0; epoch < how.epochs; ++epoch) {
    source.seek({.seed = how.seed, .epoch = epoch});
    while (auto batch = source.next()) {
      at::Tensor const ids = batch->data.flatten().contiguous();
      auto const* const first = static_cast<std::int64_t const*>(ids.const_data_ptr());
      batches.emplace_back(first, first + ids.numel());
    }
  }
  return batches;
}

Ids joined(std::vector<Ids> const& batches, std::size_t count) {
  Ids all;
  for (std::size_t i = 0; i < count; ++i) {
    all.insert(all.end(), batches[i].begin(), batches[i].end());
  }
  return all;
}

/// In memory where that can be: a case saves a dozen times, and this tests no disk.
fs::path fast_disk() {
  std::error_code ignored;
  fs::path const memory = "/dev/shm";
  bool const there = fs::is_directory(memory, ignored) && ::access(memory.c_str(), W_OK) == 0;
  return there ? memory : fs::temp_directory_path();
}

/// Draws a case, and what becomes of it.
class Case {
 public:
  explicit Case(std::uint64_t number) : draw_({.index = number, .seed = 2026}) {
    spec_.store = static_cast<Store>(draw_.below(stores));
    spec_.order = static_cast<Sorted>(draw_.below(orders));
    std::uint64_t const shards = 1 + draw_.below(4);
    std::int64_t id = 0;
    for (std::uint64_t i = 0; i < shards; ++i) {
      Ids ids(2 + draw_.below(6));
      std::iota(ids.begin(), ids.end(), id);
      id += static_cast<std::int64_t>(ids.size());
      spec_.shards.push_back(std::move(ids));
    }
    spec_.loading = {
        .batch = 2 + below(4), .shuffle = draw_.chance(0.7), .drop_last = draw_.chance(0.2)};
    spec_.loading.batch = std::min(spec_.loading.batch, id);
    spec_.window = draw_.chance(0.5) ? frugal::ShuffleWindow{.shards = 1 + draw_.below(3)}
                                     : frugal::ShuffleWindow{.samples = 1 + draw_.below(9)};
    spec_.pool = 1 + below(3);
    spec_.weights = 1 + draw_.below(2);
    spec_.workers = static_cast<int>(draw_.below(3));
    spec_.depth = 1 + draw_.below(2);
    spec_.prefetch = draw_.chance(0.2);
    if (draw_.chance(0.2)) spec_.limit = 1 + draw_.below(3);
    if (draw_.chance(0.2)) spec_.shift = 100 + below(3);
    if (draw_.chance(0.2)) {
      spec_.world = 2;
      spec_.rank = static_cast<int>(draw_.below(2));
    }
    how_.epochs = 2 + draw_.below(2);
    how_.seed = draw_.below(1000);
    change_ = static_cast<Change>(draw_.below(changes));
  }

  /// Whether the resume was refused.
  bool refused() {
    TemporaryFolder const folder(fast_disk());
    fs::path data = folder / "data";
    write(spec_, data);
    std::vector<Ids> const whole = uninterrupted(source_of(spec_, data), how_);
    REQUIRE(!whole.empty());

    Run first = how_;
    std::uint64_t const place = 1 + draw_.below(whole.size());
    if (draw_.chance(0.5)) {
      first.stops_at = place;
    } else {
      first.dies_at = static_cast<std::size_t>(place);
    }
    Trained const before = train(source_of(spec_, data), folder / "run", first);

    Spec const changed = apply(spec_);
    if (change_ == Change::moved) {
      fs::rename(data, folder / "elsewhere");
      data = folder / "elsewhere";
    } else if (change_ >= Change::shards_exchanged || change_ == Change::fetched_again) {
      fs::remove_all(data);
      write(changed, data);
    }
    try {
      Trained const after = train(source_of(changed, data), folder / "run", how_);
      Ids all = joined(before.batches, static_cast<std::size_t>(after.resumed_at));
      Ids const rest = joined(after.batches, after.batches.size());
      all.insert(all.end(), rest.begin(), rest.end());
      CHECK(all == joined(whole, whole.size()));
      return false;
    } catch (frugal::Error const& error) {
      std::string const why = error.what();
      CAPTURE(why);
      CHECK_FALSE(is_harmless());
      if (why.find("other training data") != std::string::npos && draw_.chance(0.25)) {
        require_override(source_of(changed, data), folder / "run", error.fault().fix);
      }
      return true;
    }
  }

 private:
  std::int64_t below(std::uint64_t count) { return static_cast<std::int64_t>(draw_.below(count)); }

  /// Whether the change leaves the sequence as it is.
  bool is_harmless() const {
    Sorted const order = spec_.is_set() ? spec_.order : Sorted::pass;
    switch (change_) {
      case Change::none:
      case Change::workers:
      case Change::depth:
      case Change::prefetch:
      case Change::moved:
      case Change::fetched_again:
        return true;
      case Change::batch:
        return !spec_.loading.drop_last && spec_.limit == 0 && order != Sorted::buckets &&
               spec_.store != Store::range && (spec_.world == 1 || !spec_.is_set());
      case Change::window:
        return order != Sorted::shards || !spec_.is_sharded() || !spec_.loading.shuffle;
      case Change::pool:
        return order != Sorted::buckets;
      case Change::weights:
        return order != Sorted::weighted;
      default:
        return false;
    }
  }

  Spec apply(Spec spec) {
    Ids& shard = spec.shards[draw_.below(spec.shards.size())];
    Ids& other = spec.shards[draw_.below(spec.shards.size())];
    std::int64_t& id = shard[draw_.below(shard.size())];
    switch (change_) {
      case Change::workers:
        spec.workers = (spec.workers + 1) % 3;
        break;
      case Change::depth:
        spec.depth = 3 - spec.depth;
        break;
      case Change::prefetch:
        spec.prefetch = !spec.prefetch;
        break;
      case Change::batch:
        // Of a world of two a rank has a part of each batch: another batch, another part.
        if (spec.world == 1 || !spec.is_set()) spec.loading.batch = spec.loading.batch == 2 ? 3 : 2;
        break;
      case Change::shuffle:
        spec.loading.shuffle = !spec.loading.shuffle;
        break;
      case Change::drop_last:
        spec.loading.drop_last = !spec.loading.drop_last;
        break;
      case Change::window:
        if (spec.window.samples != 0) {
          spec.window.samples += 3;
        } else {
          ++spec.window.shards;
        }
        break;
      case Change::pool:
        ++spec.pool;
        break;
      case Change::weights:
        spec.weights = 3 - spec.weights;
        break;
      case Change::limit:
        spec.limit = spec.limit == 0 ? 2 : 0;
        break;
      case Change::shift:
        spec.shift += 7;
        break;
      case Change::order:
        spec.order = static_cast<Sorted>((static_cast<std::uint64_t>(spec.order) + 1) % orders);
        break;
      case Change::shards_exchanged:
        std::swap(shard, other);
        break;
      case Change::shard_replaced:
        for (std::int64_t& each : shard) each += 1000;
        break;
      case Change::sample_replaced:
        id += 1000;
        break;
      case Change::samples_exchanged:
        std::swap(id, other[draw_.below(other.size())]);
        break;
      case Change::shard_removed:
        if (spec.shards.size() > 1) spec.shards.pop_back();
        break;
      case Change::shard_added:
        spec.shards.push_back({2000, 2001});
        break;
      default:
        break;
    }
    return spec;
  }

  /// What a refusal names lets the run through, if the place is in the data at all.
  void require_override(AnySource source, fs::path const& folder, std::string fix) const {
    Run how = how_;
    fix = fix.substr(fix.find('{'), fix.find('}') - fix.find('{'));
    for (std::size_t at = fix.find('"'); at != std::string::npos; at = fix.find('"')) {
      std::size_t const end = fix.find('"', at + 1);
      how.changed_data.push_back(fix.substr(at + 1, end - at - 1));
      fix.erase(0, end + 1);
    }
    CHECK(!how.changed_data.empty());
    try {
      Trained const through = train(std::move(source), folder, how);
      CHECK(through.changed.size() == how.changed_data.size());
    } catch (frugal::StateError const& error) {
      std::string const why = error.what();
      CAPTURE(why);
      bool const outside = why.find("past the last sample") != std::string::npos ||
                           why.find("no batch begins at the cursor") != std::string::npos;
      CHECK(outside);
    }
  }

  frugal::Draw draw_;
  Spec spec_;
  Run how_;
  Change change_;
};

std::uint64_t number_from(char const* name, std::uint64_t otherwise) {
  char const* const text = std::getenv(name);
  return text == nullptr ? otherwise : std::strtoull(text, nullptr, 10);
}

TEST_CASE("a resume trains on the samples of an uninterrupted run, or is refused") {
  std::uint64_t const none = static_cast<std::uint64_t>(-1);
  std::uint64_t const alone = number_from("FRUGAL_RESUME_CASE", none);
  std::uint64_t const count = number_from("FRUGAL_RESUME_CASES", 1000);
  std::uint64_t refused = 0;
  for (std::uint64_t i = alone == none ? 0 : alone; i < (alone == none ? count : alone + 1); ++i) {
    INFO("to run this case alone: FRUGAL_RESUME_CASE=" << i);
    if (Case(i).refused()) ++refused;
  }
  if (alone != none || count < 100) return;
  CHECK(refused > count / 5);
  CHECK(refused < 4 * count / 5);
}

}  // namespace frugal_test::same_samples
