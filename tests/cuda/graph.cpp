// SPDX-License-Identifier: Apache-2.0
// A whole trainer with Graph<WholeStep> on CUDA graphs. Where there is no GPU it has to end in the
// typed error; where there is one, a replayed run has to have the bits of one that never captures.
#include <frugal/frugal.hpp>

#include <c10/cuda/CUDAFunctions.h>

#include <cstdio>
#include <string>
#include <vector>

namespace {

namespace fr = frugal;
using namespace frugal::literals;

struct Ran {
  std::vector<at::Tensor> weights;
  fr::Report report;
};

template <class Accumulate>
Ran train(c10::Device device, int warm_up, Accumulate accumulate) {
  torch::manual_seed(1);
  torch::nn::Sequential net(torch::nn::Linear(8, 32), torch::nn::BatchNorm1d(32), torch::nn::ReLU(),
                            torch::nn::Dropout(0.2), torch::nn::Linear(32, 3));
  fr::Resident train(torch::randn({254, 8}), torch::randint(0, 3, {254}), {.batch = 8});
  fr::Trainer trainer{net,
                      fr::CrossEntropy{},
                      fr::Settings{.epochs = 3, .device = device},
                      fr::Optimize<fr::AdamW>{.lr = 0.01},
                      fr::Schedule<fr::Warmup<5>, fr::Cosine>{},
                      fr::ClipNorm<0.5_r>{},
                      fr::Average<fr::Ema<0.9_r>>{},
                      accumulate,
                      fr::Graph<fr::WholeStep>{.warm_up = warm_up}};
  Ran ran{.weights = {}, .report = trainer.fit(train)};
  for (at::Tensor const& each : net->parameters()) ran.weights.push_back(each.detach().cpu());
  for (at::Tensor const& each : net->buffers()) ran.weights.push_back(each.cpu());
  return ran;
}

/// Does this end in the typed error that says what to write instead?
bool refused(c10::Device device) {
  try {
    train(device, 3, fr::Accumulate<1>{});
  } catch (fr::SettingsError const& error) {
    std::printf("%s\n", error.what());
    return error.fault().mend.find("Graph<WholeStep> out") != std::string::npos;
  }
  std::printf("no error on %s\n", device.str().c_str());
  return false;
}

template <class Accumulate>
bool same(Accumulate accumulate) {
  Ran const eager = train(c10::Device(c10::kCUDA, 0), 1 << 20, accumulate);
  Ran const replayed = train(c10::Device(c10::kCUDA, 0), 3, accumulate);
  bool equal = eager.weights.size() == replayed.weights.size();
  for (std::size_t i = 0; equal && i < eager.weights.size(); ++i) {
    equal = at::equal(eager.weights[i], replayed.weights[i]);
  }
  for (std::string const& line : replayed.report.advice) std::printf("%s\n", line.c_str());
  std::printf("replayed and eager weights are %s\n", equal ? "equal" : "different");
  return equal;
}

}  // namespace

int main() {
  if (!refused(c10::Device(c10::kCPU))) return 1;
  if (c10::cuda::device_count() == 0) return refused(c10::Device(c10::kCUDA, 0)) ? 0 : 1;
  return same(fr::Accumulate<1>{}) && same(fr::Accumulate<4>{}) ? 0 : 1;
}
