// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <utility>

#include <frugal/cluster/communicator/c10d.hpp>
#include <frugal/cluster/communicator/local_address.hpp>
#include <frugal/cluster/communicator/rank_watch.hpp>
#include <frugal/cluster/communicator/rendezvous.hpp>
#include <frugal/cluster/world.hpp>

namespace frugal::detail {

/// A wait whose limit is counted elsewhere.
inline constexpr std::chrono::milliseconds no_limit = std::chrono::hours(24 * 365);

#ifdef USE_C10D_NCCL
inline c10::intrusive_ptr<c10d::Backend> nccl_group(c10::intrusive_ptr<c10d::Store> store, int rank,
                                                    int size, WaitLimits const& limits) {
  auto options = c10d::ProcessGroupNCCL::Options::create();
  options->timeout = limits.collective;
  return c10::make_intrusive<c10d::ProcessGroupNCCL>(
      c10::make_intrusive<c10d::PrefixStore>("nccl", std::move(store)), rank, size,
      std::move(options));
}
#endif

/// Connects a rank to all others, within the time that they have to come. `store`: of this group alone.
inline c10::intrusive_ptr<c10d::Backend> gloo_backend(c10::intrusive_ptr<c10d::Store> store,
                                                      World const& world, RankWatch& watch,
                                                      std::chrono::milliseconds join) {
  auto options = c10d::ProcessGroupGloo::Options::create();
  // Of one connection. Addresses are awaited in the store, which has its own limit.
  options->timeout = std::min<std::chrono::milliseconds>(join, std::chrono::seconds(45));
  // Python's variable, for machines with several networks. Otherwise that which leads to rank 0.
  char const* const interface = std::getenv("GLOO_SOCKET_IFNAME");
  options->devices.push_back(interface != nullptr
                                 ? c10d::ProcessGroupGloo::createDeviceForInterface(interface)
                                 : c10d::ProcessGroupGloo::createDeviceForHostname(
                                       local_address_towards(world.host, world.port)));
  struct Connects {
    RankWatch& watch;
    explicit Connects(RankWatch& of) : watch(of) { watch.connects(true); }
    Connects(Connects const&) = delete;
    Connects& operator=(Connects const&) = delete;
    ~Connects() { watch.connects(false); }
  };
  Connects const connecting(watch);
  auto group = c10::make_intrusive<c10d::ProcessGroupGloo>(std::move(store), world.rank, world.size,
                                                           std::move(options));
  // Waits have their own limit, which does not run while a rank is busy.
  group->setTimeout(no_limit);
  return group;
}

}  // namespace frugal::detail
