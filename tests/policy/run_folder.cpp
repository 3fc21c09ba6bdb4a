// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <frugal/frugal.hpp>
#include <frugal/report.hpp>

#include "support/checkpoints.hpp"
#include "support/files.hpp"
#include "support/running.hpp"

#include <algorithm>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>

namespace frugal_test::policy_run_folder {

namespace fr = frugal;
using namespace support;
using Sgd = fr::Optimize<fr::SGD>;
using Each = fr::Log<fr::Every<1>>;

template <class... Ps>
fr::Report fit(std::filesystem::path const& folder, Ps const&... policies) {
  fr::Trainer trainer{std::make_shared<Mlp>(), fr::CrossEntropy{}, fr::Settings{.run_dir = folder},
                      Sgd{}, policies...};
  return trainer.fit(fr::TensorDataset(samples(16), {.batch = 8}));
}

template <class Error, class... Ps>
std::string refusal(std::filesystem::path const& folder, Ps const&... policies) {
  try {
    static_cast<void>(fit(folder, policies...));
  } catch (Error const& error) {
    return error.what();
  }
  return {};
}

bool advises(fr::Report const& report, std::string const& words) {
  return std::any_of(report.warnings.begin(), report.warnings.end(), [&](std::string const& line) {
    return line.find(words) != std::string::npos;
  });
}

TEST_CASE("whoever writes into a run directory is refused while another trainer works there") {
  TemporaryFolder const folder;
  std::optional<fr::RunLock> other(std::in_place, folder / "lock");
  auto const refused = [&](auto const&... policies) {
    return refusal<fr::LockError>(folder.path(), policies...)
        .starts_with("frugal: another trainer works in this run directory (");
  };
  CHECK(refused(Each{}));
  CHECK(refused(fr::Csv<>{}));
  CHECK(refused(fr::MlperfLog<>{}));
  CHECK(refused(fr::Prometheus<>{}));
  CHECK(refused(fr::CostMeter{.price = fr::plan::PricePerDevice(1)}));
  CHECK(refused(fr::Profile<>{}));
  CHECK(refused(fr::HtmlReport<>{}, Each{.path = folder / "elsewhere"}));
  CHECK(refused(fr::Checkpoint<>{}));
  CHECK_FALSE(std::filesystem::exists(folder / "metrics.jsonl"));
  CHECK_FALSE(std::filesystem::exists(folder / "metrics.csv"));
  CHECK_FALSE(std::filesystem::exists(folder / "bill"));
  // What is written elsewhere meets nobody.
  CHECK(fit(folder.path(), Each{.path = folder / "named"}).steps == 2);
  other.reset();
  CHECK(fit(folder.path(), Each{}).steps == 2);
}

TEST_CASE("the policies of one fit share the lock, and give it back with the fit") {
  TemporaryFolder const folder;
  for (int start = 0; start < 2; ++start) {
    fr::Report const report = fit(folder.path(), Each{}, fr::Csv<>{}, fr::HtmlReport<>{},
                                  fr::CostMeter{}, fr::Checkpoint<>{});
    CHECK(report.steps == 2);
    CHECK(text_of(folder / "lock").empty());
    fr::RunLock const free(folder / "lock");
  }
}

TEST_CASE("a fit inside of a fit may not write into its folder") {
  TemporaryFolder const folder;
  std::string inner;
  Spy const spy{.each_step = [&](fr::Counters const&) {
    inner = refusal<fr::LockError>(folder.path(), fr::Csv<>{});
  }};
  static_cast<void>(fit(folder.path(), Each{}, spy));
  CHECK(inner.find("another trainer works in this run directory") != std::string::npos);
}

TEST_CASE("a folder in which no lock can be made is a warning") {
  TemporaryFolder const folder;
  std::filesystem::create_directory(folder / "lock");
  fr::Report const report = fit(folder.path(), Each{}, fr::Csv<>{});
  CHECK(report.steps == 2);
  CHECK(report.warnings.size() == 1);
  CHECK(advises(report, "cannot be locked, so nothing would notice a second trainer"));
  CHECK_FALSE(refusal<fr::StoreError>(folder.path(), fr::Checkpoint<>{}).empty());
}

TEST_CASE("a link under a sink's own name is refused, and one that the program names is followed") {
  TemporaryFolder const folder;
  write_text(folder / "behind", "");
  for (char const* name : {"metrics.jsonl", "metrics.csv", "mlperf.log"}) {
    std::filesystem::create_symlink(folder / "behind", folder / name);
  }
  auto const refused = [&](auto const& policy) {
    return refusal<fr::DataError>(folder.path(), policy).find("it is a symbolic link") !=
           std::string::npos;
  };
  CHECK(refused(Each{}));
  CHECK(refused(fr::Csv<>{}));
  CHECK(refused(fr::MlperfLog<>{}));
  CHECK(text_of(folder / "behind").empty());
  CHECK(fit(folder.path(), Each{.path = folder / "metrics.jsonl"}).steps == 2);
  CHECK_FALSE(text_of(folder / "behind").empty());
}

TEST_CASE("a bill or a heartbeat that is a link is neither read nor written, and that is advised") {
  TemporaryFolder const folder;
  for (char const* name : {"bill", "heartbeat"}) {
    write_text(folder / (std::string(name) + ".behind"), "someone's");
    std::filesystem::create_symlink(folder / (std::string(name) + ".behind"), folder / name);
  }
  fr::Report const report =
      fit(folder.path(), fr::CostMeter{.price = fr::plan::PricePerDevice(1)}, fr::Checkpoint<>{});
  CHECK(advises(report, "heartbeat cannot be written (it is a symbolic link"));
  CHECK(advises(report, "CostMeter: the bill cannot be written"));
  CHECK(text_of(folder / "bill.behind") == "someone's");
  CHECK(text_of(folder / "heartbeat.behind") == "someone's");
}

}  // namespace frugal_test::policy_run_folder
