// SPDX-License-Identifier: Apache-2.0
// torch-free
#include <doctest/doctest.h>

#include <frugal/cluster/world/host_list.hpp>

namespace frugal_test::cluster_host_list {

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

}  // namespace frugal_test::cluster_host_list
