// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <functional>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include <frugal/checkpoint/run_file.hpp>

namespace frugal::detail {

/// The least length of a token: 16 characters of a good source have 64 bits or more.
inline constexpr std::size_t least_token = 16;

}  // namespace frugal::detail

namespace frugal {

/// Value of an environment variable; null if it is not set.
using ReadVariable = std::function<char const*(char const* name)>;

namespace detail {

/// The environment variables of a launcher. An empty one counts as not set.
class Variables {
 public:
  explicit Variables(ReadVariable read) : read_(std::move(read)) {}

  bool has(char const* name) const { return text(name).has_value(); }
  std::optional<std::string> text(char const* name) const {
    char const* const value = read_(name);
    if (value == nullptr || *value == '\0') return std::nullopt;
    return value;
  }
  /// Throws SettingsError for anything but a whole number within the limits.
  std::optional<int> number(char const* name, int least = 0,
                            int most = std::numeric_limits<int>::max()) const;
  /// Throws SettingsError if it is not set. `with` is the variable that demands it.
  int require(char const* name, char const* with, int least = 0) const;

 private:
  ReadVariable read_;
};

/// The first host of SLURM's compressed lists: "gpu[07-12,20],big3" gives "gpu07".
std::string first_host(std::string_view list);

}  // namespace detail

/// The processes that train together, and this one's place among them.
struct World {
  int rank = 0;                    ///< of this process, from 0 to size - 1
  int size = 1;                    ///< processes (the world size)
  int local_rank = 0;              ///< of this process on its machine: the index of its GPU
  std::string host = "127.0.0.1";  ///< the machine whose store all processes meet at
  std::uint16_t port = 29500;      ///< of the store
  /// torchrun's agent already runs the store. Otherwise rank 0 does.
  bool agent_has_store = false;
  int restart = 0;  ///< how often the launcher has restarted the processes
  /// The launcher, by whose variables the rest was read: "torchrun", "srun", "mpirun", "mpirun (PMI)",
  /// "mpirun (MVAPICH2)", "SkyPilot", "PyTorchJob", "RANK and WORLD_SIZE", "one process".
  std::string launcher = "one process";
  /// A secret that the processes have in common: what one of them finds in the store without it was not
  /// written by another one, and is refused (docs/cluster/trust.md). Empty: anyone may have written it.
  std::string token{};

  /// What the launcher of this process says. A world of one if no launcher has started it.
  ///
  /// Reads   RANK, WORLD_SIZE, LOCAL_RANK, MASTER_ADDR, MASTER_PORT and TORCHELASTIC_* (torchrun,
  ///         Kubeflow's PyTorchJob, or by hand); OMPI_COMM_WORLD_* (mpirun of Open MPI); PMI_RANK and
  ///         PMI_SIZE (mpirun of MPICH and Intel MPI); MV2_COMM_WORLD_* (MVAPICH2); SLURM_* (srun);
  ///         SKYPILOT_*. The first of these that has a rank gives it; MASTER_ADDR, MASTER_PORT, and
  ///         FRUGAL_CLUSTER_TOKEN or FRUGAL_CLUSTER_TOKEN_FILE count in all cases.
  /// Errors  SettingsError for ranks without a world, numbers out of range, two launchers that
  ///         disagree, a batch script of SLURM that did not use srun, a missing MASTER_ADDR, and a token
  ///         that is short or that other users can read.
  static World from_environment(ReadVariable read = [](char const* name) -> char const* {
    return std::getenv(name);
  });

  /// "rank 1 of 4 (torchrun), store at 10.0.0.7:29500".
  std::string text() const;
};

}  // namespace frugal

#ifndef FRUGAL_COMPILED
#include <frugal/cluster/world.ipp>
#endif
