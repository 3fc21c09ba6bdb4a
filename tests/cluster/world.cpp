// SPDX-License-Identifier: Apache-2.0
// torch-free
#include <doctest/doctest.h>

#include <frugal/cluster/world.hpp>

#include "support/files.hpp"

#include <sys/stat.h>

#include <filesystem>
#include <map>
#include <string>
#include <thread>

namespace frugal_test::cluster_world {

using frugal::SettingsError;
using frugal::World;
using All = std::map<std::string, std::string>;

World read(All const& all) {
  return World::from_environment([&all](char const* name) -> char const* {
    auto const found = all.find(name);
    return found == all.end() ? nullptr : found->second.c_str();
  });
}
World read(All all, All const& other) {
  for (auto const& [name, value] : other) all[name] = value;
  return read(all);
}

// What torchrun --nnodes 2 --nproc-per-node 2 gave its fourth process (torch 2.11).
All const torchrun{{"RANK", "3"},
                   {"WORLD_SIZE", "4"},
                   {"LOCAL_RANK", "1"},
                   {"LOCAL_WORLD_SIZE", "2"},
                   {"GROUP_RANK", "1"},
                   {"MASTER_ADDR", "10.0.0.7"},
                   {"MASTER_PORT", "29511"},
                   {"TORCHELASTIC_RUN_ID", "none"},
                   {"TORCHELASTIC_RESTART_COUNT", "2"},
                   {"TORCHELASTIC_USE_AGENT_STORE", "True"}};
// srun -N 2 --ntasks-per-node 2
All const srun{{"SLURM_JOB_ID", "4711"},
               {"SLURM_STEP_ID", "0"},
               {"SLURM_PROCID", "2"},
               {"SLURM_NTASKS", "4"},
               {"SLURM_STEP_NUM_TASKS", "4"},
               {"SLURM_LOCALID", "0"},
               {"SLURM_NODEID", "1"},
               {"SLURM_STEP_NODELIST", "gpu[07-08]"},
               {"SLURM_JOB_NODELIST", "gpu[05-08]"}};
All const sky{{"SKYPILOT_NODE_RANK", "1"},
              {"SKYPILOT_NUM_NODES", "2"},
              {"SKYPILOT_NODE_IPS", "172.16.0.4\n172.16.0.9"},
              {"SKYPILOT_NUM_GPUS_PER_NODE", "1"}};

TEST_CASE("without a launcher a process trains alone") {
  World const world = read(All{});
  CHECK(world.rank == 0);
  CHECK(world.size == 1);
  CHECK(world.text() == "one process, started by no launcher");
  // An allocation of SLURM with one task, and MASTER_ADDR alone, start nothing.
  CHECK(read({{"SLURM_JOB_ID", "1"}, {"SLURM_NTASKS", "1"}, {"MASTER_ADDR", "a"}}).size == 1);
}

TEST_CASE("torchrun") {
  World const world = read(torchrun);
  CHECK(world.rank == 3);
  CHECK(world.size == 4);
  CHECK(world.local_rank == 1);
  CHECK(world.agent_has_store);
  CHECK(world.restart == 2);
  CHECK(world.text() ==
        "rank 3 of 4 (torchrun), store at 10.0.0.7:29511, run by the launcher, restart 2");
}

TEST_CASE("torchrun's ranks count, whatever has started torchrun") {
  CHECK(read(torchrun, srun).text() == read(torchrun).text());
  CHECK(read(torchrun, sky).text() == read(torchrun).text());
  CHECK(read(torchrun, {{"SLURM_JOB_ID", "1"}, {"SLURM_NTASKS", "2"}}).rank == 3);
}

TEST_CASE("variables by hand, and PyTorchJob") {
  All const all{{"RANK", "0"}, {"WORLD_SIZE", "2"}, {"MASTER_ADDR", "job-master-0"}};
  CHECK(read(all).text() == "rank 0 of 2 (RANK and WORLD_SIZE), store at job-master-0:29500");
  CHECK(read(all, {{"KUBERNETES_SERVICE_HOST", "10.1.0.1"}}).launcher == "PyTorchJob");
  CHECK(read({{"RANK", "0"}, {"WORLD_SIZE", "1"}}).host == "127.0.0.1");
}

TEST_CASE("srun") {
  World const world = read(srun);
  CHECK(world.text() == "rank 2 of 4 (srun), store at gpu07:27110");
  CHECK(world.local_rank == 0);
  CHECK(read(srun, {{"SLURM_STEP_ID", "3"}}).port == 27113);
  CHECK(read(srun, {{"MASTER_ADDR", "login"}, {"MASTER_PORT", "9"}}).text() ==
        "rank 2 of 4 (srun), store at login:9");
  CHECK(read(srun, {{"SLURM_RESTART_COUNT", "1"}}).restart == 1);
  CHECK(read(srun, {{"RANK", "2"}, {"WORLD_SIZE", "4"}, {"MASTER_ADDR", "x"}}).rank == 2);
}

TEST_CASE("mpirun") {
  All const all{{"OMPI_COMM_WORLD_RANK", "1"},
                {"OMPI_COMM_WORLD_SIZE", "2"},
                {"OMPI_COMM_WORLD_LOCAL_RANK", "1"},
                {"MASTER_ADDR", "127.0.0.1"}};
  CHECK(read(all).text() == "rank 1 of 2 (mpirun), store at 127.0.0.1:29500");
  // Open MPI starts its daemons by srun.
  CHECK(read(all, {{"SLURM_STEP_ID", "0"}, {"SLURM_PROCID", "0"}, {"SLURM_NTASKS", "1"}}).rank ==
        1);
}

TEST_CASE("mpirun of MPICH, Intel MPI and MVAPICH2") {
  // What mpiexec.hydra -n 2 gave its second process (MPICH 4.0).
  All const all{{"PMI_RANK", "1"},
                {"PMI_SIZE", "2"},
                {"MPI_LOCALRANKID", "1"},
                {"MPI_LOCALNRANKS", "2"},
                {"MASTER_ADDR", "127.0.0.1"}};
  CHECK(read(all).text() == "rank 1 of 2 (mpirun (PMI)), store at 127.0.0.1:29500");
  CHECK(read(all).local_rank == 1);
  // Its proxies are started by srun, one on each machine.
  CHECK(read(all, srun).text() == read(all).text());
  // srun --mpi=pmi2 sets them itself.
  CHECK(read(srun, {{"PMI_RANK", "2"}, {"PMI_SIZE", "4"}}).text() == read(srun).text());
  CHECK(read(all, {{"RANK", "1"}, {"WORLD_SIZE", "2"}, {"SLURM_STEP_ID", "0"}}).size == 2);
  CHECK_THROWS_WITH_AS(read(all, {{"RANK", "0"}, {"WORLD_SIZE", "2"}}),
                       doctest::Contains("mpirun (PMI) says 1 of 2"), SettingsError);
  CHECK_THROWS_WITH_AS(read({{"PMI_SIZE", "2"}}),
                       doctest::Contains("PMI_SIZE is set, and PMI_RANK is not"), SettingsError);
  CHECK_THROWS_WITH_AS(read({{"PMI_RANK", "0"}, {"PMI_SIZE", "2"}}),
                       doctest::Contains("MASTER_ADDR is not set"), SettingsError);
  CHECK(read({{"MV2_COMM_WORLD_RANK", "1"},
              {"MV2_COMM_WORLD_SIZE", "2"},
              {"MV2_COMM_WORLD_LOCAL_RANK", "0"},
              {"MASTER_ADDR", "a"}})
            .text() == "rank 1 of 2 (mpirun (MVAPICH2)), store at a:29500");
}

TEST_CASE("an interactive step of SLURM has started nothing") {
  All const all{{"SLURM_JOB_ID", "1"},
                {"SLURM_STEP_ID", "4294967290"},
                {"SLURM_PROCID", "0"},
                {"SLURM_NTASKS", "1"},
                {"SLURM_STEP_NUM_TASKS", "1"}};
  CHECK(read(all).launcher == "one process");
  CHECK_THROWS_WITH_AS(read(all, {{"SLURM_NTASKS", "4"}}),
                       doctest::Contains("the job has 4 tasks, and srun has not started this"),
                       SettingsError);
}

TEST_CASE("addresses of IPv6, and addresses with a port") {
  auto const at = [](std::string const& host) {
    return read({{"RANK", "0"}, {"WORLD_SIZE", "2"}, {"MASTER_ADDR", host}});
  };
  CHECK(at("[::1]").host == "::1");
  CHECK(at("fe80::1").text() == "rank 0 of 2 (RANK and WORLD_SIZE), store at [fe80::1]:29500");
  for (std::string const host : {"[::1]:29500", "node7:29500"}) {
    CHECK_THROWS_WITH_AS(at(host), doctest::Contains("MASTER_PORT to the port"), SettingsError);
  }
}

TEST_CASE("SkyPilot") {
  CHECK(read(sky).text() == "rank 1 of 2 (SkyPilot), store at 172.16.0.4:29500");
  CHECK(read(sky, {{"SKYPILOT_NODE_IPS", "172.16.0.4\n172.16.0.9\n"}}).size == 2);
  CHECK_THROWS_WITH_AS(
      read(sky, {{"SKYPILOT_NUM_GPUS_PER_NODE", "8"}}),
      doctest::Contains("SkyPilot has started one process on a machine with 8 GPUs"),
      SettingsError);
  CHECK_THROWS_WITH_AS(
      read(sky, {{"SKYPILOT_NUM_NODES", "3"}}),
      doctest::Contains("SKYPILOT_NODE_IPS has 2 addresses, and SKYPILOT_NUM_NODES is 3"),
      SettingsError);
}

TEST_CASE("contradictions are errors, each with both values") {
  CHECK_THROWS_WITH_AS(read({{"RANK", "1"}}),
                       doctest::Contains("RANK is set, and WORLD_SIZE is not"), SettingsError);
  CHECK_THROWS_WITH_AS(read({{"WORLD_SIZE", "2"}}),
                       doctest::Contains("WORLD_SIZE is set, and RANK is not"), SettingsError);
  CHECK_THROWS_WITH_AS(read(torchrun, {{"RANK", "4"}}),
                       doctest::Contains("rank 4 of a world of 4 processes"), SettingsError);
  CHECK_THROWS_WITH_AS(read(torchrun, {{"LOCAL_RANK", "2"}}),
                       doctest::Contains("LOCAL_RANK is 2 and LOCAL_WORLD_SIZE is 2"),
                       SettingsError);
  CHECK_THROWS_WITH_AS(read(srun, {{"SLURM_PROCID", "9"}}),
                       doctest::Contains("rank 9 of a world of 4 processes"), SettingsError);
  CHECK_THROWS_WITH_AS(read(srun, {{"RANK", "0"}, {"WORLD_SIZE", "2"}, {"MASTER_ADDR", "x"}}),
                       doctest::Contains("RANK and WORLD_SIZE are 0 of 2, and srun says 2 of 4"),
                       SettingsError);
  CHECK_THROWS_WITH_AS(read({{"RANK", "0"}, {"WORLD_SIZE", "2"}}),
                       doctest::Contains("MASTER_ADDR is not set"), SettingsError);
  CHECK_THROWS_WITH_AS(
      read({{"SLURM_JOB_ID", "1"}, {"SLURM_PROCID", "0"}, {"SLURM_NTASKS", "4"}}),
      doctest::Contains("the job has 4 tasks, and srun has not started this process"),
      SettingsError);
}

TEST_CASE("a token is of the environment, and long") {
  CHECK(read(torchrun).token.empty());
  CHECK(read(torchrun, {{"FRUGAL_CLUSTER_TOKEN", "0123456789abcdef"}}).token == "0123456789abcdef");
  CHECK_THROWS_WITH_AS(read(torchrun, {{"FRUGAL_CLUSTER_TOKEN", "secret"}}),
                       doctest::Contains("the token of the run has 6 characters"), SettingsError);
  // One process talks to no other one.
  CHECK(read({{"FRUGAL_CLUSTER_TOKEN_FILE", "/nowhere"}}).token.empty());
}

TEST_CASE("or of a file that this user alone can read, which rank 0 makes") {
  support::TemporaryFolder const folder;
  std::filesystem::path const file = folder / "token";
  auto const of = [&](char const* rank, All other = {}) {
    other["FRUGAL_CLUSTER_TOKEN_FILE"] = file.string();
    other["RANK"] = rank;
    other["LOCAL_RANK"] = "0";
    return read(torchrun, other).token;
  };
  std::string waited;
  std::thread waits([&] { waited = of("3"); });
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  std::string const made = of("0");
  waits.join();
  CHECK(made.size() == 32);
  CHECK(waited == made);
  CHECK(of("0") == made);
  struct stat status{};
  REQUIRE(::stat(file.c_str(), &status) == 0);
  CHECK((status.st_mode & 0777) == 0600);
  CHECK(std::distance(std::filesystem::directory_iterator(folder.path()), {}) == 1);
  CHECK_THROWS_WITH_AS(of("0", {{"FRUGAL_CLUSTER_TOKEN", made + "x"}}),
                       doctest::Contains("a run has one token"), SettingsError);

  for (mode_t const mode : {0640U, 0604U, 0620U, 0666U}) {
    REQUIRE(::chmod(file.c_str(), mode) == 0);
    CHECK_THROWS_WITH_AS(of("0"), doctest::Contains("others can read or change the token"),
                         SettingsError);
  }
  REQUIRE(::chmod(file.c_str(), 0600) == 0);
  if (::geteuid() == 0) {
    REQUIRE(::chown(file.c_str(), 65534, 65534) == 0);
    CHECK_THROWS_WITH_AS(of("0"), doctest::Contains("the file belongs to another user"),
                         SettingsError);
    REQUIRE(::chown(file.c_str(), 0, 0) == 0);
  }
  std::filesystem::rename(file, folder / "other");
  std::filesystem::create_symlink(folder / "other", file);
  CHECK_THROWS_AS(of("0"), frugal::StoreError);
  std::filesystem::remove(file);
  REQUIRE(::mkfifo(file.c_str(), 0600) == 0);
  CHECK_THROWS_WITH_AS(of("0"), doctest::Contains("it is not a plain file"), SettingsError);
}

using frugal::detail::first_host;

// The first line of `scontrol show hostnames LIST`.
TEST_CASE("the first host of a SLURM list") {
  CHECK(first_host("node7") == "node7");
  CHECK(first_host("node7,node9") == "node7");
  CHECK(first_host("gpu[07-12,20],big3") == "gpu07");
  CHECK(first_host("gpu[3,5-9]") == "gpu3");
  CHECK(first_host("rack[1-2]node[03-04]") == "rack1node03");
  CHECK(first_host("gpu[1-2]-ib.cluster,x") == "gpu1-ib.cluster");
  CHECK(first_host("").empty());
}

using frugal::detail::Variables;

Variables of(std::map<std::string, std::string> const& all) {
  return Variables([all](char const* name) -> char const* {
    auto const found = all.find(name);
    return found == all.end() ? nullptr : found->second.c_str();
  });
}

TEST_CASE("numbers of the environment") {
  Variables const all = of({{"RANK", "3"}, {"EMPTY", ""}, {"PORT", "70000"}, {"WORD", "3x"}});
  CHECK(all.number("RANK") == 3);
  CHECK(all.require("RANK", "WORLD_SIZE") == 3);
  CHECK_FALSE(all.has("EMPTY"));
  CHECK_FALSE(all.number("MISSING"));
  CHECK_THROWS_WITH_AS(all.number("PORT", 1, 65535),
                       doctest::Contains("PORT is '70000' (World::from_environment): it must be a "
                                         "whole number from 1 to 65535"),
                       SettingsError);
  CHECK_THROWS_WITH_AS(all.number("WORD"), doctest::Contains("WORD is '3x'"), SettingsError);
  CHECK_THROWS_WITH_AS(all.number("RANK", 4), doctest::Contains("a whole number from 4 on"),
                       SettingsError);
  CHECK_THROWS_WITH_AS(
      all.require("WORLD_SIZE", "RANK"),
      doctest::Contains("RANK is set, and WORLD_SIZE is not (World::from_environment): a rank "
                        "without its world, or a world without the rank, starts another run than "
                        "the launcher meant. Set WORLD_SIZE too, or unset RANK to train in one "
                        "process."),
      SettingsError);
}

}  // namespace frugal_test::cluster_world
