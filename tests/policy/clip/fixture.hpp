// SPDX-License-Identifier: Apache-2.0
// The gradients of tests/reference/clip.json.
#pragma once

#include "policy/optimize/fixture.hpp"

#include <memory>
#include <vector>

namespace frugal_test::policy_clip {

using namespace frugal_test::policy_optimize;

/// Parameters of zeros, of the shapes in the file.
inline std::shared_ptr<Parts> parts_of(Json const& file) {
  std::vector<at::Tensor> start;
  for (Json const& shape : file.at("shapes")) start.push_back(at::zeros(shape_in(shape)));
  return std::make_shared<Parts>(start);
}

/// Undefined for parameters without a gradient.
inline Table gradients_of(Json const& file, Json const& name) {
  Table table;
  Json const& gradients = file.at("gradients").at(name.get<std::string>());
  for (std::size_t i = 0; i < gradients.size(); ++i) {
    table.gradients.push_back(gradients[i].is_null()
                                  ? at::Tensor()
                                  : tensor_in(gradients[i], shape_in(file.at("shapes")[i])));
  }
  return table;
}

}  // namespace frugal_test::policy_clip
