// SPDX-License-Identifier: Apache-2.0
// Batches that a loader makes in page-locked memory, and their way to a device with delayed copies
// and checked memory.
#include <doctest/doctest.h>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <frugal/data/loading/loader.hpp>
#include <frugal/policy/device_prefetch.hpp>

#include "data/sources.hpp"
#include "support/fake_device.hpp"

namespace frugal_test::device_loader {

using namespace data_sources;
using frugal::Batch;
using frugal::CopiedAhead;
using frugal::loader;

struct Rows {
  Batch all = numbered(48);
  std::uint64_t size() const { return 48; }
  Batch get(std::uint64_t index) const {
    auto const i = static_cast<std::int64_t>(index);
    return {all.data[i], all.target[i]};
  }
};

frugal::LoaderSettings locked(int workers) { return {.workers = workers, .pin_memory = true}; }

bool has(std::vector<std::string> const& operators, std::string const& name) {
  return std::find(operators.begin(), operators.end(), name) != operators.end();
}

TEST_CASE("batches lie in page-locked memory where that is wanted") {
  for (int const workers : {0, 2}) {
    auto wanted = loader(Rows{}, {.batch = 8}, frugal::Stack{}, locked(workers));
    auto plain = loader(Rows{}, {.batch = 8}, frugal::Stack{}, {.workers = workers});
    while (auto batch = wanted.next()) {
      CHECK(batch->data.is_pinned());
      CHECK(batch->target.is_pinned());
      auto const other = plain.next();
      CHECK_FALSE(other->data.is_pinned());
      CHECK(same({*batch}, {*other}));
    }
  }
}

TEST_CASE("Stack writes there directly; what another function makes is copied by the worker") {
  auto direct = loader(Rows{}, {.batch = 8}, frugal::Stack{}, locked(0));
  CHECK_FALSE(has(operators_of([&] { CHECK(direct.next()); }), "aten::_pin_memory"));

  auto const first = [](std::vector<Batch> const& samples) {
    return Batch{samples[0].data.clone(), samples[0].target.clone()};
  };
  auto copied = loader(Rows{}, {.batch = 8}, first, locked(0));
  std::optional<Batch> batch;
  CHECK(has(operators_of([&] { batch = copied.next(); }), "aten::_pin_memory"));
  CHECK(batch->data.is_pinned());
  CHECK(batch->target.is_pinned());
}

TEST_CASE("a batch of page-locked memory goes to the device without a copy on the host") {
  c10::Device const device = fake::device();
  for (std::size_t const depth : {1U, 3U}) {
    std::size_t const before = fake::world().pinned.size();
    std::vector<Batch> there;
    {
      auto source = loader(Rows{}, {.batch = 8}, frugal::Stack{}, locked(0));
      CopiedAhead ahead(source, depth);
      ahead.follow(device);
      ahead.seek({.seed = 3});
      while (auto batch = ahead.next()) {
        CHECK(batch->data.device() == device);
        // Two tensors for each batch that is being copied, and no memory of the copier's own.
        CHECK(fake::world().pinned.size() <= before + 2 * (depth + 1));
        there.push_back({batch->data.cpu(), batch->target.cpu()});
      }
    }
    auto host = loader(Rows{}, {.batch = 8}, frugal::Stack{}, {.workers = 0});
    CHECK(same(there, epoch_of(host, {.seed = 3})));
    CHECK(fake::world().pinned.size() == before);
  }
  CHECK(fake::complaints().empty());
}

TEST_CASE("workers and the copies ahead give the batches of the host, over seeks as well") {
  c10::Device const device = fake::device();
  auto source = loader(Rows{}, {.batch = 8}, frugal::Stack{}, locked(3));
  auto host = loader(Rows{}, {.batch = 8}, frugal::Stack{}, {.workers = 0});
  CopiedAhead ahead(source, 2);
  ahead.follow(device);
  for (std::uint64_t const position : {0U, 16U, 5U}) {
    frugal::Cursor const cursor{.seed = 3, .epoch = 1, .position = position};
    ahead.seek(cursor);
    host.seek(cursor);
    while (auto batch = ahead.next()) {
      CHECK(same({{batch->data.cpu(), batch->target.cpu()}}, {*host.next()}));
      CHECK(ahead.consumed() == host.consumed());
    }
    CHECK_FALSE(host.next());
  }
  CHECK(fake::complaints().empty());
}

}  // namespace frugal_test::device_loader
