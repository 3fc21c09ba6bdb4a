// SPDX-License-Identifier: Apache-2.0
// needs: tensorboard
// The runs for tests/interop/sinks.py:
//
//  FOLDER run      trains for 20 steps, with scalars, histograms, a text and two images
//  FOLDER stopped  the same, stopped after step 12 and saved at step 10
//  FOLDER resumed  resumes that one
//  FOLDER rolled   the loss of step 18 is NaN once: the run returns from step 17 to step 15
//  FOLDER full     the disk is full from step 6 to step 9
#include <frugal/frugal.hpp>
#include <frugal/report.hpp>
#include <frugal/report/tensorboard.hpp>

#include <torch/nn/modules/linear.h>

#include <sys/resource.h>

#include <csignal>
#include <cstdint>
#include <exception>
#include <filesystem>
#include <iomanip>
#include <iostream>
#include <limits>
#include <string>

namespace fr = frugal;

namespace {

/// Ends the process's run as a kill does.
struct Gone {};

/// As a disk with so many bytes left in the largest file; the rest of the record is lost.
void limit_files(rlim_t bytes) {
  rlimit now{};
  ::getrlimit(RLIMIT_FSIZE, &now);
  now.rlim_cur = bytes;
  ::setrlimit(RLIMIT_FSIZE, &now);
}

struct Objective {
  fr::TensorBoardWriter board;
  std::uint64_t dies_at;
  std::uint64_t* batches;
  bool rolls = false;
  bool fills = false;

  fr::Loss operator()(torch::nn::Linear& module, fr::Batch const& batch) const {
    // Not a batch of a validation.
    std::uint64_t const count = at::GradMode::is_enabled() ? ++*batches : 0;
    if (dies_at != 0 && count == dies_at) throw Gone{};
    // The files of text are not full: they are shorter.
    if (fills && count == 6) limit_files(std::filesystem::file_size(board.path()) + 20);
    if (fills && count == 10) limit_files(RLIM_INFINITY);
    if (count == 1) {
      // Rows 0 and 1 of red, green and blue.
      at::Tensor const picture_CHW = at::zeros({3, 2, 3});
      for (int channel = 0; channel < 3; ++channel)
        picture_CHW.select(0, channel).select(1, channel).fill_(1);
      board.image("picture", 0, picture_CHW);
      board.image("grey", 0, at::arange(6, at::kByte).reshape({2, 3}) * 50);
      board.histogram("known", 0, at::tensor({-2.0, -0.5, 0.0, 0.25, 0.25, 3.0}));
    }
    fr::Loss loss = fr::CrossEntropy{}(module, batch);
    loss.scalars = {{"half", 0.5}};
    if (rolls && count == 18) loss.value = loss.value * std::numeric_limits<double>::quiet_NaN();
    return loss;
  }
};

}  // namespace

int main(int count, char** arguments) {
  try {
    if (count != 3) {
      std::cerr << "FOLDER run, stopped, resumed, rolled or full\n";
      return 2;
    }
    std::string const what = arguments[2];
    std::signal(SIGXFSZ, SIG_IGN);
    fr::TensorBoardWriter const board;
    std::uint64_t batches = 0;
    torch::manual_seed(3);
    at::Tensor const data_NF = at::randn({40, 4});
    torch::nn::Linear module(4, 2);
    fr::Trainer trainer{
        module,
        Objective{board, what == "stopped" ? 13ULL : 0ULL, &batches, what == "rolled",
                  what == "full"},
        fr::Settings{.run_dir = arguments[1], .epochs = 2, .seed = 1},
        fr::Optimize<fr::SGD>{.lr = 0.1},
        fr::Validate<fr::Accuracy>{},
        fr::Checkpoint<fr::Every<10>>{},
        fr::Rollback<fr::Every<5>>{},
        fr::Log<fr::Every<2>>{},
        fr::Csv<fr::Every<2>>{},
        fr::MlperfLog<fr::Every<10>>{.values = {{"submission_org", std::string("frugal")},
                                                {"submission_platform", std::string("test")},
                                                {"submission_division", std::string("open")},
                                                {"submission_benchmark", std::string("none")},
                                                {"cache_clear", std::uint64_t{1}},
                                                {"train_samples", std::uint64_t{40}},
                                                {"eval_samples", std::uint64_t{40}}}},
        fr::TensorBoard<fr::Every<2>, fr::WeightHistograms<fr::Every<5>>,
                        fr::GradientHistograms<fr::Every<5>>>{
            .texts = {{"recipe", "**SGD**, caf\u00e9"}}, .writer = board}};
    auto const source = [&] {
      return fr::TensorDataset({data_NF, (data_NF.sum(1) > 0).to(at::kLong)}, {.batch = 4});
    };
    static_cast<void>(trainer.fit(source(), source()));
    // What the last histogram has: 20 is a multiple of 5.
    std::cout << std::setprecision(17) << module->weight.min().item<double>() << ' '
              << module->weight.max().item<double>() << ' ' << module->weight.sum().item<double>()
              << ' ' << module->weight.numel() << '\n';
  } catch (Gone const&) {
    return 0;
  } catch (std::exception const& error) {
    std::cerr << error.what() << '\n';
    return 1;
  }
  return 0;
}
