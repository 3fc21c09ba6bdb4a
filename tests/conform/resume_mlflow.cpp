// SPDX-License-Identifier: Apache-2.0
// needs: notices
// The same of a policy of another component, whose thread sends meanwhile.
#include <frugal/report/mlflow.hpp>

#include "conform/resuming.hpp"
#include "support/fake_mlflow.hpp"

#include <cstdlib>

namespace frugal_test::conform_resume {

TEST_CASE("a run resumed while it is sent to MLflow ends with the same bits") {
  FakeMlflowServer server;
  ::setenv("MLFLOW_TRACKING_URI", server.http.base().c_str(), 1);
  resumes(frugal::list<frugal::Optimize<frugal::SGD>, frugal::Mlflow<frugal::Every<2>>>{});
  ::unsetenv("MLFLOW_TRACKING_URI");
  CHECK(server.mlflow.runs.size() > 1);
}

}  // namespace frugal_test::conform_resume
