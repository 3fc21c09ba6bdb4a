// SPDX-License-Identifier: Apache-2.0
// The rival of bench/cluster.py in C++: LibTorch's own Reducer (torch/csrc/distributed/c10d/reducer.hpp), which Python's
// DistributedDataParallel drives, in a hand-written loop with fused AdamW. It is a reference for benchmarks; frugal has its
// own buckets (docs/design.md).
#pragma once

#include <frugal/cluster/communicator/c10d.hpp>
#include <frugal/cluster/communicator/rendezvous.hpp>
#include <frugal/cluster/world.hpp>
#include <frugal/data.hpp>

#include <torch/torch.h>
#include <torch/csrc/distributed/c10d/ProcessGroup.hpp>
#include <torch/csrc/distributed/c10d/reducer.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <type_traits>
#include <unordered_map>
#include <utility>
#include <vector>

namespace frugal_bench {

using Buckets = std::vector<std::vector<std::size_t>>;
using ProcessGroup = c10::intrusive_ptr<c10d::ProcessGroup>;

/// The constructor that LibTorch 2.11 has, and that of 2.15, with two more arguments.
template <class Reducer>
std::unique_ptr<Reducer> make_reducer(std::vector<at::Tensor> const& parameters, Buckets buckets,
                                      ProcessGroup group, std::int64_t bucket, std::int64_t first) {
  std::vector<bool> const sparse(parameters.size(), false);
  std::unordered_map<std::size_t, std::string> const names;
  auto const make = [&](auto... more) {
    return std::make_unique<Reducer>(
        parameters, std::move(buckets), std::move(group), sparse, bucket,
        /*find_unused_parameters=*/false,
        /*gradient_as_bucket_view=*/true, names, first,
        /*skip_all_reduce_unused_params=*/false,
        /*use_python_reducer=*/false, std::vector<std::int64_t>{}, more...);
  };
  if constexpr (std::is_constructible_v<Reducer, std::vector<at::Tensor>, Buckets, ProcessGroup,
                                        std::vector<bool>, std::int64_t, bool, bool,
                                        std::unordered_map<std::size_t, std::string>, std::int64_t,
                                        bool, bool, std::vector<std::int64_t>>) {
    return make();
  } else {
    return make(false, false);
  }
}

/// A group over Gloo, as Communicator makes its own.
inline ProcessGroup gloo_group(frugal::World const& world) {
  auto store = frugal::detail::store_of(world, {});
  auto options = c10d::ProcessGroupGloo::Options::create();
  options->devices.push_back(c10d::ProcessGroupGloo::createDeviceForHostname(
      frugal::detail::local_address_towards(world.host, world.port)));
  auto group = c10::make_intrusive<c10d::ProcessGroup>(store, world.rank, world.size);
  group->setBackend(c10::kCPU, c10d::ProcessGroup::BackendType::GLOO,
                    c10::make_intrusive<c10d::ProcessGroupGloo>(store, world.rank, world.size,
                                                                std::move(options)));
  group->setDefaultBackend(c10d::ProcessGroup::BackendType::GLOO);
  return group;
}

/// Trains with one micro-batch of each rank in a step; calls `after` once a step has been done.
template <class Net, class After>
void reducer_loop(Net& net, frugal::TensorDataset& source, frugal::World const& world,
                  std::uint64_t steps, After after) {
  constexpr std::int64_t first = std::int64_t{1} << 20, bucket = std::int64_t{25} << 20;
  std::vector<at::Tensor> const parameters = net->parameters();
  // Buckets in the order of the gradients, as DistributedDataParallel assigns them.
  std::vector<at::Tensor> reversed(parameters.rbegin(), parameters.rend());
  auto [buckets, limits] = c10d::compute_bucket_assignment_by_size(
      reversed, {static_cast<std::size_t>(first), static_cast<std::size_t>(bucket)});
  for (auto& each : buckets) {
    for (std::size_t& i : each) i = parameters.size() - 1 - i;
  }
  ProcessGroup const group = gloo_group(world);
  auto const reducer = make_reducer<c10d::Reducer>(parameters, buckets, group, bucket, first);

  at::Tensor const counter = torch::zeros({});
  std::vector<at::Tensor> firsts, seconds;
  std::vector<at::Tensor> const counters(parameters.size(), counter);
  for (at::Tensor const& each : parameters) {
    firsts.push_back(torch::zeros_like(each));
    seconds.push_back(torch::zeros_like(each));
  }
  net->train();
  std::uint64_t step = 0;
  for (std::uint64_t epoch = 0; step < steps; ++epoch) {
    source.seek({0, epoch, 0});
    for (std::uint64_t at = 0; step < steps; ++at) {
      auto const batch = source.next();
      if (!batch) break;
      if (at % static_cast<std::uint64_t>(world.size) != static_cast<std::uint64_t>(world.rank))
        continue;
      reducer->rebuild_buckets();
      reducer->prepare_for_forward();
      at::Tensor const loss = at::cross_entropy_loss(net->forward(batch->data), batch->target);
      reducer->prepare_for_backward({});
      loss.backward();
      std::vector<at::Tensor> gradients;
      for (at::Tensor const& each : parameters) gradients.push_back(each.grad());
      torch::NoGradGuard const no_gradients;
      counter.add_(1);
      at::_fused_adamw_(parameters, gradients, firsts, seconds, {}, counters, 1e-3, 0.9, 0.999,
                        1e-2, 1e-8, false, false);
      for (at::Tensor const& each : parameters) each.mutable_grad().reset();
      ++step;
      after();
    }
  }
}

}  // namespace frugal_bench
