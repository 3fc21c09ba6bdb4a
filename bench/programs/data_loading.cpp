// SPDX-License-Identifier: Apache-2.0
// Loading: batches of resident tensors compared with one memcpy of the batch, and a job whose
// transform is slow. Prints one line of JSON per measurement; data_loading.py compares and judges.
#include <frugal/data/cache/cached.hpp>
#include <frugal/data/loading/loader.hpp>
#include <frugal/data/loading/transformed.hpp>
#include <frugal/data/tensor_dataset.hpp>

#include <ATen/ATen.h>
#include <CLI/CLI.hpp>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <iostream>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include <unistd.h>

namespace fr = frugal;
using Clock = std::chrono::steady_clock;

namespace {

double seconds_since(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

/// Samples of `features` floats, as Fashion-MNIST has them.
fr::Batch set_of(std::int64_t samples, std::int64_t features) {
  return {at::rand({samples, features}), at::randint(10, {samples}, at::kLong)};
}

/// Microseconds per batch.
template <class S>
double of_a_batch(S& source, std::uint64_t epoch) {
  source.seek({.seed = 1, .epoch = epoch});
  auto const begin = Clock::now();
  while (auto batch = source.next()) {
  }
  return 1e6 * seconds_since(begin) / static_cast<double>(source.batches());
}

/// The limit: as many bytes as a batch has, from changing places into new tensors.
double of_a_copy(fr::Batch const& set, std::int64_t batch) {
  std::int64_t const all = set.data.size(0) / batch;
  std::int64_t const row = set.data.size(1);
  auto const begin = Clock::now();
  for (std::int64_t i = 0; i < all; ++i) {
    // Not in order: a prefetcher would help the copy and not the gather.
    std::int64_t const from = (i * 7919 % all) * batch;
    at::Tensor data = at::empty({batch, row});
    at::Tensor target = at::empty({batch}, at::kLong);
    std::memcpy(data.mutable_data_ptr(),
                static_cast<float const*>(set.data.const_data_ptr()) + from * row, data.nbytes());
    std::memcpy(target.mutable_data_ptr(),
                static_cast<std::int64_t const*>(set.target.const_data_ptr()) + from,
                target.nbytes());
  }
  return 1e6 * seconds_since(begin) / static_cast<double>(all);
}

void resident(std::int64_t samples, std::int64_t features, std::int64_t batch, int repeats) {
  fr::Batch const set = set_of(samples, features);
  fr::TensorDataset source(set.data, set.target, {.batch = batch, .drop_last = true});
  std::vector<double> ours;
  std::vector<double> copy;
  for (int i = 0; i < repeats; ++i) {
    ours.push_back(of_a_batch(source, static_cast<std::uint64_t>(i)));
    copy.push_back(of_a_copy(set, batch));
  }
  std::cout << nlohmann::json{{"what", "resident"},
                              {"batch_us", median(ours)},
                              {"memcpy_us", median(copy)}}
                   .dump()
            << '\n';
}

struct Rows {
  fr::Batch all;
  std::uint64_t size() const { return static_cast<std::uint64_t>(all.data.size(0)); }
  std::string identity() const { return "random rows"; }
  fr::Batch get(std::uint64_t index) const {
    auto const i = static_cast<std::int64_t>(index);
    return {all.data[i], all.target[i]};
  }
};

/// Occupies a core, as decoding does.
struct Slow {
  static constexpr int version = 1;
  double seconds;
  std::string settings() const { return std::to_string(seconds); }
  fr::Batch operator()(fr::Batch sample) const {
    auto const begin = Clock::now();
    while (seconds_since(begin) < seconds) {
    }
    return sample;
  }
};

/// Trains for `step` seconds per batch on what a loader gives. Waiting for the first batch counts.
template <class Set>
void train(std::string const& what, Set set, std::int64_t batch, double step, int workers) {
  auto source = fr::loader(std::move(set), {.batch = batch}, fr::Stack{}, {.workers = workers});
  source.seek({.seed = 1});
  while (auto one = source.next()) {
    auto const begin = Clock::now();
    at::Tensor x = one->data.mean();
    while (seconds_since(begin) < step) x = x + 1;
  }
  fr::LoaderReport const report = source.report();
  std::cout << nlohmann::json{{"what", what},
                              {"utilisation", report.utilisation()},
                              {"steps", report.steps},
                              {"workers", report.workers},
                              {"advice", report.warning()}}
                   .dump()
            << '\n';
}

}  // namespace

int main(int argc, char** argv) {
  std::int64_t samples = 60000;
  std::int64_t features = 784;
  std::int64_t batch = 256;
  int repeats = 9;
  double transform = 0.02;
  double step = 0.04;
  int workers = 2;
  CLI::App app{"Figures of bench data, loading"};
  app.add_option("--samples", samples);
  app.add_option("--features", features);
  app.add_option("--batch", batch);
  app.add_option("--repeats", repeats);
  app.add_option("--transform", transform, "seconds per sample of the starved job");
  app.add_option("--step", step, "seconds of training per batch of 16");
  app.add_option("--workers", workers);
  CLI11_PARSE(app, argc, argv);

  at::set_num_threads(1);
  at::manual_seed(1);
  resident(samples, features, batch, repeats);
  fr::Batch const some = set_of(320, features);
  train("starved", fr::Transformed(Rows{some}, Slow{transform}), 16, step, workers);
  auto const folder = std::filesystem::temp_directory_path() /
                      ("frugal-bench-loading-" + std::to_string(::getpid()));
  auto const kept = fr::cached(Rows{some}, Slow{transform}, {.folder = folder, .out = nullptr});
  for (std::uint64_t i = 0; i < kept.size(); ++i) static_cast<void>(kept.get(i));
  train("cached", kept, 16, step, workers);
  std::filesystem::remove_all(folder);
}
