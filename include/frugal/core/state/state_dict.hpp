// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/ATen.h>

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include <frugal/core/state/archive_path.hpp>

namespace frugal {

/// Persisted state in memory: numbers and strings by path, tensors by path.
///
/// The archive protocol that every State's persist() uses:
///    archive("name", value);                     // saves value, or loads into it
///    archive.part("name", tensor, which);        // a part of a tensor: see TensorPart
///    archive.scope("name", [&](auto& inner) {}); // a group with its own names
///    Archive::loading                            // the direction
/// Values: bool, integers, floating point (NaN and infinities included), std::string, at::Tensor,
/// std::optional and std::vector of these.
///
/// A path consists of the scopes and the name, "policies/EarlyStop/best"; a list stores its length
/// under its path and its items under "path.0", "path.1", ...
struct StateDict {
  /// std::monostate is an empty optional or an undefined tensor.
  using Value =
      std::variant<std::monostate, bool, std::int64_t, std::uint64_t, double, std::string>;

  std::map<std::string, Value> values;
  std::map<std::string, at::Tensor> tensors;

  /// Equal values, with numbers and tensors compared by their bits: a NaN equals itself.
  friend bool operator==(StateDict const& a, StateDict const& b);

 private:
  // std::variant's own comparison would instantiate a table of functions in every including file.
  static bool same_bits(Value const& a, Value const& b);
  template <class T>
  static bool same(Value const& a, Value const& b) {
    T const* const left = std::get_if<T>(&a);
    return left == nullptr || *left == *std::get_if<T>(&b);
  }
  static bool same_bits(at::Tensor const& a, at::Tensor const& b);
};

/// Archives a StateDict inside another one.
template <class Archive>
void persist_state_dict(Archive& archive, StateDict& memory) {
  std::vector<std::string> paths;
  std::vector<std::string> tensors;
  paths.reserve(memory.values.size());
  tensors.reserve(memory.tensors.size());
  for (auto const& [path, value] : memory.values) paths.push_back(path);
  for (auto const& [path, tensor] : memory.tensors) tensors.push_back(path);
  archive("paths", paths);
  archive("tensors", tensors);
  if (Archive::loading) memory = {};
  for (std::size_t i = 0; i < paths.size(); ++i) {
    archive.scope(detail::item_path("value", i), [&](auto& inner) {
      StateDict::Value& value = memory.values[paths[i]];
      std::uint64_t kind = value.index();
      inner("kind", kind);
      auto const as = [&]<class T>(T fresh) {
        if (!Archive::loading) fresh = std::get<T>(value);
        inner("is", fresh);
        value = std::move(fresh);
      };
      switch (kind) {
        case 1:
          return as(false);
        case 2:
          return as(std::int64_t{});
        case 3:
          return as(std::uint64_t{});
        case 4:
          return as(double{});
        case 5:
          return as(std::string());
        default:
          value = {};
      }
    });
  }
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    archive(detail::item_path("tensor", i), memory.tensors[tensors[i]]);
  }
}

}  // namespace frugal

#ifndef FRUGAL_COMPILED
#include <frugal/core/state/state_dict.ipp>
#endif
