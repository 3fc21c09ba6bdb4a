// SPDX-License-Identifier: Apache-2.0
// torch-free
#include <doctest/doctest.h>
#include <sys/stat.h>

#include <frugal/base/json.hpp>
#include <frugal/report/profile/trace_file.hpp>

#include "support/files.hpp"

#include <filesystem>
#include <fstream>
#include <locale>
#include <string>
#include <thread>
#include <vector>

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
