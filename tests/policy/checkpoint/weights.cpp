// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <frugal/policy/checkpoint/weights.hpp>

#include <sstream>

namespace frugal_test::policy_checkpoint_weights {

TEST_CASE("the report of a load has one line per name without a counterpart") {
  frugal::LoadedWeights loaded;
  loaded.file = "runs/demo/model.safetensors";
  loaded.matched = {"first.weight", "first.bias"};
  CHECK(loaded.complete());
  loaded.missing = {"head.weight"};
  loaded.unexpected = {"classifier.weight"};
  CHECK_FALSE(loaded.complete());
  std::ostringstream out;
  out << loaded;
  CHECK(out.str() ==
        "2 tensors from runs/demo/model.safetensors\n"
        "missing: 'head.weight' is not in the file\n"
        "unexpected: 'classifier.weight' is not in the module");
}

}  // namespace frugal_test::policy_checkpoint_weights
