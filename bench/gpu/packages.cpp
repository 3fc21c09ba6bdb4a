// SPDX-License-Identifier: Apache-2.0
// The jobs of bench_gpu as compiled steps.
#include <frugal/step.hpp>

#include <cstdint>
#include <string>

#include "rounds.hpp"

namespace frugal_bench {

namespace {

/// Evaluated on the same samples as every other way; in batches, because the package is of one size.
double judged_loss(Job const& job, fr::StepPackage const& package, fr::StepModule& module,
                   c10::Device device) {
  module.eval();
  double sum = 0;
  for (std::int64_t at = 0; at < job.judged; at += job.batch) {
    fr::Batch const some{job.data.data.slice(0, at, at + job.batch).to(device),
                         job.data.target.slice(0, at, at + job.batch).to(device)};
    sum += package.objective()(module, some).value.item<double>();
  }
  return sum * static_cast<double>(job.batch) / static_cast<double>(job.judged);
}

}  // namespace

json train_package(Job const& job, std::string const& folder, std::string const& how,
                   fr::TensorDataset& source, Clock& clock, c10::Device device) {
  fr::StepPackage const package(folder, device);
  auto const module = package.module();
  fr::CudaGraph<fr::WholeStep, Counted> const graph;
  auto const by = [&](auto const&... policies) {
    return train(module, package.objective(), source, clock, device, policies...);
  };
  json line;
  if (how == "package+graph") {
    line = by(graph);
  } else if (how == "package+bf16") {
    line = by(fr::Precision<fr::BF16>{});
  } else if (how == "package+bf16+graph") {
    line = by(fr::Precision<fr::BF16>{}, graph);
  } else {
    line = by();
  }
  // Its evaluation is of the precision that the package was exported for, outside of a recipe.
  bool const is_bf16 = how.find("bf16") != std::string::npos;
  at::autocast::set_autocast_enabled(device.type(), is_bf16);
  at::autocast::set_autocast_dtype(device.type(), at::kBFloat16);
  line["loss"] = judged_loss(job, package, *module, device);
  at::autocast::set_autocast_enabled(device.type(), false);
  return line;
}

}  // namespace frugal_bench
