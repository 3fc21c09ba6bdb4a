// SPDX-License-Identifier: Apache-2.0
// Files of torch.save with any pickle. Files that Python writes are in tests/interop/weights.py.
#pragma once

#include <caffe2/serialize/inline_container.h>

#include "support/pickle.hpp"

#include <filesystem>
#include <map>
#include <string>
#include <vector>

namespace frugal_test::support {

inline void write_torch_file(std::filesystem::path const& path, std::string const& pickle,
                             std::map<std::string, std::string> const& storages,
                             bool compressed = false) {
  caffe2::serialize::PyTorchStreamWriter writer(path.string());
  writer.writeRecord("data.pkl", pickle.data(), pickle.size());
  writer.writeRecord("byteorder", "little", 6);
  for (auto const& [key, bytes] : storages) {
    writer.writeRecord("data/" + key, bytes.data(), bytes.size(), compressed);
  }
  writer.writeEndOfFile();
}

inline std::string bytes_of_floats(std::vector<float> const& values) {
  return {reinterpret_cast<char const*>(values.data()), values.size() * sizeof(float)};
}

}  // namespace frugal_test::support
