// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

namespace gloo::rendezvous {

/// LibTorch's header overrides these inline; no object of this class is made from C++ here.
class Store {
 public:
  virtual ~Store();
  virtual void set(std::string const& key, std::vector<char> const& data) = 0;
  virtual std::vector<char> get(std::string const& key) = 0;
  virtual void wait(std::vector<std::string> const& keys) = 0;
  virtual void wait(std::vector<std::string> const& keys, std::chrono::milliseconds const&) = 0;
  virtual bool has_v2_support() = 0;
  virtual std::vector<std::vector<char>> multi_get(std::vector<std::string> const& keys) = 0;
  virtual void multi_set(std::vector<std::string> const& keys,
                         std::vector<std::vector<char>> const& values) = 0;
  virtual void append(std::string const& key, std::vector<char> const& value) = 0;
  virtual std::int64_t add(std::string const& key, std::int64_t value) = 0;
};

}  // namespace gloo::rendezvous
