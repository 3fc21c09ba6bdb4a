// SPDX-License-Identifier: Apache-2.0
// A stand-in for a step package's compiled code, with AOTInductor's interface: a linear layer [1, D] with the mean
// squared error, and a buffer that counts samples. Its own file name says what it does: "step", "evaluate" or
// "predict", and what is wrong with it ("aliased", "short", "fails", "noisy", "stateless", "hungry": more than
// two samples need more memory than there is), or that it has BatchNorm ("normed"), returns its output in training
// ("shown") or checks an index: whether a number of the target is above 100 ("indexed").
#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>
#include <dlfcn.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/csrc/inductor/aoti_runtime/interface.h>
#include <torch/csrc/inductor/aoti_torch/utils.h>

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <string>
#include <utility>
#include <vector>

namespace {

std::string own_name() {
  Dl_info info{};
  dladdr(reinterpret_cast<void*>(&own_name), &info);
  std::string const path = info.dli_fname;
  return path.substr(path.rfind('/') + 1);
}

bool is(char const* word) {
  static std::string const name = own_name();
  return name.find(word) != std::string::npos;
}

/// "normed": the output's one feature goes through BatchNorm. Inputs: weight [1, D], bias [1], the statistics' mean [1],
/// variance [1] and number of calls, data [B, D], target [B, 1], the seed.
std::vector<at::Tensor> compute_normed(std::vector<at::Tensor> const& in) {
  at::AutoGradMode const gradients(true);
  at::Tensor const weight = in[0].detach().requires_grad_();
  at::Tensor const bias = in[1].detach().requires_grad_();
  at::Tensor const mean = in[2].clone(), variance = in[3].clone();
  at::Tensor const output = at::batch_norm(at::linear(in[5], weight, bias), {}, {}, mean, variance,
                                           /*training=*/true, 0.1, 1e-5, /*cudnn_enabled=*/false);
  at::Tensor const loss = at::mse_loss(output, in[6]);
  auto const made = torch::autograd::grad({loss}, {weight, bias}, {in[7]});
  return {loss.detach(), at::scalar_tensor(in[5].size(0), at::kLong),
          mean,          variance,
          in[4] + 1,     made[0],
          made[1]};
}

/// Inputs: weight [1, D], bias [1], seen, data [B, D], and but for predictions target [B, 1]; of a step the seed.
std::vector<at::Tensor> compute(std::vector<at::Tensor> const& in) {
  if (is("normed")) return compute_normed(in);
  at::Tensor x = in[3];
  if (is("predict")) return {at::linear(x, in[0], in[1])};
  if (is("evaluate")) {
    at::Tensor const output = at::linear(x, in[0], in[1]);
    return {at::mse_loss(output, in[4]), at::scalar_tensor(x.size(0), at::kLong), output};
  }
  if (is("hungry") && x.size(0) > 2) at::empty({std::int64_t{1} << 60}, at::kByte);
  at::AutoGradMode const gradients(true);
  at::Tensor const weight = in[0].detach().requires_grad_();
  at::Tensor const bias = in[1].detach().requires_grad_();
  if (is("noisy")) x = at::dropout(x, 0.5, true);
  at::Tensor const output = at::linear(x, weight, bias);
  at::Tensor const loss = at::mse_loss(output, in[4]);
  auto made = torch::autograd::grad({loss}, {weight, bias}, {in[5]});
  if (is("aliased")) made[1] = made[0].flatten().narrow(0, 0, 1);
  std::vector<at::Tensor> out{loss.detach(), at::scalar_tensor(x.size(0), at::kLong),
                              in[2] + x.size(0), made[0], made[1]};
  if (is("stateless")) out.erase(out.begin() + 2);
  if (is("indexed")) out.insert(out.begin() + 2, (in[4] > 100).any().to(at::kLong));
  if (is("shown")) out.insert(out.begin() + 2, output.detach());
  if (is("short")) out.pop_back();
  return out;
}

std::size_t outputs() {
  if (is("predict")) return 1;
  if (is("evaluate")) return 3;
  if (is("short") || is("stateless")) return 4;
  if (is("normed")) return 7;
  return is("indexed") || is("shown") ? 6 : 5;
}

}  // namespace

extern "C" {

AOTI_API AOTIRuntimeError AOTInductorModelContainerCreateWithDevice(
    AOTInductorModelContainerHandle* container, size_t, char const*, char const*) {
  *container = nullptr;
  return is("refuses") ? AOTI_RUNTIME_FAILURE : AOTI_RUNTIME_SUCCESS;
}
AOTI_API AOTIRuntimeError AOTInductorModelContainerDelete(AOTInductorModelContainerHandle) {
  return AOTI_RUNTIME_SUCCESS;
}
AOTI_API AOTIRuntimeError AOTInductorModelContainerGetNumOutputs(AOTInductorModelContainerHandle,
                                                                 size_t* count) {
  *count = outputs();
  return AOTI_RUNTIME_SUCCESS;
}
AOTI_API AOTIRuntimeError AOTInductorModelContainerRun(AOTInductorModelContainerHandle,
                                                       AtenTensorHandle* inputs, size_t count,
                                                       AtenTensorHandle* made, size_t,
                                                       AOTInductorStreamHandle,
                                                       AOTIProxyExecutorHandle) {
  // Handles are stolen.
  std::vector<at::Tensor> in;
  for (std::size_t i = 0; i < count; ++i) {
    at::Tensor* const input = torch::aot_inductor::tensor_handle_to_tensor_pointer(inputs[i]);
    in.push_back(std::move(*input));
    delete input;
  }
  if (is("fails")) return AOTI_RUNTIME_FAILURE;
  try {
    std::vector<at::Tensor> out = compute(in);
    for (std::size_t i = 0; i < out.size(); ++i)
      made[i] = torch::aot_inductor::new_tensor_handle(std::move(out[i]));
  } catch (std::exception const& error) {
    std::fprintf(stderr, "fake step: %s\n", error.what());
    return AOTI_RUNTIME_FAILURE;
  }
  return AOTI_RUNTIME_SUCCESS;
}
AOTI_API AOTIRuntimeError AOTInductorModelContainerGetNumConstants(AOTInductorModelContainerHandle,
                                                                   size_t* count) {
  *count = 0;
  return AOTI_RUNTIME_SUCCESS;
}

// The runner looks these up, and does not call them for code without constants.
AOTI_API AOTIRuntimeError AOTInductorModelContainerGetConstantName(AOTInductorModelContainerHandle,
                                                                   size_t, char const**) {
  return AOTI_RUNTIME_FAILURE;
}
AOTI_API AOTIRuntimeError AOTInductorModelContainerGetConstantOriginalFQN(
    AOTInductorModelContainerHandle, size_t, char const**) {
  return AOTI_RUNTIME_FAILURE;
}
AOTI_API AOTIRuntimeError AOTInductorModelContainerGetConstantDtype(AOTInductorModelContainerHandle,
                                                                    size_t, int32_t*) {
  return AOTI_RUNTIME_FAILURE;
}
AOTI_API AOTIRuntimeError AOTInductorModelContainerUpdateConstantBuffer(
    AOTInductorModelContainerHandle, AOTInductorConstantMapHandle, bool, bool) {
  return AOTI_RUNTIME_FAILURE;
}
AOTI_API AOTIRuntimeError AOTInductorModelContainerUpdateInactiveConstantBuffer(
    AOTInductorModelContainerHandle, AOTInductorConstantMapHandle) {
  return AOTI_RUNTIME_FAILURE;
}
AOTI_API AOTIRuntimeError AOTInductorModelContainerRunConstantFolding(
    AOTInductorModelContainerHandle, bool, AOTInductorStreamHandle, AOTIProxyExecutorHandle) {
  return AOTI_RUNTIME_FAILURE;
}
AOTI_API AOTIRuntimeError
AOTInductorModelContainerSwapConstantBuffer(AOTInductorModelContainerHandle) {
  return AOTI_RUNTIME_FAILURE;
}
AOTI_API AOTIRuntimeError AOTInductorModelContainerGetCallSpec(AOTInductorModelContainerHandle,
                                                               char const**, char const**) {
  return AOTI_RUNTIME_FAILURE;
}
AOTI_API AOTIRuntimeError
AOTInductorModelContainerFreeInactiveConstantBuffer(AOTInductorModelContainerHandle) {
  return AOTI_RUNTIME_FAILURE;
}
AOTI_API AOTIRuntimeError AOTInductorModelContainerExtractConstantsMap(
    AOTInductorModelContainerHandle, AOTInductorConstantMapHandle, bool) {
  return AOTI_RUNTIME_FAILURE;
}
AOTI_API AOTIRuntimeError AOTInductorModelContainerUpdateUserManagedConstantBuffer(
    AOTInductorModelContainerHandle, AOTInductorConstantMapHandle, bool, bool) {
  return AOTI_RUNTIME_FAILURE;
}
AOTI_API AOTIRuntimeError
AOTInductorModelContainerGetConstantsBlobSize(AOTInductorModelContainerHandle, uint64_t*) {
  return AOTI_RUNTIME_FAILURE;
}
AOTI_API AOTIRuntimeError AOTInductorModelUpdateConstantsFromBlob(AOTInductorModelContainerHandle,
                                                                  uint8_t const*) {
  return AOTI_RUNTIME_FAILURE;
}
}
