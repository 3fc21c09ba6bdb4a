// SPDX-License-Identifier: Apache-2.0
// needs: notices
// The runs for tests/interop/trackers.py:
//
//  FOLDER run      trains for 40 steps, with Log, Progress, and Mlflow if MLFLOW_TRACKING_URI is set
//  FOLDER killed   the same, and kills itself after step 27; the last checkpoint is of step 20
//  FOLDER fails    the same, with an exception at step 27
//
// Prints frugal::json_line of its report.
#include <frugal/frugal.hpp>
#include <frugal/report/mlflow.hpp>

#include <torch/nn/modules/linear.h>

#include <csignal>
#include <cstdint>
#include <exception>
#include <iostream>
#include <limits>
#include <stdexcept>
#include <string>

namespace fr = frugal;

namespace {

struct Objective {
  std::string what;
  std::uint64_t* batches;

  fr::Loss operator()(torch::nn::Linear& module, fr::Batch const& batch) const {
    std::uint64_t const count = at::GradMode::is_enabled() ? ++*batches : 0;
    if (count == 28 && what == "killed") std::raise(SIGKILL);
    if (count == 28 && what == "fails") throw std::runtime_error("gone");
    fr::Loss loss = fr::CrossEntropy{}(module, batch);
    loss.scalars = {{"nan", std::numeric_limits<double>::quiet_NaN()},
                    {"inf", std::numeric_limits<double>::infinity()},
                    {"caf\u00e9 @ " + std::string(300, 'x'), 0.5}};
    return loss;
  }
};

}  // namespace

int main(int count, char** arguments) {
  try {
    if (count != 3) {
      std::cerr << "FOLDER run, killed or fails\n";
      return 2;
    }
    std::uint64_t batches = 0;
    torch::manual_seed(3);
    at::Tensor const data_NF = at::randn({160, 4});
    torch::nn::Linear module(4, 2);
    auto const source = [&] {
      return fr::TensorDataset({data_NF, (data_NF.sum(1) > 0).to(at::kLong)}, {.batch = 8});
    };
    fr::Mlflow<fr::Every<1>> mlflow{.experiment = "interop"};
    fr::Settings settings{.run_dir = arguments[1], .epochs = 2, .seed = 1};
    // As apply() sets them.
    for (int i = 0; i < 120; ++i) settings.options["o" + std::to_string(i)] = "1";
    settings.options["long"] = std::string(9000, 'x');
    fr::Trainer trainer{module,
                        Objective{arguments[2], &batches},
                        settings,
                        fr::Optimize<fr::SGD>{.lr = 0.1},
                        fr::Validate<fr::Accuracy>{},
                        fr::Checkpoint<fr::Every<10>>{},
                        fr::Log<fr::Every<1>>{},
                        fr::Progress<>{.line_seconds = 0},
                        mlflow};
    fr::Report const report = trainer.fit(source(), source());
    std::cout << fr::json_line(report) << '\n';
    return report.exit_code();
  } catch (std::exception const& error) {
    std::cerr << error.what() << '\n';
    return 1;
  }
}
