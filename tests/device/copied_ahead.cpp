// SPDX-License-Identifier: Apache-2.0
// Batches copied ahead, on a device with delayed copies and checked memory.
#include <doctest/doctest.h>

#include <array>
#include <set>
#include <stdexcept>

#include <frugal/policy/checkpoint.hpp>
#include <frugal/policy/device_prefetch.hpp>
#include <frugal/policy/dry_run.hpp>
#include <frugal/policy/optimize.hpp>
#include <frugal/policy/optimize/any.hpp>
#include <frugal/policy/start_on.hpp>
#include <frugal/trainer.hpp>

#include "support/fake_device.hpp"
#include "support/files.hpp"
#include "support/running.hpp"

namespace frugal_test::device_copied_ahead {

using namespace frugal_test::support;
using frugal::Batch;
using frugal::CopiedAhead;
using frugal::Cursor;
using frugal::Depth;
using frugal::DevicePrefetch;

/// Batches of one number each, all written to one buffer; throws at one of them.
struct Counting {
  std::int64_t count = 8;
  std::int64_t throws_at = -1;
  std::int64_t at = 0;
  std::int64_t read = 0;
  at::Tensor buffer = at::zeros({2, 3});

  void seek(Cursor const& cursor) { at = static_cast<std::int64_t>(cursor.position) / 2; }
  std::optional<Batch> next() {
    if (at == count) return std::nullopt;
    if (at == throws_at) throw std::runtime_error("no batch " + std::to_string(at));
    ++read;
    buffer.fill_(at);
    return Batch{buffer, at::full({2}, at++, at::kLong)};
  }
};

/// Batches with a given number of rows, filled with the batch's number.
struct Ragged {
  static constexpr std::array<std::int64_t, 8> rows{4, 2, 4, 1, 7, 7, 3, 4};
  std::size_t at = 0;

  void seek(Cursor const&) { at = 0; }
  std::optional<Batch> next() {
    if (at == rows.size()) return std::nullopt;
    std::int64_t const count = rows[at++];
    return Batch{at::full({count, 3}, count, at::kFloat), at::full({count}, count, at::kLong)};
  }
};

c10::Device const there = fake::device();

/// A batch's number, computed by the device.
double number(Batch const& batch) {
  CHECK(batch.data.device() == there);
  CHECK(batch.target.device() == there);
  double const data = batch.data.mean().item<double>();
  CHECK(batch.target.sum().item<double>() == 2 * data);
  return data;
}

TEST_CASE("batches copied ahead are those of the source, and are waited for") {
  for (std::size_t const depth : {1U, 2U, 4U}) {
    CAPTURE(depth);
    Counting source;
    CopiedAhead placed(source, depth);
    placed.follow(there);
    placed.seek({});
    for (int i = 0; i < 8; ++i) CHECK(number(*placed.next()) == i);
    CHECK_FALSE(placed.next());
    CHECK_FALSE(placed.next());
  }
  CHECK(fake::complaints().empty());
}

TEST_CASE("with Depth<2> the next batch is copied during the current step") {
  Counting source;
  fake::log();
  std::vector<std::string> const copy{"copy", "copy", "record"};
  std::vector<std::string> const wait{"wait"};
  CopiedAhead placed(source, 2);
  placed.follow(there);
  placed.seek({});
  auto const first = placed.next();
  CHECK(source.read == 2);
  std::vector<std::string> expected = copy;
  expected.insert(expected.end(), wait.begin(), wait.end());
  expected.insert(expected.end(), copy.begin(), copy.end());
  CHECK(fake::log() == expected);
  auto const second = placed.next();
  CHECK(source.read == 3);
  expected = wait;
  expected.insert(expected.end(), copy.begin(), copy.end());
  CHECK(fake::log() == expected);
  CHECK(number(*first) == 0);
  CHECK(number(*second) == 1);
  CHECK(fake::complaints().empty());
}

TEST_CASE("released batches are followed by others in their memory") {
  for (std::size_t const depth : {1U, 2U, 4U}) {
    CAPTURE(depth);
    Counting source{.count = 20};
    CopiedAhead placed(source, depth);
    placed.follow(there);
    placed.seek({});
    std::set<void const*> places;
    for (int i = 0; i < 20; ++i) {
      auto const batch = *placed.next();
      CHECK(number(batch) == i);
      places.insert(batch.data.const_data_ptr());
    }
    CHECK(places.size() == depth + 1);
  }
  // A copy that did not wait for the previous step would appear here.
  CHECK(fake::complaints().empty());
}

TEST_CASE("a smaller batch reuses the memory of a larger one, and a larger one gets more") {
  Ragged source;
  CopiedAhead placed(source, 2);
  placed.follow(there);
  placed.seek({});
  for (std::int64_t const rows : Ragged::rows) {
    auto const batch = *placed.next();
    CHECK(batch.data.sizes() == c10::IntArrayRef({rows, 3}));
    CHECK(batch.data.sum().item<double>() == static_cast<double>(3 * rows * rows));
  }
  CHECK(fake::complaints().empty());
}

TEST_CASE("a seek discards what was copied ahead, and held batches do not change") {
  Counting source;
  CopiedAhead placed(source, 3);
  placed.follow(there);
  placed.seek({});
  std::vector<Batch> kept;
  for (int i = 0; i < 4; ++i) kept.push_back(*placed.next());
  placed.seek({.position = 4});
  for (int i = 2; i < 8; ++i) kept.push_back(*placed.next());
  for (std::size_t i = 0; i < kept.size(); ++i) {
    CHECK(number(kept[i]) == static_cast<double>(i < 4 ? i : i - 2));
  }
  placed.seek({});
  CHECK(number(*placed.next()) == 0);
  CHECK(fake::complaints().empty());
}

TEST_CASE("a source that throws is reported at its batch, not before") {
  Counting source{.throws_at = 3};
  CopiedAhead placed(source, 3);
  placed.follow(there);
  placed.seek({});
  for (int i = 0; i < 3; ++i) CHECK(number(*placed.next()) == i);
  CHECK_THROWS_WITH(placed.next(), "no batch 3");
  placed.seek({.position = 8});
  CHECK(number(*placed.next()) == 4);
}

TEST_CASE("batches in page-locked memory or on the device are copied once, or not at all") {
  at::Tensor const locked = at::arange(12, at::kFloat).reshape({4, 3}).pin_memory();
  std::vector<Batch> const batches{{locked.narrow(0, 0, 2), at::ones({2}).to(there)},
                                   {at::ones({2, 3}), at::ones({2}).to(there)},
                                   {locked.narrow(0, 2, 2), at::ones({2}).to(there)}};
  auto source = frugal::as_source(batches);
  fake::world().side_copies = 0;
  CopiedAhead placed(source, 1);
  placed.follow(there);
  placed.seek({});
  for (Batch const& batch : batches) {
    auto const found = placed.next();
    CHECK(found->data.cpu().equal(batch.data));
    CHECK(found->target.data_ptr() == batch.target.data_ptr());
  }
  CHECK(fake::world().side_copies == 3);
  // Later batches are not written into the source's memory.
  CHECK(locked.equal(at::arange(12, at::kFloat).reshape({4, 3})));
  CHECK(fake::complaints().empty());
}

struct Ended {
  frugal::Report report;
  std::map<std::string, at::Tensor> tensors;
  Seen seen;
};

template <class... Ps>
Ended fit(frugal::DeviceSpec const& device, Ps... policies) {
  Ended ended;
  TemporaryFolder folder;
  auto const module = std::make_shared<Mlp>(Mlp::Shape{.norm = true});
  frugal::Trainer trainer{module,
                          frugal::CrossEntropy{},
                          frugal::Settings{.run_dir = folder.path(), .epochs = 3, .device = device},
                          frugal::Optimize<frugal::AdamW>{.lr = 1e-2},
                          Spy{.seen = &ended.seen},
                          policies...};
  frugal::TensorDataset train(samples(43), {.batch = 4, .shuffle = true});
  frugal::TensorDataset valid(samples(15, 92), {.batch = 4});
  ended.report = trainer.fit(train, valid);
  module->to(c10::kCPU);
  ended.tensors = tensors_of(*module);
  return ended;
}

TEST_CASE(
    "a fit with Device has the bits of one on the CPU, and copies every batch on the side stream") {
  Ended const host = fit(c10::kCPU);
  fake::world().side_copies = 0;
  Ended const ahead = fit("fake", DevicePrefetch<>{});
  CHECK(same_bits(host.tensors, ahead.tensors));
  CHECK(host.seen.losses == ahead.seen.losses);
  CHECK(host.seen.validations.back().metrics == ahead.seen.validations.back().metrics);
  // Data and target of 11 batches in each epoch, of 4 in each validation, of 2 that are tried
  // before the first step, and of 1 that was copied ahead of these.
  CHECK(fake::world().side_copies == 2 * (3 * (11 + 4) + 3));
  CHECK(fake::complaints().empty());
  Ended const deep = fit(fake::device(1), DevicePrefetch<Depth<3>>{}, frugal::Accumulate<3>{},
                         frugal::DryRun<>{.out = nullptr}, frugal::Validate<frugal::Every<2>>{});
  Ended const plain = fit(c10::kCPU, frugal::Accumulate<3>{}, frugal::Validate<frugal::Every<2>>{});
  CHECK(same_bits(deep.tensors, plain.tensors));
  CHECK(deep.seen.losses == plain.seen.losses);
  CHECK(fake::complaints().empty());
}

TEST_CASE("a fit that starts on the CPU copies ahead after its move") {
  fake::world().side_copies = 0;
  Ended const moved =
      fit(fake::device(), DevicePrefetch<>{}, frugal::StartOn<frugal::Cpu, frugal::Steps<5>>{});
  CHECK(same_bits(moved.tensors, fit(c10::kCPU).tensors));
  CHECK(fake::world().side_copies == 2 * (3 * 11 - 5 + 3 * 4));
  CHECK(fake::complaints().empty());
}

TEST_CASE("a fit that validates on its own training data continues from its position") {
  auto const run = [](frugal::DeviceSpec const& where, auto const&... device) {
    auto const module = std::make_shared<Mlp>();
    frugal::Trainer trainer{module,
                            frugal::CrossEntropy{},
                            frugal::Settings{.epochs = 2, .device = where},
                            frugal::Optimize<frugal::AdamW>{.lr = 1e-2},
                            frugal::Validate<frugal::Every<3>>{},
                            device...};
    frugal::TensorDataset train(samples(43), {.batch = 4, .shuffle = true});
    CHECK(trainer.fit(train, train).steps == 22);
    module->to(c10::kCPU);
    return tensors_of(*module);
  };
  CHECK(same_bits(run("cpu"), run("fake:1", DevicePrefetch<>{})));
  CHECK(fake::complaints().empty());
}

TEST_CASE("a checkpoint records what was consumed, not what was copied ahead") {
  TemporaryFolder folder;
  auto const run = [&](std::uint64_t steps, std::filesystem::path const& path) {
    auto const module = std::make_shared<Mlp>();
    frugal::Trainer trainer{
        module,
        frugal::CrossEntropy{},
        frugal::Settings{.run_dir = path, .epochs = 2, .steps = steps, .device = there},
        frugal::Optimize<frugal::AdamW>{.lr = 1e-2},
        frugal::Checkpoint<frugal::Every<100>>{},
        DevicePrefetch<Depth<4>>{}};
    frugal::TensorDataset train(samples(43), {.batch = 4, .shuffle = true});
    static_cast<void>(trainer.fit(train));
    module->to(c10::kCPU);
    return tensors_of(*module);
  };
  auto const whole = run(22, folder.path() / "whole");
  run(7, folder.path() / "cut");
  CHECK(same_bits(run(22, folder.path() / "cut"), whole));
  CHECK(fake::complaints().empty());
}

/// Each batch stands for three samples more than it holds.
struct Consuming : Counting {
  std::uint64_t consumed() const { return 5 * static_cast<std::uint64_t>(at); }
};

TEST_CASE("the position is that of the batch that was given, not of those copied ahead") {
  Consuming source;
  CopiedAhead ahead(source, 3);
  c10::Device device = fake::device();
  ahead.follow(device);
  ahead.seek({.position = 4});
  CHECK(ahead.consumed() == 4);
  for (std::uint64_t i = 1; i <= 6; ++i) {
    CHECK(ahead.next().has_value());
    CHECK(ahead.consumed() == 10 + 5 * i);
  }
  CHECK_FALSE(ahead.next().has_value());
  device = c10::Device(c10::kCPU);
  ahead.seek({});
  CHECK(ahead.next().has_value());
  CHECK(ahead.consumed() == 5);
  static_assert(!frugal::ConsumingSource<CopiedAhead<Counting>>);
}

}  // namespace frugal_test::device_copied_ahead
