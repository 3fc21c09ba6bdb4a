// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/ATen.h>

#include <cmath>
#include <cstring>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <sstream>
#include <string>
#include <type_traits>
#include <vector>

#include <frugal/error.hpp>

namespace frugal {

/// Persisted state in memory: numbers and strings as JSON, tensors by name.
///
/// The archive protocol that every State's persist() speaks:
///     archive("name", value);                     // both ways: saves, or loads into value
///     archive.scope("name", [&](auto& inner) {}); // a part with names of its own
///     Archive::loading                            // which way it goes
/// Values: bool, integers, floating point (NaN and infinities included), std::string,
/// at::Tensor, std::optional and std::vector of these.
struct Memory {
  nlohmann::json values = nlohmann::json::object();
  std::map<std::string, at::Tensor> tensors;

  /// Same values, and tensors with the same bits.
  friend bool operator==(Memory const& a, Memory const& b) {
    if (a.values != b.values || a.tensors.size() != b.tensors.size()) return false;
    for (auto const& [name, tensor] : a.tensors) {
      auto const other = b.tensors.find(name);
      if (other == b.tensors.end() || !same_bits(tensor, other->second)) return false;
    }
    return true;
  }

 private:
  static bool same_bits(at::Tensor const& a, at::Tensor const& b) {
    if (a.scalar_type() != b.scalar_type() || a.sizes() != b.sizes()) return false;
    at::Tensor const left = a.cpu().contiguous();
    at::Tensor const right = b.cpu().contiguous();
    return std::memcmp(left.const_data_ptr(), right.const_data_ptr(), left.nbytes()) == 0;
  }
};

/// Saves into a Memory. Tensors are copied: later steps do not change what was saved.
class MemoryWriter {
 public:
  static constexpr bool loading = false;

  explicit MemoryWriter(Memory& memory) : memory_(memory) {}

  template <class T>
  void operator()(std::string const& name, T const& value) {
    memory_.values[path_ + name] = encode(path_ + name, value);
  }
  template <class F>
  void scope(std::string const& name, F&& body) {
    std::string const outer = path_;
    path_ += name + "/";
    body(*this);
    path_ = outer;
  }

 private:
  template <class T>
  nlohmann::json encode(std::string const& path, T const& value) {
    if constexpr (std::is_same_v<T, at::Tensor>) {
      if (!value.defined()) return nullptr;
      memory_.tensors[path] = value.detach().clone();
      return "tensor";
    } else if constexpr (std::is_floating_point_v<T>) {
      // JSON has no words for these.
      if (std::isnan(value)) return "nan";
      if (std::isinf(value)) return value > 0 ? "inf" : "-inf";
      return value;
    } else if constexpr (requires { value.has_value(); }) {
      return value ? encode(path, *value) : nlohmann::json(nullptr);
    } else if constexpr (requires { typename T::value_type; } && !std::is_same_v<T, std::string>) {
      nlohmann::json items = nlohmann::json::array();
      for (std::size_t i = 0; i < value.size(); ++i) {
        items.push_back(encode<typename T::value_type>(path + "." + std::to_string(i), value[i]));
      }
      return items;
    } else {
      return value;
    }
  }

  Memory& memory_;
  std::string path_;
};

/// Loads from a Memory. Throws StateError, naming the value, when it is missing or does not fit.
class MemoryReader {
 public:
  static constexpr bool loading = true;

  explicit MemoryReader(Memory const& memory) : memory_(memory) {}

  template <class T>
  void operator()(std::string const& name, T& value) {
    std::string const path = path_ + name;
    auto const found = memory_.values.find(path);
    if (found == memory_.values.end()) refuse(path, "it was not saved");
    try {
      decode(path, *found, value);
    } catch (nlohmann::json::exception const& error) {
      refuse(path, error.what());
    }
  }
  template <class F>
  void scope(std::string const& name, F&& body) {
    std::string const outer = path_;
    path_ += name + "/";
    body(*this);
    path_ = outer;
  }

 private:
  template <class T>
  void decode(std::string const& path, nlohmann::json const& from, T& value) {
    if constexpr (std::is_same_v<T, at::Tensor>) {
      if (from.is_null()) {
        value = at::Tensor();
        return;
      }
      decode_tensor(path, value);
    } else if constexpr (std::is_floating_point_v<T>) {
      value = from.is_string() ? static_cast<T>(std::stod(from.get<std::string>())) : from.get<T>();
    } else if constexpr (requires { value.has_value(); }) {
      if (from.is_null()) {
        value.reset();
      } else {
        decode(path, from, value.emplace());
      }
    } else if constexpr (requires { typename T::value_type; } && !std::is_same_v<T, std::string>) {
      if (!from.is_array()) refuse(path, "it is no list");
      value.resize(from.size());
      for (std::size_t i = 0; i < from.size(); ++i) {
        typename T::value_type item = value[i];
        decode(path + "." + std::to_string(i), from[i], item);
        value[i] = item;
      }
    } else {
      value = from.get<T>();
    }
  }

  // A tensor that is already there keeps its place in memory: optimizers hold on to theirs.
  void decode_tensor(std::string const& path, at::Tensor& value) {
    auto const saved = memory_.tensors.find(path);
    if (saved == memory_.tensors.end()) refuse(path, "its tensor was not saved");
    at::Tensor const& source = saved->second;
    if (!value.defined()) {
      value = source.clone();
      return;
    }
    if (value.sizes() != source.sizes() || value.scalar_type() != source.scalar_type()) {
      std::ostringstream why;
      why << "saved as " << source.sizes() << ' ' << source.scalar_type() << ", here it is "
          << value.sizes() << ' ' << value.scalar_type();
      refuse(path, why.str());
    }
    at::NoGradGuard const no_gradient;
    value.copy_(source);
  }

  [[noreturn]] static void refuse(std::string const& path, std::string const& why) {
    throw StateError({.what = "saved state does not fit",
                      .where = path,
                      .why = why,
                      .mend = "Resume with the model and recipe that saved it."});
  }

  Memory const& memory_;
  std::string path_;
};

}  // namespace frugal
