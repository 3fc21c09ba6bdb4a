// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/cluster/world.hpp>

#include <frugal/base/io_error.hpp>
#include <frugal/error.hpp>
#include <frugal/inline.hpp>

#include <fcntl.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <filesystem>
#include <system_error>
#include <thread>

namespace frugal::detail {

FRUGAL_INLINE std::string new_token() {
  std::array<unsigned char, 16> bytes{};
  if (::getrandom(bytes.data(), bytes.size(), 0) != static_cast<ssize_t>(bytes.size())) {
    throw io_error("getrandom", "a new token", errno);
  }
  std::string text;
  for (unsigned char const byte : bytes) {
    text += "0123456789abcdef"[byte >> 4];
    text += "0123456789abcdef"[byte & 15];
  }
  return text;
}

/// A new file with a new token, which this user alone can read. Another process may be quicker.
FRUGAL_INLINE void make_token_file(std::filesystem::path const& path) {
  std::filesystem::path made = path;
  made += ".new-" + std::to_string(::getpid());
  int const file = ::open(made.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
  if (file < 0) throw io_error("open", made, errno);
  std::string const token = new_token() + '\n';
  bool const written =
      ::write(file, token.data(), token.size()) == static_cast<ssize_t>(token.size()) &&
      ::fsync(file) == 0;
  int code = written ? 0 : errno;
  ::close(file);
  // Whole or not there: another process may be reading it.
  if (written && ::link(made.c_str(), path.c_str()) != 0 && errno != EEXIST) code = errno;
  ::unlink(made.c_str());
  if (code != 0) throw io_error("link", path, code);
}

/// The token in a file. If there is none: `makes` makes one, others wait for it for so long.
/// SettingsError for a file that others can read or write, or that is not this user's.
FRUGAL_INLINE std::string token_in_file(std::filesystem::path const& path, bool makes,
                                        std::chrono::milliseconds patience) {
  auto const refuse = [&](std::string what, std::string why, std::string fix) {
    throw SettingsError({.what = std::move(what),
                         .where = "FRUGAL_CLUSTER_TOKEN_FILE, " + path.string(),
                         .why = std::move(why),
                         .fix = std::move(fix)});
  };
  auto const end = std::chrono::steady_clock::now() + patience;
  while (true) {
    // Not blocking: it may be a pipe.
    int const file = open_run_file(path, O_RDONLY | O_NONBLOCK);
    int const code = file < 0 ? errno : 0;
    if (file < 0 && code == ENOENT) {
      if (makes) {
        make_token_file(path);
        continue;
      }
      if (std::chrono::steady_clock::now() > end) {
        refuse("there is no file with the token of the run",
               "rank 0 makes it, and this machine does not see it",
               "Name a file in a folder that all machines share, or set FRUGAL_CLUSTER_TOKEN.");
      }
      std::this_thread::sleep_for(std::chrono::milliseconds(100));
      continue;
    }
    if (file < 0) throw io_error("open", path, code);
    struct stat status{};
    std::array<char, 4097> text{};
    bool const known = ::fstat(file, &status) == 0;
    ssize_t const got =
        known && S_ISREG(status.st_mode) ? ::read(file, text.data(), text.size()) : 0;
    ::close(file);
    if (!known || !S_ISREG(status.st_mode)) {
      refuse("it is not a plain file", "a token is read from one", "Name another file.");
    }
    if (status.st_uid != ::geteuid() || (status.st_mode & 077) != 0) {
      refuse("others can read or change the token of the run",
             status.st_uid != ::geteuid() ? "the file belongs to another user"
                                          : "its mode lets the group or all users in",
             "Make it yours alone: chmod 600, or remove it, and rank 0 makes a new one.");
    }
    std::string token(text.data(), got < 0 ? 0 : static_cast<std::size_t>(got));
    while (!token.empty() && (token.back() == '\n' || token.back() == '\r')) token.pop_back();
    if (token.size() > 4095)
      refuse("the token is too long", "4,095 bytes are enough", "Shorten it.");
    return token;
  }
}

FRUGAL_INLINE std::optional<int> Variables::number(char const* name, int least, int most) const {
  std::optional<std::string> const value = text(name);
  if (!value) return std::nullopt;
  int number = 0;
  auto const [end, error] = std::from_chars(value->data(), value->data() + value->size(), number);
  if (error == std::errc{} && end == value->data() + value->size() && number >= least &&
      number <= most)
    return number;
  throw SettingsError(
      {.what = std::string(name) + " is '" + *value + "'",
       .where = "World::from_environment",
       .why = "it must be a whole number from " + std::to_string(least) +
              (most == std::numeric_limits<int>::max() ? " on" : " to " + std::to_string(most)),
       .fix = "Start the processes with torchrun, srun, mpirun or SkyPilot, "
              "which set it, or correct it."});
}

FRUGAL_INLINE int Variables::require(char const* name, char const* with, int least) const {
  if (std::optional<int> const value = number(name, least)) return *value;
  throw SettingsError(
      {.what = std::string(with) + " is set, and " + name + " is not",
       .where = "World::from_environment",
       .why = "a rank without its world, or a world without the rank, starts "
              "another run than the launcher meant",
       .fix = std::string("Set ") + name + " too, or unset " + with + " to train in one process."});
}

FRUGAL_INLINE std::string first_host(std::string_view list) {
  std::string host;
  bool in_brackets = false, past_the_first = false;
  for (char const c : list) {
    if (c == '[') {
      in_brackets = true, past_the_first = false;
    } else if (c == ']') {
      in_brackets = false;
    } else if (in_brackets) {
      past_the_first = past_the_first || c == ',' || c == '-';
      if (!past_the_first) host += c;
    } else if (c == ',') {
      break;
    } else {
      host += c;
    }
  }
  return host;
}

}  // namespace frugal::detail

namespace frugal {

FRUGAL_INLINE std::string World::text() const {
  if (size == 1 && launcher == "one process") return "one process, started by no launcher";
  std::string all = "rank " + std::to_string(rank) + " of " + std::to_string(size) + " (" +
                    launcher + "), store at " +
                    (host.find(':') == std::string::npos ? host : "[" + host + "]") + ":" +
                    std::to_string(port);
  if (agent_has_store) all += ", run by the launcher";
  if (restart != 0) all += ", restart " + std::to_string(restart);
  return all;
}

}  // namespace frugal

namespace frugal::detail {

/// Reads World from one environment.
class WorldReader {
 public:
  explicit WorldReader(ReadVariable read) : is_(std::move(read)) {}

  World read() {
    World world = of_launcher();
    if (std::optional<std::string> const host = is_.text("MASTER_ADDR")) {
      world.host = address_of(*host);
    }
    if (std::optional<int> const port = is_.number("MASTER_PORT", 1, 65535))
      world.port = static_cast<std::uint16_t>(*port);
    require_rank(world);
    if (world.host.empty()) {
      if (world.size > 1) refuse_without_address(world);
      world.host = "127.0.0.1";
    }
    if (world.size > 1) world.token = token(world);
    return world;
  }

 private:
  std::string token(World const& world) const {
    std::string text = is_.text("FRUGAL_CLUSTER_TOKEN").value_or("");
    if (std::optional<std::string> const file = is_.text("FRUGAL_CLUSTER_TOKEN_FILE")) {
      std::string of_file = token_in_file(*file, world.rank == 0, std::chrono::minutes(1));
      if (!text.empty() && text != of_file) {
        refuse("FRUGAL_CLUSTER_TOKEN is not what FRUGAL_CLUSTER_TOKEN_FILE has",
               "a run has one token", "Unset one of them.");
      }
      text = std::move(of_file);
    } else if (text.empty()) {
      return text;
    }
    if (text.size() < least_token) {
      refuse("the token of the run has " + std::to_string(text.size()) + " characters",
             "a short one can be guessed, and it must have " + std::to_string(least_token),
             "Use one of a random source: openssl rand -hex 16.");
    }
    return text;
  }

  World of_launcher() const {
    if (is_.has("RANK") || is_.has("WORLD_SIZE")) return of_variables();
    if (is_.has("OMPI_COMM_WORLD_RANK")) return of_mpirun();
    if (is_.has("PMI_RANK") || is_.has("PMI_SIZE")) return of_pmi();
    if (is_.has("MV2_COMM_WORLD_RANK")) return of_mvapich();
    if (started_by_srun()) return of_srun();
    if (is_.has("SKYPILOT_NODE_RANK")) return of_skypilot();
    refuse_batch_script();
    return {};
  }

  World of_variables() const {
    World world;
    world.rank = is_.require("RANK", "WORLD_SIZE");
    world.size = is_.require("WORLD_SIZE", "RANK", 1);
    world.local_rank = is_.number("LOCAL_RANK").value_or(0);
    world.restart = is_.number("TORCHELASTIC_RESTART_COUNT").value_or(0);
    world.agent_has_store = is_.text("TORCHELASTIC_USE_AGENT_STORE") == "True";
    world.host.clear();
    if (std::optional<int> const here = is_.number("LOCAL_WORLD_SIZE", 1);
        here && world.local_rank >= *here) {
      refuse("LOCAL_RANK is " + std::to_string(world.local_rank) + " and LOCAL_WORLD_SIZE is " +
                 std::to_string(*here),
             "local ranks are numbered from 0", "Correct one of them.");
    }
    if (is_.has("TORCHELASTIC_RUN_ID")) {
      world.launcher = "torchrun";
      return world;  // torchrun has its own ranks, also under srun
    }
    world.launcher = is_.has("KUBERNETES_SERVICE_HOST") ? "PyTorchJob" : "RANK and WORLD_SIZE";
    if (is_.has("OMPI_COMM_WORLD_RANK")) require_same(world, of_mpirun());
    if (is_.has("PMI_RANK")) require_same(world, of_hydra());
    if (is_.has("MV2_COMM_WORLD_RANK")) require_same(world, of_mvapich());
    if (started_by_srun() && !is_.has("PMI_RANK")) require_same(world, of_srun());
    return world;
  }

  /// SLURM gives interactive and batch steps numbers from the end of 32 bits: no srun has started their
  /// processes.
  bool started_by_srun() const {
    std::optional<std::string> const step = is_.text("SLURM_STEP_ID");
    if (!step) return false;
    std::uint64_t number = 0;
    auto const [end, error] = std::from_chars(step->data(), step->data() + step->size(), number);
    return error != std::errc{} || end != step->data() + step->size() || number < 0xfffffff0;
  }

  World of_mpirun() const {
    World world;
    world.rank = is_.require("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE");
    world.size = is_.require("OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_RANK", 1);
    world.local_rank = is_.number("OMPI_COMM_WORLD_LOCAL_RANK").value_or(0);
    world.host.clear();
    world.launcher = "mpirun";
    return world;
  }

  /// srun sets these variables too (--mpi=pmi2). If its own say otherwise it has started Hydra's proxies, one
  /// on each machine, which have started the processes.
  World of_pmi() const {
    World const hydra = of_hydra();
    if (!started_by_srun()) return hydra;
    World const srun = of_srun();
    return place(srun) == place(hydra) ? srun : hydra;
  }
  /// mpirun and mpiexec of MPICH, Intel MPI and Cray MPI.
  World of_hydra() const {
    World world;
    world.rank = is_.require("PMI_RANK", "PMI_SIZE");
    world.size = is_.require("PMI_SIZE", "PMI_RANK", 1);
    std::optional<int> local = is_.number("MPI_LOCALRANKID");
    if (!local) local = is_.number("PMI_LOCAL_RANK");
    if (!local) local = is_.number("PALS_LOCAL_RANKID");
    world.local_rank = local.value_or(0);
    world.host.clear();
    world.launcher = "mpirun (PMI)";
    return world;
  }
  /// mpirun_rsh of MVAPICH2.
  World of_mvapich() const {
    World world;
    world.rank = is_.require("MV2_COMM_WORLD_RANK", "MV2_COMM_WORLD_SIZE");
    world.size = is_.require("MV2_COMM_WORLD_SIZE", "MV2_COMM_WORLD_RANK", 1);
    world.local_rank = is_.number("MV2_COMM_WORLD_LOCAL_RANK").value_or(0);
    world.host.clear();
    world.launcher = "mpirun (MVAPICH2)";
    return world;
  }

  World of_srun() const {
    World world;
    world.rank = is_.require("SLURM_PROCID", "SLURM_STEP_ID");
    std::optional<int> const tasks = is_.number("SLURM_STEP_NUM_TASKS", 1);
    world.size = tasks ? *tasks : is_.require("SLURM_NTASKS", "SLURM_PROCID", 1);
    world.local_rank = is_.number("SLURM_LOCALID").value_or(0);
    world.restart = is_.number("SLURM_RESTART_COUNT").value_or(0);
    std::optional<std::string> hosts = is_.text("SLURM_STEP_NODELIST");
    if (!hosts) hosts = is_.text("SLURM_JOB_NODELIST");
    world.host = hosts ? first_host(*hosts) : "";
    // Jobs, and steps of one job, that run on one machine at the same time meet at other ports.
    int const job = is_.number("SLURM_JOB_ID").value_or(0);
    int const step = is_.number("SLURM_STEP_ID").value_or(0);
    world.port = static_cast<std::uint16_t>(20000 + (job % 2000) * 10 + step % 10);
    world.launcher = "srun";
    return world;
  }

  /// SkyPilot runs the same command on each machine.
  World of_skypilot() const {
    World world;
    world.rank = is_.require("SKYPILOT_NODE_RANK", "SKYPILOT_NUM_NODES");
    world.size = is_.require("SKYPILOT_NUM_NODES", "SKYPILOT_NODE_RANK", 1);
    int const devices = is_.number("SKYPILOT_NUM_GPUS_PER_NODE").value_or(0);
    if (devices > 1) {
      refuse(
          "SkyPilot has started one process on a machine with " + std::to_string(devices) + " GPUs",
          "a process trains on one GPU, and the others would be paid for and idle",
          "Start torchrun in the task's `run`, with --nproc-per-node " + std::to_string(devices) +
              ".");
    }
    std::string const addresses = is_.text("SKYPILOT_NODE_IPS").value_or("");
    int lines = addresses.empty() || addresses.back() == '\n' ? 0 : 1;
    for (char const c : addresses) lines += c == '\n' ? 1 : 0;
    if (lines != world.size) {
      refuse("SKYPILOT_NODE_IPS has " + std::to_string(lines) +
                 " addresses, and SKYPILOT_NUM_NODES is " + std::to_string(world.size),
             "each machine has one address", "Leave both as SkyPilot sets them.");
    }
    world.host = addresses.substr(0, addresses.find('\n'));
    world.launcher = "SkyPilot";
    return world;
  }

  /// In a batch script SLURM names its tasks, and srun alone starts them.
  void refuse_batch_script() const {
    int const tasks = is_.number("SLURM_NTASKS").value_or(1);
    if (!is_.has("SLURM_JOB_ID") || tasks == 1) return;
    refuse("the job has " + std::to_string(tasks) + " tasks, and srun has not started this process",
           "a batch script starts a program once, and the other tasks would be paid for and idle",
           "Start the program with srun, or with torchrun.");
  }

  /// Without the brackets of an IPv6 address. The port has a variable of its own.
  static std::string address_of(std::string const& host) {
    std::size_t const end = host.find(']');
    bool const in_brackets = host.starts_with("[") && end != std::string::npos;
    bool const has_port = in_brackets ? end + 1 != host.size() : std::ranges::count(host, ':') == 1;
    if (has_port) {
      refuse("MASTER_ADDR is '" + host + "'", "it has a port, or something else, after the address",
             "Set MASTER_ADDR to the address alone, and MASTER_PORT to the port.");
    }
    return in_brackets ? host.substr(1, end - 1) : host;
  }

  static void require_same(World const& variables, World const& launcher) {
    if (variables.rank == launcher.rank && variables.size == launcher.size) return;
    refuse("RANK and WORLD_SIZE are " + place(variables) + ", and " + launcher.launcher + " says " +
               place(launcher),
           "the processes would wait for ranks that do not exist",
           "Unset RANK and WORLD_SIZE, or start the processes with one launcher.");
  }

  static void require_rank(World const& world) {
    if (world.rank < world.size) return;
    refuse("rank " + std::to_string(world.rank) + " of a world of " + std::to_string(world.size) +
               " processes",
           "ranks are numbered from 0 to the world size - 1 (" + world.launcher + ")",
           "Correct the rank or the world size.");
  }

  [[noreturn]] static void refuse_without_address(World const& world) {
    refuse("MASTER_ADDR is not set",
           std::to_string(world.size) + " processes (" + world.launcher +
               ") must know where rank 0 runs, to meet there",
           "Set MASTER_ADDR to the address of rank 0's machine, and MASTER_PORT to a free port.");
  }

  static std::string place(World const& world) {
    return std::to_string(world.rank) + " of " + std::to_string(world.size);
  }

  [[noreturn]] static void refuse(std::string what, std::string why, std::string fix) {
    throw SettingsError({.what = std::move(what),
                         .where = "World::from_environment",
                         .why = std::move(why),
                         .fix = std::move(fix)});
  }

  Variables is_;
};

}  // namespace frugal::detail

namespace frugal {

FRUGAL_INLINE World World::from_environment(ReadVariable read) {
  return detail::WorldReader(std::move(read)).read();
}

}  // namespace frugal
