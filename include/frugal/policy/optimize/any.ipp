// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/policy/optimize/any.hpp>

#include <frugal/inline.hpp>

#include <cstddef>
#include <cstdint>
#include <string>
#include <typeinfo>

namespace frugal::detail {

FRUGAL_INLINE bool is_of_torch(torch::optim::Optimizer const& optimizer) {
  std::type_info const& type = typeid(optimizer);
  return type == typeid(torch::optim::Adagrad) || type == typeid(torch::optim::Adam) ||
         type == typeid(torch::optim::AdamW) || type == typeid(torch::optim::LBFGS) ||
         type == typeid(torch::optim::RMSprop) || type == typeid(torch::optim::SGD);
}

FRUGAL_INLINE void save_by_place(torch::optim::Optimizer const& optimizer,
                                 torch::serialize::OutputArchive& archive) {
  if (!is_of_torch(optimizer)) {
    optimizer.save(archive);
    return;
  }
  using torch::serialize::OutputArchive;
  auto const count = [](std::size_t n) {
    return at::scalar_tensor(static_cast<std::int64_t>(n), at::kLong);
  };
  OutputArchive state(archive.compilation_unit());
  OutputArchive groups(archive.compilation_unit());
  groups.write("param_groups/size", count(optimizer.param_groups().size()));
  std::size_t index = 0;
  std::size_t number = 0;
  for (auto const& group : optimizer.param_groups()) {
    OutputArchive out(archive.compilation_unit());
    out.write("params/size", count(group.params().size()));
    for (std::size_t i = 0; i < group.params().size(); ++i) {
      std::string const key = std::to_string(++index);
      out.write("params/" + std::to_string(i), c10::IValue(key));
      auto const found = optimizer.state().find(group.params()[i].unsafeGetTensorImpl());
      if (found == optimizer.state().end()) continue;
      OutputArchive one(archive.compilation_unit());
      found->second->serialize(one);
      state.write(key, one);
    }
    OutputArchive options(archive.compilation_unit());
    group.options().serialize(options);
    out.write("options", options);
    groups.write("param_groups/" + std::to_string(number++), out);
  }
  archive.write("pytorch_version", c10::IValue("1.5.0"));  // LibTorch's mark of this form
  archive.write("state", state);
  archive.write("param_groups", groups);
}

}  // namespace frugal::detail
