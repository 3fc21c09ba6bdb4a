// SPDX-License-Identifier: Apache-2.0
#include <frugal/data/cache/cached.hpp>

#include "support/files.hpp"

#include <doctest/doctest.h>

#include <frugal/base/folder.hpp>
#include <frugal/core/source/batch.hpp>
#include <frugal/data/transform_clock.hpp>

#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <memory>
#include <sstream>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace frugal_test::data_cache_cached {

using frugal::Batch;
using frugal::cached;
using frugal::CacheSettings;
using frugal_test::support::TemporaryFolder;

/// Rows i, i + 1, ... of four bytes, with a label.
struct Rows {
  std::uint64_t rows = 20;
  std::string content = "rows v1";
  std::uint64_t size() const { return rows; }
  Batch get(std::uint64_t i) const {
    if (i == 13 && content == "damaged") {
      throw frugal::DataError({.what = "row 13 is damaged", .where = "", .why = "", .fix = ""});
    }
    auto const first = static_cast<std::int64_t>(i);
    return {at::arange(first, first + 4, at::kByte), at::scalar_tensor(first, at::kLong)};
  }
  std::string name(std::uint64_t i) const { return "row " + std::to_string(i); }
  std::string identity() const { return content; }
};

/// Counts its calls.
struct Scale {
  static constexpr int version = 1;
  float factor = 2;
  std::shared_ptr<std::atomic<int>> calls = std::make_shared<std::atomic<int>>(0);

  std::string settings() const { return std::to_string(factor); }
  Batch operator()(Batch sample) const {
    ++*calls;
    return {sample.data.to(at::kFloat) * factor, sample.target};
  }
};

struct ScaleV2 : Scale {
  static constexpr int version = 2;
};

template <class Set>
void check_all(Set const& set, float factor = 2) {
  for (std::uint64_t i = 0; i < set.size(); ++i) {
    Batch const sample = set.get(i);
    Batch const row = Rows{}.get(i);
    CHECK(at::equal(sample.data, row.data.to(at::kFloat) * factor));
    CHECK(at::equal(sample.target, row.target));
  }
}

CacheSettings silent(std::filesystem::path const& folder) {
  return {.folder = folder, .out = nullptr};
}

TEST_CASE("the transform runs once for each sample, over passes, copies and runs") {
  TemporaryFolder const folder;
  Scale const scale;
  {
    auto const set = cached(Rows{}, scale, silent(folder.path()));
    static_assert(frugal::IdentifiedSet<decltype(set)>);
    check_all(set);
    CHECK(*scale.calls == 20);
    auto const copy = set;
    check_all(copy);
    CHECK(*scale.calls == 20);
    CHECK(set.report().hits == 20);
    CHECK(set.report().computed == 20);
  }
  auto const next = cached(Rows{}, scale, silent(folder.path()));
  check_all(next);
  CHECK(*scale.calls == 20);
  CHECK(next.report().computed == 0);
}

TEST_CASE("a sample from the cache is the computed one, in memory of its own") {
  TemporaryFolder const folder;
  auto const set = cached(Rows{}, Scale{}, silent(folder.path()));
  Batch const first = set.get(3);
  Batch const second = set.get(3);
  CHECK(at::equal(first.data, second.data));
  CHECK(first.data.strides() == second.data.strides());
  second.data.zero_();
  CHECK(at::equal(set.get(3).data, first.data));
}

TEST_CASE("another version, other settings, another set: another cache") {
  TemporaryFolder const folder;
  check_all(cached(Rows{}, Scale{}, silent(folder.path())));
  Scale const other{.factor = 3};
  check_all(cached(Rows{}, other, silent(folder.path())), 3);
  CHECK(*other.calls == 20);
  Scale const same;
  check_all(cached(Rows{.content = "rows v2"}, same, silent(folder.path())));
  CHECK(*same.calls == 20);
  ScaleV2 const newer;
  check_all(cached(Rows{}, newer, silent(folder.path())));
  CHECK(*newer.calls == 20);
  // And none of these has cost another its samples.
  Scale const again;
  check_all(cached(Rows{}, again, silent(folder.path())));
  CHECK(*again.calls == 0);
}

TEST_CASE("its identity is that of the set and the transform") {
  TemporaryFolder const folder;
  auto const one = cached(Rows{}, Scale{}, silent(folder.path()));
  CHECK(one.identity() == cached(Rows{}, Scale{}, silent(folder / "x")).identity());
  CHECK(one.identity() != cached(Rows{}, Scale{.factor = 3}, silent(folder.path())).identity());
  CHECK(one.identity() != cached(Rows{.content = "b"}, Scale{}, silent(folder.path())).identity());
  CHECK(one.name(4) == "row 4");
  // So that caches stand one behind the other.
  Scale const second{.factor = 5};
  auto const both = cached(one, second, silent(folder.path()));
  CHECK(at::equal(both.get(3).data, Rows{}.get(3).data.to(at::kFloat) * 10));
}

TEST_CASE("bytes before and after are shown, once, when the cache is complete") {
  TemporaryFolder const folder;
  std::ostringstream out;
  auto const set = cached(Rows{}, Scale{}, {.folder = folder.path(), .out = &out});
  for (std::uint64_t i = 0; i < 19; ++i) static_cast<void>(set.get(i));
  CHECK(out.str().empty());
  check_all(set);
  CHECK(out.str() ==
        "frugal: the cache is complete, 20 of 20 samples: 240 B before the transform, 720 B after "
        "it\n");
  auto const report = set.report();
  CHECK(report.cached == 20);
  CHECK(report.bytes_before == 240);  // four bytes and an int64
  CHECK(report.bytes_after == 720);   // four floats and an int64, with dtypes and shapes
}

TEST_CASE("behind the limit samples are computed, and that is said once") {
  TemporaryFolder const folder;
  std::ostringstream out;
  Scale const scale;
  auto const set =
      cached(Rows{}, scale, {.folder = folder.path(), .bytes_limit = 1000, .out = &out});
  check_all(set);
  check_all(set);
  auto const report = set.report();
  CHECK(report.cached > 0);
  CHECK(report.cached < 20);
  CHECK(report.bytes_on_disk <= 1000);
  CHECK(report.stopped == "the limit of 1000 bytes is reached");
  CHECK(static_cast<std::uint64_t>(*scale.calls) == 40 - report.cached);
  CHECK(
      out.str().starts_with("frugal: the cache keeps no more samples, and computes the rest: the "
                            "limit of 1000 bytes is reached. "));
  CHECK(support::lines_of(out.str()).size() == 1);
}

TEST_CASE("a damaged entry is computed again") {
  TemporaryFolder const folder;
  std::filesystem::path data;
  {
    auto const set = cached(Rows{}, Scale{}, silent(folder.path()));
    check_all(set);
    for (auto const& path : frugal::entries_of(set.folder())) {
      if (path.extension() == ".data") data = path;
    }
  }
  std::string bytes = support::text_of(data);
  bytes[bytes.size() / 2 / 64 * 64 + 20] ^= 1;
  std::ofstream(data, std::ios::binary | std::ios::trunc) << bytes;
  Scale const scale;
  auto const set = cached(Rows{}, scale, silent(folder.path()));
  check_all(set);
  check_all(set);
  CHECK(*scale.calls == 1);
  CHECK(set.report().damaged == 1);
}

TEST_CASE("errors of the set and of the transform pass through, and nothing is kept of them") {
  TemporaryFolder const folder;
  auto const set = cached(Rows{.content = "damaged"}, Scale{}, silent(folder.path()));
  CHECK_THROWS_AS(set.get(13), frugal::DataError);
  CHECK_THROWS_AS(set.get(13), frugal::DataError);
  CHECK(set.report().cached == 0);
  CHECK_THROWS_AS(cached(Rows{}, Scale{}, {}), frugal::SettingsError);
}

TEST_CASE("threads fill it together") {
  TemporaryFolder const folder;
  auto const set = cached(Rows{.rows = 200}, Scale{}, silent(folder.path()));
  std::vector<std::thread> threads;
  std::atomic<int> wrong{0};
  for (std::uint64_t t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (std::uint64_t n = 0; n < 400; ++n) {
        std::uint64_t const i = (n * 3 + 50 * t) % 200;
        auto const data = set.get(i).data;
        wrong += data[1].item<float>() != 2 * static_cast<float>((i + 1) % 256);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(wrong == 0);
  CHECK(set.report().cached == 200);
  CHECK(set.report().computed + set.report().hits == 1600);
}

TEST_CASE("two processes fill one cache: a sample is computed at most once by each") {
  TemporaryFolder const folder;
  std::array<pid_t, 2> pids{};
  for (pid_t& pid : pids) {
    pid = ::fork();
    REQUIRE(pid >= 0);
    if (pid != 0) continue;
    Scale const scale;
    auto const set = cached(Rows{.rows = 100}, scale, silent(folder.path()));
    bool right = true;
    for (int pass = 0; pass < 2; ++pass) {
      for (std::uint64_t n = 0; n < 100; ++n) {
        std::uint64_t const i = pid == pids[0] ? n : 99 - n;
        right = right && at::equal(set.get(i).data, Rows{}.get(i).data.to(at::kFloat) * 2);
      }
    }
    ::_exit(right && *scale.calls <= 100 ? 0 : 1);
  }
  for (pid_t const pid : pids) {
    int status = 0;
    REQUIRE(::waitpid(pid, &status, 0) == pid);
    CHECK(WIFEXITED(status));
    CHECK(WEXITSTATUS(status) == 0);
  }
  Scale const scale;
  check_all(cached(Rows{.rows = 100}, scale, silent(folder.path())));
  CHECK(*scale.calls == 0);
}

TEST_CASE("a loader sees the time of a miss as the transform's, and a hit as reading") {
  struct Slow : Scale {
    Batch operator()(Batch sample) const {
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
      return Scale::operator()(sample);
    }
  };
  TemporaryFolder const folder;
  auto const set = cached(Rows{}, Slow{}, silent(folder.path()));
  frugal::detail::TransformClock clock;
  frugal::detail::MeasuredTransforms const measured(clock);
  static_cast<void>(set.get(1));
  double const miss = clock.seconds;
  CHECK(miss >= 0.005);
  static_cast<void>(set.get(1));
  CHECK(clock.seconds == miss);
}

struct Opaque {
  int* hidden = nullptr;
};
struct Hidden {
  std::uint64_t size() const { return 2; }
  Opaque get(std::uint64_t) const { return {}; }
  std::string identity() const { return "h"; }
};
struct Ones {
  static constexpr int version = 1;
  std::string settings() const { return ""; }
  double operator()(Opaque const&) const { return 1; }
};

TEST_CASE("inputs of unknown size show the bytes after the transform alone") {
  TemporaryFolder const folder;
  auto const set = cached(Hidden{}, Ones{}, silent(folder.path()));
  CHECK(set.get(1) == 1);
  CHECK_FALSE(set.report().bytes_before);
  CHECK(set.report().text() == "1 of 2 samples: 8 B after the transform");
}

}  // namespace frugal_test::data_cache_cached
