// SPDX-License-Identifier: Apache-2.0
// A whole trainer with CudaGraph<WholeStep> on CUDA graphs links, and throws the typed error on a
// machine without a GPU. tests/gpu tests it on one.
#include <frugal/frugal.hpp>

#include <c10/cuda/CUDAFunctions.h>

#include <cstdio>
#include <string>

namespace {

namespace fr = frugal;

void train(c10::Device device) {
  torch::nn::Linear net(8, 3);
  fr::TensorDataset train(torch::randn({64, 8}), torch::randint(0, 3, {64}), {.batch = 8});
  fr::Trainer trainer{net, fr::CrossEntropy{}, fr::Settings{.epochs = 1, .device = device},
                      fr::Optimize<fr::AdamW>{.lr = 0.01}, fr::CudaGraph<fr::WholeStep>{}};
  static_cast<void>(trainer.fit(train));
}

/// Whether this throws the typed error that says what to write instead.
bool refused(c10::Device device) {
  try {
    train(device);
  } catch (fr::SettingsError const& error) {
    std::printf("%s\n", error.what());
    return error.fault().fix.find("emove CudaGraph<WholeStep>") != std::string::npos;
  }
  std::printf("no error on %s\n", device.str().c_str());
  return false;
}

}  // namespace

int main() {
  if (!refused(c10::Device(c10::kCPU))) return 1;
  return c10::cuda::device_count() != 0 || refused(c10::Device(c10::kCUDA, 0)) ? 0 : 1;
}
