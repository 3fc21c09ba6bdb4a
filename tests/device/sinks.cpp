// SPDX-License-Identifier: Apache-2.0
// needs: tensorboard
// Sinks read the device at their cadence, and all of them together once.
#include <doctest/doctest.h>

#include <frugal/frugal.hpp>
#include <frugal/report.hpp>
#include <frugal/report/tensorboard.hpp>

#include "support/fake_device.hpp"
#include "support/files.hpp"
#include "support/running.hpp"
#include "support/training.hpp"

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>

namespace frugal_test::device_sinks {

using namespace support;
namespace fr = frugal;

struct Nothing {
  void operator()(fr::MetricRecord const&) const {}
};

/// Operators of a run of 12 steps without a validation, with these policies.
template <class... Ps>
std::map<std::string, int> operators_with(std::filesystem::path const& folder,
                                          Ps const&... policies) {
  torch::manual_seed(3);
  fr::Settings settings{
      .run_dir = folder.string(), .steps = 12, .seed = 5, .device = fake::device(0)};
  fr::Trainer trainer{std::make_shared<Mlp>(), fr::CrossEntropy{}, settings,
                      fr::Optimize<fr::SGD>{}, policies...};
  auto source = fr::TensorDataset(samples(256), {.batch = 4});
  return operators_of([&] { static_cast<void>(trainer.fit(source)); });
}

template <class Cadence>
std::map<std::string, int> operators_of_all(std::filesystem::path const& folder) {
  return operators_with(folder, fr::Log<Cadence>{}, fr::Csv<Cadence>{}, fr::TensorBoard<Cadence>{},
                        fr::MlperfLog<Cadence>{}, fr::Prometheus<Cadence>{},
                        fr::OnMetrics<Nothing, Cadence>{});
}

/// The loss comes to the host as a stack of scalars: the one wait of a reading.
int reads(std::map<std::string, int> const& operators) { return operators.at("aten::stack"); }

TEST_CASE("sinks that are not due run no operator at all") {
  TemporaryFolder const folder;
  CHECK(operators_of_all<fr::Every<100>>(folder / "all") == operators_with(folder / "none"));
  CHECK(fake::complaints().empty());
}

TEST_CASE("six sinks that are due read the loss once for each step of their cadence") {
  TemporaryFolder const folder;
  // The loss of the last step is read in any case, for the report.
  int const without = reads(operators_with(folder / "none"));
  CHECK(reads(operators_of_all<fr::Every<4>>(folder / "fourth")) == without + 2);
  CHECK(reads(operators_of_all<fr::Every<2>>(folder / "second")) == without + 5);
  CHECK(fake::complaints().empty());
}

TEST_CASE("the histograms of one step wait for the device once, whatever the number of tensors") {
  TemporaryFolder const folder;
  using Both = fr::TensorBoard<fr::Every<100>, fr::WeightHistograms<fr::Every<4>>,
                               fr::GradientHistograms<fr::Every<4>>>;
  auto const waits_with = [&](auto const&... policies) {
    fake::waits();
    auto const operators = operators_with(folder.path(), policies...);
    CHECK_FALSE(operators.contains("aten::masked_select"));
    CHECK_FALSE(operators.contains("aten::nonzero"));
    CHECK_FALSE(operators.contains("aten::bincount"));
    return fake::waits();
  };
  std::size_t const without = waits_with(fr::TensorBoard<fr::Every<100>>{});
  // At steps 4, 8 and 12 the gradients, and then the weights; the limits of the buckets once.
  CHECK(waits_with(Both{}) == without + 3 * 2 + 1);
  CHECK(fake::complaints().empty());
}

TEST_CASE("histograms of a device are those of the host") {
  at::Tensor const values = at::randn({1000});
  fr::detail::Histograms histograms;
  auto const all = histograms.of({values, values.to(fake::device(0)), values.to(fake::device(1))});
  REQUIRE(all.size() == 3);
  for (auto const& each : all) {
    CHECK(each.count == 1000);
    CHECK(each.counts == all[0].counts);
    CHECK(each.sum == all[0].sum);
  }
  CHECK(fake::complaints().empty());
}

}  // namespace frugal_test::device_sinks
