// SPDX-License-Identifier: Apache-2.0
// Trains one of four jobs on a GPU in one of several ways and prints one line of JSON: seconds of
// wall time, of the host and of a launch, peak bytes, final loss, captures and advice. bench/gpu.py
// runs it, and the same jobs in PyTorch; package: as steps that peers_package.py has compiled.
//
// `hand` is the reference: a CUDA graph as an engineer writes it for one network, without frugal's
// loop. It takes its rows from frugal::Pass, so that loops are compared rather than shuffles.
//
// Shapes: N samples, B in a batch, T tokens.
#include <ATen/cuda/CUDAContext.h>
#include <ATen/cuda/CUDAEvent.h>
#include <ATen/cuda/CUDAGraph.h>
#include <c10/cuda/CUDACachingAllocator.h>
#include <c10/cuda/CUDAFunctions.h>
#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>
#include <cuda_runtime_api.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "rounds.hpp"

namespace fr = frugal;
namespace nn = torch::nn;
using frugal_bench::Clock;
using frugal_bench::Job;
using frugal_bench::learning_rate;
using frugal_bench::wait_for;
using nlohmann::json;

namespace {

// ---- by hand ------------------------------------------------------------------------------------

/// Endless epochs of batches, gathered into persistent memory and copied from there. On a GPU it is
/// page-locked, and a slot is refilled once its copy is complete.
class Feed {
 public:
  Feed(Job const& job, c10::Device device)
      : from_(job.data),
        pass_(static_cast<std::uint64_t>(job.data.data.size(0)),
              {.batch = job.batch, .drop_last = true}, "the data of a job"),
        on_gpu_(device.is_cuda()),
        rows_(at::empty({job.batch}, at::kLong)) {
    auto const like = [&](at::Tensor const& t, at::TensorOptions const& options) {
      std::vector<std::int64_t> sizes = t.sizes().vec();
      sizes[0] = job.batch;
      return at::empty(sizes, options);
    };
    auto const here = [&](at::Tensor const& t) { return like(t, t.options().device(device)); };
    auto const sent = [&](at::Tensor const& t) {
      return like(t, t.options().pinned_memory(on_gpu_));
    };
    here_ = {here(from_.data), here(from_.target)};
    for (Slot& slot : slots_) slot.batch = {sent(from_.data), sent(from_.target)};
  }

  fr::Batch const& here() const { return here_; }

  /// Copies the next batch there, ordered after the current stream's work.
  void advance() {
    Slot& slot = slots_[at_++ % slots_.size()];
    if (on_gpu_) slot.copied.synchronize();
    next_rows();
    at::index_select_out(slot.batch.data, from_.data, 0, rows_);
    at::index_select_out(slot.batch.target, from_.target, 0, rows_);
    here_.data.copy_(slot.batch.data, /*non_blocking=*/true);
    here_.target.copy_(slot.batch.target, /*non_blocking=*/true);
    if (on_gpu_) slot.copied.record();
  }

 private:
  struct Slot {
    fr::Batch batch{};
    at::cuda::CUDAEvent copied{};
  };

  void next_rows() {
    fr::Pass::Slice slice = pass_.advance();
    if (slice.count == 0) {
      pass_.seek({0, ++epoch_, 0});
      slice = pass_.advance();
    }
    pass_.indices(slice, std::span(rows_.mutable_data_ptr<std::int64_t>(), slice.count));
  }

  fr::Batch from_;
  fr::Pass pass_;
  bool on_gpu_;
  at::Tensor rows_;  // of the next batch
  fr::Batch here_;
  std::array<Slot, 4> slots_{};
  std::size_t at_ = 0;
  std::uint64_t epoch_ = 0;
};

/// A step's work, on persistent tensors.
class HandStep {
 public:
  HandStep(nn::Sequential net, fr::Batch const& batch, c10::Device device)
      : net_(std::move(net)), batch_(batch) {
    net_->to(device);
    net_->train();
    parameters_ = net_->parameters();
    auto const number = at::TensorOptions(at::kFloat).device(device);
    one_ = at::ones({}, number);
    total_ = at::zeros({}, number);
    rate_ = at::full({}, learning_rate, number);
    counter_ = at::zeros({}, number);
    at::NoGradGuard const no_gradients;
    for (at::Tensor const& each : parameters_) {
      first_.push_back(at::zeros_like(each));
      second_.push_back(at::zeros_like(each));
      counters_.push_back(counter_);
    }
  }

  void run() {
    at::Tensor const loss = at::cross_entropy_loss(net_->forward(batch_.data), batch_.target);
    loss.backward(one_);
    at::NoGradGuard const no_gradients;
    std::vector<at::Tensor> gradients;
    gradients.reserve(parameters_.size());
    for (at::Tensor const& each : parameters_) gradients.push_back(each.grad());
    counter_.add_(1);
    at::_fused_adamw_(parameters_, gradients, first_, second_, {}, counters_, rate_, 0.9, 0.999,
                      1e-2, 1e-8, /*amsgrad=*/false, /*maximize=*/false);
    total_.add_(loss);
  }
  void drop_gradients() {
    for (at::Tensor const& each : parameters_) each.mutable_grad().reset();
  }
  double total() const { return total_.item<double>(); }

 private:
  nn::Sequential net_;
  fr::Batch batch_;
  std::vector<at::Tensor> parameters_, first_, second_, counters_;
  at::Tensor one_, total_, rate_, counter_;
};

/// On a CPU, runs the step where a GPU replays it.
class ByHand {
 public:
  ByHand(Job& job, c10::Device device)
      : device_(device), feed_(job, device), step_(job.net, feed_.here(), device) {}

  json train(Clock& clock) {
    std::uint64_t const warmup = 3;
    if (device_.is_cuda()) side_ = c10::cuda::getStreamFromPool(false, device_.index());
    for (std::uint64_t step = 1; step <= clock.all_steps(); ++step) {
      if (device_.is_cuda() && step == warmup + 1) capture();
      feed_.advance();
      if (graph_) {
        graph_->replay();
      } else {
        eagerly();
      }
      clock.done(step);
    }
    wait_for(device_);
    return {{"captures", graph_ ? 1 : 0},
            {"mean_loss", step_.total() / static_cast<double>(clock.all_steps())},
            {"advice", json::array()}};
  }

  /// Seconds per replay in a sequence: the device's part of a step, without its data.
  json replay_seconds() {
    if (!graph_) return {};
    constexpr int replays = 200;
    wait_for(device_);
    auto const begin = std::chrono::steady_clock::now();
    for (int i = 0; i < replays; ++i) graph_->replay();
    wait_for(device_);
    std::chrono::duration<double> const spent = std::chrono::steady_clock::now() - begin;
    return spent.count() / replays;
  }

 private:
  void eagerly() {
    step_.drop_gradients();
    if (!side_) return step_.run();
    // Only in the warm-up, where waiting costs nothing.
    wait_for(device_);
    {
      c10::cuda::CUDAStreamGuard const guard(*side_);
      step_.run();
    }
    wait_for(device_);
  }

  void capture() {
    step_.drop_gradients();
    wait_for(device_);
    c10::cuda::CUDACachingAllocator::emptyCache();
    c10::cuda::CUDAStreamGuard const guard(*side_);
    graph_ = std::make_unique<at::cuda::CUDAGraph>();
    graph_->capture_begin({0, 0}, cudaStreamCaptureModeThreadLocal);
    step_.run();
    graph_->capture_end();
    wait_for(device_);
  }

  c10::Device device_;
  Feed feed_;
  HandStep step_;
  std::optional<c10::cuda::CUDAStream> side_;
  std::unique_ptr<at::cuda::CUDAGraph> graph_;
};

// ---- output -------------------------------------------------------------------------------------

/// Evaluated on the same samples for every way, outside of the timing.
double judged_loss(Job& job, c10::Device device) {
  torch::NoGradGuard const no_gradients;
  fr::Batch const some{job.data.data.slice(0, 0, job.judged).to(device),
                       job.data.target.slice(0, 0, job.judged).to(device)};
  return fr::CrossEntropy{}(job.net, some).value.item<double>();
}

std::string cuda_version(int number) {
  return std::to_string(number / 1000) + "." + std::to_string(number % 1000 / 10);
}

void tell_of(json& line, c10::Device device) {
  line["torch"] = TORCH_VERSION;
#ifdef __OPTIMIZE__
  line["optimised"] = true;
#else
  line["optimised"] = false;
#endif
  line["device"] = "cpu";
  if (!device.is_cuda()) return;
  auto const& properties = *at::cuda::getDeviceProperties(device.index());
  int driver = 0;
  int runtime = 0;
  // On failure it stays 0, and is reported as such.
  static_cast<void>(cudaDriverGetVersion(&driver));
  static_cast<void>(cudaRuntimeGetVersion(&runtime));
  line["device"] = properties.name;
  line["cuda"] = cuda_version(runtime);
  line["cuda_of_driver"] = cuda_version(driver);
}

void tell_peaks(json& line, c10::Device device) {
  line["peak_allocated"] = line["peak_reserved"] = nullptr;
  if (!device.is_cuda()) return;
  auto const stats = c10::cuda::CUDACachingAllocator::getDeviceStats(device.index());
  line["peak_allocated"] = stats.allocated_bytes[0].peak;
  line["peak_reserved"] = stats.reserved_bytes[0].peak;
}

json measure(std::string const& name, std::string const& how, std::string const& package,
             Clock& clock, c10::Device device) {
  Job job = frugal_bench::job_named(name);
  fr::TensorDataset source(job.data, {.batch = job.batch, .drop_last = true});
  json line{{"job", name},
            {"how", how},
            {"by", how == "hand" ? "hand" : "frugal"},
            {"batch", job.batch},
            {"tf32", true}};
  std::optional<ByHand> by_hand;
  fr::CudaGraph<fr::WholeStep, frugal_bench::Counted> const graph;
  fr::Precision<fr::BF16> const bf16;
  auto const train = [&](auto const&... policies) {
    line.update(
        frugal_bench::train(job.net, fr::CrossEntropy{}, source, clock, device, policies...));
  };
  if (how == "eager") {
    train();
  } else if (how == "eager+device") {
    train(fr::DevicePrefetch<>{});
  } else if (how == "graph") {
    train(graph);
  } else if (how == "graph+device") {
    train(graph, fr::DevicePrefetch<>{});
  } else if (how == "bf16") {
    train(bf16);
  } else if (how == "graph+bf16") {
    train(bf16, graph);
  } else if (how == "graph+fp8") {
    train(fr::Precision<fr::FP8>{}, graph);
  } else if (how == "graph+int8") {
    train(fr::Precision<fr::INT8>{}, graph);
  } else if (how == "bf16+recompute") {
    train(bf16, fr::Recompute<fr::Segments<5>>{});
  } else if (how == "bf16+offload") {
    train(bf16, fr::Activations<fr::Offload>{});
  } else if (how.starts_with("package")) {
    line.update(frugal_bench::train_package(job, package, how, source, clock, device));
  } else {
    by_hand.emplace(job, device);
    line.update(by_hand->train(clock));
  }
  clock.tell(line);
  tell_peaks(line, device);
  if (!line.contains("loss")) line["loss"] = judged_loss(job, device);
  if (by_hand) line["replay_seconds_per_step"] = by_hand->replay_seconds();
  return line;
}

}  // namespace

int main(int argc, char** argv) {
  std::string job = "mlp";
  std::string how = "graph";
  std::string where = "cuda";
  std::string package;
  std::uint64_t steps = 1000;
  std::uint64_t warmup = 100;
  bool only_device = false;
  CLI::App app("One job on a GPU, eagerly or as a CUDA graph.");
  app.add_option("--job", job)->check(CLI::IsMember({"mlp", "convnet", "transformer", "large"}));
  app.add_option("--how", how)
      ->check(
          CLI::IsMember({"eager", "eager+device", "graph", "graph+device", "hand", "bf16",
                         "graph+bf16", "graph+fp8", "graph+int8", "bf16+recompute", "bf16+offload",
                         "package", "package+graph", "package+bf16", "package+bf16+graph"}));
  app.add_option("--package", package, "folder of the compiled step");
  app.add_option("--device", where)->check(CLI::IsMember({"cuda", "cpu"}));
  app.add_option("--steps", steps)->check(CLI::PositiveNumber);
  app.add_option("--warmup", warmup, "a graph is captured within the first 4")
      ->check(CLI::Range(5, 1000000));
  app.add_flag("--info", only_device, "only say which device there is, and how this was built");
  CLI11_PARSE(app, argc, argv);

  bool const on_gpu = where == "cuda";
  if (on_gpu && c10::cuda::device_count() == 0) {
    std::cout << "no GPU found\n";
    return frugal_bench::not_run;
  }
  c10::Device const device = on_gpu ? c10::Device(c10::kCUDA, 0) : c10::Device(c10::kCPU);
  if (!on_gpu && how.find("graph") != std::string::npos && !only_device) {
    std::cout << json{{"not_run", "CudaGraph<WholeStep> needs a GPU"}} << '\n';
    return frugal_bench::not_run;
  }
  at::set_num_threads(1);
  at::globalContext().setAllowTF32CuBLAS(true);
  at::globalContext().setAllowTF32CuDNN(true);
  try {
    json line;
    if (!only_device) {
      Clock clock(warmup, steps, device);
      line = measure(job, how, package, clock, device);
    }
    tell_of(line, device);
    std::cout << line << std::endl;
  } catch (std::exception const& error) {  // including fr::Error
    std::cerr << error.what() << std::endl;
    return 1;
  }
}
