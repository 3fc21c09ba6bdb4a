// SPDX-License-Identifier: Apache-2.0
// Case 11: on a GPU Audit refuses a run without CUBLAS_WORKSPACE_CONFIG, and with it two runs have
// the same hashes, eagerly, with CudaGraph, and after a resume.
#include <doctest/doctest.h>

#include <frugal/frugal.hpp>
#include <frugal/report.hpp>

#include "support/files.hpp"
#include "support/running.hpp"

#include <torch/nn/modules/batchnorm.h>
#include <torch/nn/modules/conv.h>
#include <torch/nn/modules/dropout.h>
#include <torch/nn/modules/linear.h>

#include <cstdint>
#include <cstdlib>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace frugal_test::gpu_audit {

using namespace frugal_test::support;
using frugal::Audit;
using frugal::AuditMark;
using frugal::BitExact;
namespace nn = torch::nn;

constexpr char const* variable = "CUBLAS_WORKSPACE_CONFIG";

/// cuDNN convolutions, cuBLAS products, statistics and random numbers.
struct Pictures : nn::Module {
  Pictures()
      : wide(register_module("wide", nn::Conv2d(nn::Conv2dOptions(3, 32, 3).padding(1)))),
        norm(register_module("norm", nn::BatchNorm2d(32))),
        narrow(register_module("narrow", nn::Conv2d(nn::Conv2dOptions(32, 32, 3).stride(2)))),
        dropout(register_module("dropout", nn::Dropout(0.3))),
        hidden(register_module("hidden", nn::Linear(32 * 7 * 7, 256))),
        last(register_module("last", nn::Linear(256, 4))) {
    at::NoGradGuard const no_gradients;
    std::uint32_t which = 0;
    for (at::Tensor& parameter : parameters()) {
      parameter.copy_(0.1 * table(parameter.sizes().vec(), 60, which++));
    }
  }
  at::Tensor forward(at::Tensor const& x_BCHW) {
    at::Tensor h = norm->forward(wide->forward(x_BCHW)).relu();
    h = narrow->forward(h).relu().flatten(1);
    return last->forward(dropout->forward(hidden->forward(h).relu()));
  }

  nn::Conv2d wide;
  nn::BatchNorm2d norm;
  nn::Conv2d narrow;
  nn::Dropout dropout;
  nn::Linear hidden, last;
};

frugal::Batch pictures() {
  std::vector<std::int64_t> labels;
  for (std::int64_t i = 0; i < 192; ++i) labels.push_back((i * 7) % 4);
  return {table({192, 3, 16, 16}, 61, 0), at::tensor(labels)};
}

/// Three epochs of 12 shuffled batches.
template <class... Ps>
std::vector<AuditMark> marks(frugal::Settings settings, Ps const&... policies) {
  settings.epochs = 3;
  settings.device = c10::Device(c10::kCUDA, 0);
  frugal::Trainer trainer{std::make_shared<Pictures>(),
                          frugal::CrossEntropy{},
                          settings,
                          frugal::Optimize<frugal::AdamW>{.lr = 1e-3},
                          Audit<BitExact>{},
                          policies...};
  auto const report =
      trainer.fit(frugal::TensorDataset(pictures(), {.batch = 16, .shuffle = true}));
  for (std::string const& line : report.warnings) {
    CAPTURE(line);
    CHECK(line.find("CudaGraph") == std::string::npos);
  }
  return trainer.template policy<frugal::kinds::audit>().marks();
}

/// cuBLAS reads the variable at its first use, and LibTorch when it first checks it: so the refusal
/// comes first, in one case with the rest, and nothing has computed before it.
TEST_CASE(
    "without a workspace of fixed size a run is refused, and with one two have equal hashes") {
  ::unsetenv(variable);
  CHECK_THROWS_AS(marks({}), frugal::SettingsError);
  ::setenv(variable, ":0:0", 1);
  CHECK_THROWS_AS(marks({}), frugal::SettingsError);
  // The refused run has not changed LibTorch's settings.
  CHECK_FALSE(at::globalContext().deterministicAlgorithms());

  ::setenv(variable, ":4096:8", 1);
  auto const first = marks({});
  REQUIRE(first.size() == 4);
  for (std::uint64_t epoch = 0; epoch <= 3; ++epoch) {
    CHECK(first[epoch].step == 12 * epoch);
    for (std::uint64_t before = 0; before < epoch; ++before) {
      CHECK(first[epoch].hash != first[before].hash);
    }
  }
  CHECK((marks({}) == first));
  auto const other = marks({.seed = 1});
  CHECK(other.at(0) == first[0]);
  CHECK(other.at(1).hash != first[1].hash);

  // Another recipe: its optimizer gets the learning rate as a tensor.
  frugal::CudaGraph<frugal::WholeStep> const graph{};
  auto const replayed = marks({}, graph);
  REQUIRE(replayed.size() == 4);
  CHECK((marks({}, graph) == replayed));
  CHECK(replayed[0] == first[0]);
  frugal::CudaGraph<frugal::WholeStep> eager{};
  eager.warm_up = 1 << 20;
  CHECK((marks({}, eager) == replayed));

  TemporaryFolder const folder;
  frugal::Checkpoint<frugal::Every<5>> const saves{};
  auto const part = marks({.run_dir = folder.path(), .steps = 17}, saves);
  REQUIRE(part.size() == 3);
  CHECK(part[1] == first[1]);
  CHECK((marks({.run_dir = folder.path()}, saves) == first));

  CHECK_FALSE(at::globalContext().deterministicAlgorithms());
}

}  // namespace frugal_test::gpu_audit
