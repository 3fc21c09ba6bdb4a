// SPDX-License-Identifier: Apache-2.0
// torch-free
#include "support/files.hpp"

#include <doctest/doctest.h>

#include <frugal/base/json.hpp>
#include <frugal/report/profile/trace.hpp>

#include <sys/stat.h>

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <locale>
#include <random>
#include <string>
#include <thread>
#include <vector>

namespace frugal_test::watch_profile_spans {

using namespace frugal::watch;

TEST_CASE("overlapping and touching spans become one, empty and reversed ones none") {
  CHECK(merged({{5, 8}, {1, 3}, {2, 4}, {8, 9}, {6, 6}, {30, 20}}) == Spans{{1, 4}, {5, 9}});
  CHECK(merged({}).empty());
  CHECK(total({{1, 4}, {5, 9}}) == 7);
}

TEST_CASE("union, intersection and difference agree with sets of single nanoseconds") {
  std::mt19937 random(7);
  auto const draw = [&] {
    Spans spans;
    for (std::uint32_t count = random() % 8; count > 0; --count) {
      std::uint64_t const begin = random() % 40;
      spans.push_back({begin, begin + random() % 10});
    }
    return spans;
  };
  auto const moments = [](Spans const& spans) {
    std::vector<bool> in(64, false);
    for (Span const& each : spans) {
      for (std::uint64_t at = each.begin; at < each.end; ++at) in[at] = true;
    }
    return in;
  };
  for (int trial = 0; trial < 500; ++trial) {
    Spans const raw_a = draw();
    Spans const raw_b = draw();
    Spans const a = merged(raw_a);
    Spans const b = merged(raw_b);
    auto const in_a = moments(raw_a);
    auto const in_b = moments(raw_b);
    CHECK(moments(a) == in_a);
    auto const both = moments(common(a, b));
    auto const only_a = moments(without(a, b));
    std::uint64_t count = 0;
    for (std::size_t at = 0; at < in_a.size(); ++at) {
      CHECK(both[at] == (in_a[at] && in_b[at]));
      CHECK(only_a[at] == (in_a[at] && !in_b[at]));
      CHECK(holds(a, at) == in_a[at]);
      if (in_a[at]) ++count;
    }
    CHECK(total(a) == count);
  }
}

TEST_CASE("the line is the running sum in the order of time, and its peak has a moment") {
  Trace const trace{.span = {1'000'000'000, 3'000'000'000},
                    .memory = {{2'000'000'000, -60}, {1'000'000'000, 100}, {1'500'000'000, 50}}};
  auto const line = memory_line(trace);
  REQUIRE(line.size() == 3);
  CHECK(line[0].bytes == 100);
  CHECK(line[1].bytes == 150);
  CHECK(line[2].bytes == 90);
  CHECK(line[2].seconds == doctest::Approx(1.0));
  CHECK(peak_of(line).bytes == 150);
  CHECK(peak_of(line).seconds == doctest::Approx(0.5));
  CHECK(peak_of({}).bytes == 0);
}

TEST_CASE("a thinned line keeps the peak, whatever the number of points") {
  std::vector<MemoryPoint> line(1000);
  for (std::size_t i = 0; i < line.size(); ++i) {
    line[i] = {static_cast<double>(i), i == 777 ? 5000 : static_cast<std::int64_t>(i % 7)};
  }
  for (std::size_t const most : {1U, 2U, 3U, 7U, 200U, 999U, 1000U, 2000U}) {
    auto const few = thinned(line, most);
    CHECK(few.size() == std::min<std::size_t>(most, 1000));
    CHECK(peak_of(few).bytes == 5000);
    CHECK(peak_of(few).seconds == 777);
  }
}

}  // namespace frugal_test::watch_profile_spans

namespace frugal_test::policy_profile_trace_file {

using namespace support;
using frugal::detail::copy_with_counter;
using frugal::detail::Json;
using frugal::watch::MemoryPoint;

/// As Kineto writes it.
constexpr char const* empty_trace = R"({
  "schemaVersion": 1,
  "baseTimeNanoseconds": 1000000000000000000,
  "traceEvents": [
  {"ph": "X", "cat": "cpu_op", "name": "aten::mm", "pid": 1, "tid": 1, "ts": 5.000, "dur": 2.000}
  ]
}
)";
constexpr std::uint64_t base = 1'000'000'000'000'000'000;

/// Numbers in groups of three, with a point between them and a comma before the decimals.
struct Grouping : std::numpunct<char> {
  char do_thousands_sep() const override { return '.'; }
  std::string do_grouping() const override { return "\3"; }
  char do_decimal_point() const override { return ','; }
};

TEST_CASE("a program's locale that groups digits does not get into a trace") {
  TemporaryFolder const folder;
  std::ofstream(folder / "raw") << empty_trace;
  std::locale const before = std::locale::global(std::locale(std::locale::classic(), new Grouping));
  std::vector<MemoryPoint> const memory{{0.001, 123'456'789}, {0.002, -1'000'000}};
  bool const copied = copy_with_counter(folder / "raw", folder / "trace.json", memory, base);
  std::locale::global(before);
  CHECK(copied);
  auto const trace = Json::parse(text_of(folder / "trace.json"));
  REQUIRE(trace);
  auto const& events = trace->find("traceEvents")->items();
  REQUIRE(events.size() == 3);
  CHECK(events[0].find("args")->find("bytes")->as_signed() == 123'456'789);
  CHECK(*events[0].find("ts")->as_double() == 1000);
  CHECK(events[0].find("pid")->as_signed() == ::getpid());
  CHECK(events[1].find("args")->find("bytes")->as_signed() == -1'000'000);
}

TEST_CASE("a trace has its name when it is whole, and not before") {
  TemporaryFolder const folder;
  REQUIRE(::mkfifo((folder / "raw").c_str(), 0600) == 0);
  bool copied = false;
  std::thread copying([&] { copied = copy_with_counter(folder / "raw", folder / "trace", {}, 0); });
  {
    std::ofstream out(folder / "raw");
    out << "{\"traceEvents\": [\n";
    // More than a pipe holds: the copy has begun when all is written.
    for (int i = 0; i < 10'000; ++i) out << std::string(99, ' ') << '\n';
    out.flush();
    CHECK_FALSE(std::filesystem::exists(folder / "trace"));
    CHECK(std::filesystem::exists(folder / "trace.part"));
    out << "]}\n";
  }
  copying.join();
  CHECK(copied);
  CHECK(std::filesystem::exists(folder / "trace"));
  CHECK(entries(folder.path()) == 2);
}

TEST_CASE("of what is no trace, or cannot be read or written, nothing is left") {
  TemporaryFolder const folder;
  std::ofstream(folder / "other") << "{\"events\": []}\n";
  CHECK_FALSE(copy_with_counter(folder / "other", folder / "trace", {}, 0));
  CHECK_FALSE(copy_with_counter(folder / "none", folder / "trace", {}, 0));
  std::ofstream(folder / "raw") << empty_trace;
  CHECK_FALSE(copy_with_counter(folder / "raw", folder / "none/trace", {}, 0));
  std::filesystem::create_directories(folder / "trace/within");
  CHECK_FALSE(copy_with_counter(folder / "raw", folder / "trace", {}, 0));
  CHECK(entries(folder.path()) == 3);
}

TEST_CASE("parts that a kill has left are removed, and nothing else") {
  TemporaryFolder const folder;
  std::vector<std::string> const kept{"step-5.trace.json", "hot_spots.json", "my.partial", "part"};
  std::vector<std::string> const left{"step-9.trace.json.part", "step-9.trace.json.kineto.part",
                                      "step-9.trace.json.kineto.part.tmp", "hot_spots.json.part"};
  for (auto const* const names : {&kept, &left}) {
    for (std::string const& name : *names) std::ofstream(folder / name) << "x";
  }
  frugal::detail::remove_parts(folder.path());
  for (std::string const& name : kept) CHECK(std::filesystem::exists(folder / name));
  for (std::string const& name : left) CHECK_FALSE(std::filesystem::exists(folder / name));
  CHECK_NOTHROW(frugal::detail::remove_parts(folder / "none"));
}

}  // namespace frugal_test::policy_profile_trace_file
