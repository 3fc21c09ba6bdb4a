// SPDX-License-Identifier: Apache-2.0
// What is measured and reported beside a loss lies on the device until a line is written, and moves
// with the run.
#include <doctest/doctest.h>

#include <frugal/frugal.hpp>

#include "support/dying_runs.hpp"
#include "support/fake_device.hpp"
#include "support/files.hpp"
#include "support/reference.hpp"

#include <string>
#include <vector>

namespace frugal_test::device_train_metrics {

using namespace support;
using namespace support::dying_runs;
namespace fr = frugal;

struct Reporting {
  fr::Loss operator()(std::shared_ptr<Mlp>& module, fr::Batch const& batch) const {
    fr::Loss loss = fr::CrossEntropy{}(module, batch);
    loss.scalars = {{"largest", loss.output.max()}, {"rows", loss.output.size(0)}};
    return loss;
  }
};

template <class... Ps>
std::vector<Json> lines_of_run(std::filesystem::path const& folder, c10::Device device,
                               Ps const&... policies) {
  run_with(
      Job{.folder = folder, .epochs = 2, .shape = {}, .device = device}, Reporting{},
      fr::Optimize<fr::SGD>{}, fr::Log<fr::Every<6>>{},
      fr::Validate<fr::Every<1, fr::Epoch>, fr::Accuracy, fr::F1Score<fr::Macro>,
                   fr::ConfusionMatrix>{},
      fr::TrainMetrics<fr::Every<6>, fr::Accuracy, fr::F1Score<fr::Macro>, fr::ConfusionMatrix>{},
      policies...);
  std::vector<Json> all;
  for (std::string const& line : lines_of(text_of(folder / "metrics.jsonl"))) {
    Json const parsed = Json::parse(line);
    if (parsed.at("event") == "step" || parsed.at("event") == "validation") all.push_back(parsed);
  }
  return all;
}

void are_the_same(std::vector<Json> const& a, std::vector<Json> const& b) {
  REQUIRE(a.size() == 5);
  REQUIRE(b.size() == 5);
  CHECK(a[0].contains("train_f1_macro"));
  CHECK(a[1].contains("cohen_kappa"));
  for (std::size_t i = 0; i < a.size(); ++i) {
    for (auto const& [name, value] : a[i].items()) {
      if (name == "seconds" || name == "memory_bytes" || !value.is_number()) continue;
      CAPTURE(name);
      CHECK(b[i].at(name).get<double>() == doctest::Approx(value.get<double>()).epsilon(1e-6));
    }
  }
}

TEST_CASE("a run on a device reports what one on the host does") {
  TemporaryFolder const folder;
  auto const host = lines_of_run(folder / "host", c10::kCPU);
  are_the_same(host, lines_of_run(folder / "device", fake::device(0)));
  CHECK(fake::complaints().empty());
}

TEST_CASE("so does one that moves between two reports") {
  TemporaryFolder const folder;
  auto const host = lines_of_run(folder / "host", c10::kCPU);
  are_the_same(
      host, lines_of_run(folder / "moved", fake::device(0), fr::StartOn<fr::Cpu, fr::Steps<4>>{}));
  CHECK(fake::complaints().empty());
}

}  // namespace frugal_test::device_train_metrics
