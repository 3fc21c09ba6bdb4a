// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>

#include <bit>
#include <cstdint>
#include <cstring>
#include <map>
#include <optional>
#include <set>
#include <sstream>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include <frugal/error.hpp>

namespace frugal {

/// Persisted state in memory: numbers and strings by path, tensors by path.
///
/// The archive protocol that every State's persist() speaks:
///     archive("name", value);                     // both ways: saves, or loads into value
///     archive.scope("name", [&](auto& inner) {}); // a part with names of its own
///     Archive::loading                            // which way it goes
/// Values: bool, integers, floating point (NaN and infinities included), std::string,
/// at::Tensor, std::optional and std::vector of these.
///
/// A path is the scopes and the name, "policies/EarlyStop/best"; a list has its length under its
/// path and its items under "path.0", "path.1", ...
struct Memory {
  /// std::monostate is an empty optional or an undefined tensor.
  using Value =
      std::variant<std::monostate, bool, std::int64_t, std::uint64_t, double, std::string>;

  std::map<std::string, Value> values;
  std::map<std::string, at::Tensor> tensors;

  /// Same values, and numbers and tensors with the same bits: a NaN equals itself.
  friend bool operator==(Memory const& a, Memory const& b) {
    if (a.values.size() != b.values.size() || a.tensors.size() != b.tensors.size()) return false;
    for (auto const& [path, value] : a.values) {
      auto const other = b.values.find(path);
      if (other == b.values.end() || !same_bits(value, other->second)) return false;
    }
    for (auto const& [path, tensor] : a.tensors) {
      auto const other = b.tensors.find(path);
      if (other == b.tensors.end() || !same_bits(tensor, other->second)) return false;
    }
    return true;
  }

 private:
  // std::variant's own comparison costs whoever includes this a table of functions.
  static bool same_bits(Value const& a, Value const& b) {
    if (a.index() != b.index()) return false;
    if (auto const* const left = std::get_if<double>(&a)) {
      return std::bit_cast<std::uint64_t>(*left) ==
             std::bit_cast<std::uint64_t>(*std::get_if<double>(&b));
    }
    return same<bool>(a, b) && same<std::int64_t>(a, b) && same<std::uint64_t>(a, b) &&
           same<std::string>(a, b);
  }
  template <class T>
  static bool same(Value const& a, Value const& b) {
    T const* const left = std::get_if<T>(&a);
    return left == nullptr || *left == *std::get_if<T>(&b);
  }
  static bool same_bits(at::Tensor const& a, at::Tensor const& b) {
    if (a.scalar_type() != b.scalar_type() || a.sizes() != b.sizes()) return false;
    at::Tensor const left = a.cpu().contiguous();
    at::Tensor const right = b.cpu().contiguous();
    return std::memcmp(left.const_data_ptr(), right.const_data_ptr(), left.nbytes()) == 0;
  }
};

namespace detail {

template <class T>
concept ListOfValues = requires(T& list) {
  typename T::value_type;
  list.resize(1);
} && !std::is_same_v<T, std::string>;

// Appended piece by piece: g++ 12 sees overlapping copies in "a" + std::string where none are
// (GCC bug 105651), and people build with -Werror.
inline std::string item_path(std::string const& path, std::size_t index) {
  std::string item = path;
  item.push_back('.');
  return item.append(std::to_string(index));
}

/// The path of what is being archived.
class ArchivePath {
 public:
  template <class Archive, class F>
  void scope(std::string const& name, Archive& archive, F&& body) {
    std::string const outer = path_;
    path_.append(name).push_back('/');
    body(archive);
    path_ = outer;
  }
  std::string operator()(std::string const& name) const { return path_ + name; }

 private:
  std::string path_;
};

}  // namespace detail

/// Where a MemoryWriter puts tensors.
enum class Copies {
  beside,   ///< copied on their own device
  on_host,  ///< copied into host memory, page-locked for tensors of a device; see settle()
  none,     ///< as they are, if they lie in host memory without gaps; else as on_host
};

/// Saves into a Memory. Tensors are copied unless it is told otherwise: later steps do not change
/// what was saved. A copy that the Memory already has at that path, of that shape and type, is
/// filled again: who saves often into one Memory allocates once.
class MemoryWriter {
 public:
  static constexpr bool loading = false;

  /// `floats`: the type that floating-point tensors are stored in, or Undefined for their own.
  explicit MemoryWriter(Memory& memory, Copies copies = Copies::beside,
                        at::ScalarType floats = at::ScalarType::Undefined)
      : memory_(memory), copies_(copies), floats_(floats) {}

  template <class T>
  void operator()(std::string const& name, T const& value) {
    save(path_(name), value);
  }
  template <class F>
  void scope(std::string const& name, F&& body) {
    path_.scope(name, *this, body);
  }

 private:
  template <class T>
  void save(std::string const& path, T const& value) {
    if constexpr (std::is_same_v<T, at::Tensor>) {
      memory_.values[path] = {};
      if (!value.defined()) return;
      memory_.values[path] = std::string("tensor");
      keep(memory_.tensors[path], value.detach());
    } else if constexpr (requires { value.has_value(); }) {
      if (value) {
        save(path, *value);
      } else {
        memory_.values[path] = {};
      }
    } else if constexpr (detail::ListOfValues<T>) {
      memory_.values[path] = static_cast<std::uint64_t>(value.size());
      for (std::size_t i = 0; i < value.size(); ++i) {
        save<typename T::value_type>(detail::item_path(path, i), value[i]);
      }
    } else if constexpr (std::is_same_v<T, bool>) {
      memory_.values[path] = value;
    } else if constexpr (std::is_floating_point_v<T>) {
      memory_.values[path] = static_cast<double>(value);
    } else if constexpr (std::is_integral_v<T> && std::is_signed_v<T>) {
      memory_.values[path] = static_cast<std::int64_t>(value);
    } else if constexpr (std::is_integral_v<T>) {
      memory_.values[path] = static_cast<std::uint64_t>(value);
    } else {
      memory_.values[path] = std::string(value);
    }
  }

  void keep(at::Tensor& kept, at::Tensor const& value) {
    at::ScalarType const type = floats_ != at::ScalarType::Undefined && value.is_floating_point()
                                    ? floats_
                                    : value.scalar_type();
    // A tensor around somebody's bytes (from_blob) has no allocator, and may outlive them.
    if (copies_ == Copies::none && value.is_cpu() && value.is_contiguous() &&
        type == value.scalar_type() && value.storage().allocator() != nullptr) {
      kept = value;
      return;
    }
    at::Device const device = copies_ == Copies::beside ? value.device() : at::Device(at::kCPU);
    // Page-locked memory alone is copied to while the device goes on to the next tensor.
    bool const page_locked = device.is_cpu() && !value.is_cpu();
    bool const fits = kept.defined() && kept.scalar_type() == type && kept.device() == device &&
                      kept.sizes() == value.sizes() && (!page_locked || kept.is_pinned());
    if (!fits || copies_ == Copies::none) {
      kept = at::empty(value.sizes(),
                       value.options().dtype(type).device(device).pinned_memory(page_locked));
    }
    kept.copy_(value, /*non_blocking=*/!value.is_cpu());
  }

  Memory& memory_;
  Copies copies_;
  at::ScalarType floats_;
  detail::ArchivePath path_;
};

/// Loads from a Memory. Throws StateError, naming the value, when it is missing or does not fit.
class MemoryReader {
 public:
  static constexpr bool loading = true;

  /// `to`: the run moves to this device. A tensor that is there elsewhere is made anew on it; one
  /// that a State leaves undefined before it is loaded stays where it was saved.
  explicit MemoryReader(Memory const& memory, std::optional<c10::Device> to = std::nullopt)
      : memory_(memory), to_(to) {}

  /// Where the run moves in this very call, for a State with numbers that lie on a device; nothing
  /// where it is only loaded.
  std::optional<c10::Device> moves_to() const { return to_; }

  /// The first value, by path, that nobody has asked for; nothing if all were loaded. What is
  /// marked as dispensable need not be.
  std::optional<std::string> unread() const {
    for (auto const& [path, value] : memory_.values) {
      if (!read_.contains(path) && !is_dispensable(path)) return path;
    }
    return std::nullopt;
  }

  /// Is there a value of this name here?
  bool holds(std::string const& name) const { return memory_.values.contains(path_(name)); }

  /// Is there anything in a scope of this name to load? Not in a move, which is no resume: who only
  /// shows has what it needs.
  bool has(std::string const& scope) const {
    if (to_) return false;
    std::string const prefix = path_(scope) + "/";
    auto const first = memory_.values.lower_bound(prefix);
    return first != memory_.values.end() && first->first.starts_with(prefix);
  }

  template <class T>
  void operator()(std::string const& name, T& value) {
    load(path_(name), value);
  }
  template <class F>
  void scope(std::string const& name, F&& body) {
    path_.scope(name, *this, body);
  }

 private:
  template <class T>
  void load(std::string const& path, T& value) {
    Memory::Value const& saved = at(path);
    bool const absent = std::holds_alternative<std::monostate>(saved);
    if constexpr (std::is_same_v<T, at::Tensor>) {
      if (absent) {
        value = at::Tensor();
      } else {
        load_tensor(path, value);
      }
    } else if constexpr (requires { value.has_value(); }) {
      if (absent) {
        value.reset();
      } else {
        if (!value) value.emplace();  // a tensor that is there is filled
        load(path, *value);
      }
    } else if constexpr (detail::ListOfValues<T>) {
      std::uint64_t const size = get<std::uint64_t>(path, "a list");
      value.resize(size);
      for (std::size_t i = 0; i < size; ++i) {
        typename T::value_type item = value[i];
        load(detail::item_path(path, i), item);
        value[i] = item;
      }
    } else if constexpr (std::is_same_v<T, bool>) {
      value = get<bool>(path, "a truth value");
    } else if constexpr (std::is_floating_point_v<T>) {
      value = static_cast<T>(get<double>(path, "a real number"));
    } else if constexpr (std::is_integral_v<T> && std::is_signed_v<T>) {
      value = narrow<T>(path, get<std::int64_t>(path, "a signed integer"));
    } else if constexpr (std::is_integral_v<T>) {
      value = narrow<T>(path, get<std::uint64_t>(path, "an unsigned integer"));
    } else {
      value = get<std::string>(path, "a text");
    }
  }

  bool is_dispensable(std::string const& path) const {
    for (auto end = path.find('/'); end != std::string::npos; end = path.find('/', end + 1)) {
      if (memory_.values.contains(path.substr(0, end + 1) + "dispensable")) return true;
    }
    return false;
  }

  Memory::Value const& at(std::string const& path) {
    auto const found = memory_.values.find(path);
    if (found == memory_.values.end()) refuse(path, "it was not saved");
    read_.insert(found->first);
    return found->second;
  }
  template <class T>
  T get(std::string const& path, char const* what) {
    Memory::Value const& saved = at(path);
    if (T const* const value = std::get_if<T>(&saved)) return *value;
    // A file of numbers does not tell the two kinds of integers apart.
    if constexpr (std::is_same_v<T, std::int64_t>) {
      auto const* const other = std::get_if<std::uint64_t>(&saved);
      if (other && std::in_range<T>(*other)) return static_cast<T>(*other);
    }
    refuse(path, std::string("what was saved is not ") + what);
  }
  template <class T, class U>
  static T narrow(std::string const& path, U value) {
    if (!std::in_range<T>(value)) refuse(path, "the number is too large for it");
    return static_cast<T>(value);
  }

  // A tensor that is already there keeps its place in memory: optimizers hold on to theirs.
  void load_tensor(std::string const& path, at::Tensor& value) {
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
    if (to_ && value.device() != *to_) {
      value = at::empty_like(value, at::TensorOptions().device(*to_), at::MemoryFormat::Preserve);
    }
    value.copy_(source);
  }

  [[noreturn]] static void refuse(std::string const& path, std::string const& why) {
    throw StateError({.what = "saved state does not fit",
                      .where = path,
                      .why = why,
                      .mend = "Resume with the model and recipe that saved it."});
  }

  Memory const& memory_;
  std::optional<c10::Device> to_;
  std::set<std::string_view> read_;
  detail::ArchivePath path_;
};

/// Where an archive moves the run that it loads; nothing with one that only loads or saves.
template <class Archive>
std::optional<c10::Device> destination(Archive const& archive) {
  if constexpr (requires { archive.moves_to(); }) return archive.moves_to();
  return std::nullopt;
}

/// Archives a Memory inside another one.
template <class Archive>
void persist_memory(Archive& archive, Memory& memory) {
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
      Memory::Value& value = memory.values[paths[i]];
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
