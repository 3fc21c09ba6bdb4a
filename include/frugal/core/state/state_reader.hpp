// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <variant>

#include <frugal/core/state/archive_path.hpp>
#include <frugal/core/state/state_dict.hpp>
#include <frugal/core/state/tensor_part.hpp>

namespace frugal {

/// Loads from a StateDict. Throws StateError, naming the value, if it is missing, does not fit, or has
/// been loaded before: load_again(), or another reader, loads it again.
class StateReader {
 public:
  static constexpr bool loading = true;

  bool of_a_snapshot = false;  ///< see Snapshot::persist
  /// The state was saved by another recipe: a snapshot of the run that a State has kept no longer
  /// fits, and the State must do without it.
  bool recipe_changed = false;
  /// Validation sources whose data are not those of the saved state, as Checkpoint::changed_data
  /// allows; the source without a name is "".
  std::set<std::string, std::less<>> other_validation{};

  /// Whether a best value of this metric was measured on other validation data, so that `who` must
  /// forget it. The run advises of it.
  bool forgets(std::string const& who, std::string_view metric);
  std::set<std::string> const& forgotten() const { return forgotten_; }

  /// `to`: the run moves to this device. A tensor that is elsewhere is reallocated on it; a tensor
  /// that a State leaves undefined before loading stays where it was saved.
  explicit StateReader(StateDict const& memory, std::optional<c10::Device> to = std::nullopt)
      : memory_(memory), to_(to) {}

  /// The target device if this load is a move, for a State with numbers on a device; nothing for a
  /// plain load.
  std::optional<c10::Device> moves_to() const { return to_; }

  /// The first value, by path, that was not loaded; nothing if all were. Values marked as
  /// dispensable are not counted. `scope`: only the values in it.
  std::optional<std::string> unread(std::string const& scope = {}) const;
  /// Whether a value of this scope has been loaded.
  bool has_read(std::string const& scope) const;
  /// Nobody will ask for the values of this scope.
  void pass_over(std::string const& scope);
  /// Values that have been loaded may be loaded once more; unread() still counts them as loaded.
  void load_again();

  /// Whether there is a value with this name here.
  bool holds(std::string const& name) const;

  /// Whether a scope with this name has anything to load. Always false in a move, which is no
  /// resume: the State already has what it needs.
  bool has(std::string const& scope) const;

  template <class T>
  void operator()(std::string const& name, T& value) {
    std::string const path = path_(name);
    require_first(path);
    load(path, value);
  }
  template <class F>
  void scope(std::string const& name, F&& body) {
    path_.scope(name, *this, body);
  }
  /// Takes the part of a tensor that was saved whole, or a part that was saved as it is. StateError
  /// for other shapes.
  void part(std::string const& name, at::Tensor& mine, TensorPart const& which);

 private:
  template <class T>
  void load(std::string const& path, T& value) {
    if constexpr (std::is_same_v<T, at::Tensor>) {
      if (is_absent(path)) {
        value = at::Tensor();
      } else {
        load_tensor(path, value);
      }
    } else if constexpr (requires { value.has_value(); }) {
      if (is_absent(path)) {
        value.reset();
      } else {
        if (!value) value.emplace();  // an existing tensor is filled
        load(path, *value);
      }
    } else if constexpr (detail::ListOfValues<T>) {
      std::uint64_t const size = list_size(path);
      value.resize(size);
      for (std::size_t i = 0; i < size; ++i) {
        typename T::value_type item = value[i];
        std::string const item_path = detail::item_path(path, i);
        require_first(item_path);
        load(item_path, item);
        value[i] = item;
      }
    } else if constexpr (std::is_same_v<T, bool>) {
      value = truth_value(path);
    } else if constexpr (std::is_floating_point_v<T>) {
      value = static_cast<T>(real_number(path));
    } else if constexpr (std::is_integral_v<T> && std::is_signed_v<T>) {
      value = narrow<T>(path, signed_integer(path));
    } else if constexpr (std::is_integral_v<T>) {
      value = narrow<T>(path, unsigned_integer(path));
    } else {
      value = text(path);
    }
  }

  bool is_dispensable(std::string const& path) const;
  /// StateError for a path that has been loaded.
  void require_first(std::string const& path) const;
  bool is_read(std::string_view path) const {
    return read_.contains(path) || before_.contains(path);
  }

  StateDict::Value const& at(std::string const& path);
  // One function for each type, so that programs compile nothing of the variant.
  bool is_absent(std::string const& path);
  bool truth_value(std::string const& path);
  double real_number(std::string const& path);
  std::int64_t signed_integer(std::string const& path);
  std::uint64_t unsigned_integer(std::string const& path);
  std::string text(std::string const& path);
  std::uint64_t list_size(std::string const& path);
  template <class T>
  T get(std::string const& path, char const* what) {
    StateDict::Value const& saved = at(path);
    if (T const* const value = std::get_if<T>(&saved)) return *value;
    // Text does not distinguish signed from unsigned integers.
    if constexpr (std::is_same_v<T, std::int64_t>) {
      auto const* const other = std::get_if<std::uint64_t>(&saved);
      if (other && std::in_range<T>(*other)) return static_cast<T>(*other);
    }
    refuse(path, std::string("the saved value is not ") + what);
  }
  template <class T, class U>
  static T narrow(std::string const& path, U value) {
    if (!std::in_range<T>(value)) refuse(path, "the number is too large for it");
    return static_cast<T>(value);
  }

  // An existing tensor keeps its memory: optimizers hold on to theirs.
  void load_tensor(std::string const& path, at::Tensor& value);
  void fill(std::string const& path, at::Tensor& value, at::Tensor const& source);

  [[noreturn]] static void refuse(std::string const& path, std::string const& why);

  StateDict const& memory_;
  std::optional<c10::Device> to_;
  std::set<std::string_view> read_;
  std::set<std::string_view> before_;  ///< read before the last load_again()
  std::set<std::string> forgotten_;
  detail::ArchivePath path_;
};

/// Whether a load finds that a best value was measured on other validation data: see
/// StateReader::forgets().
template <class Archive>
bool forgets_best(Archive& archive, std::string const& who, std::string_view metric) {
  if constexpr (requires { archive.forgets(who, metric); }) return archive.forgets(who, metric);
  return false;
}

/// The device to which an archive moves the run; nothing if it only loads or saves.
template <class Archive>
std::optional<c10::Device> destination(Archive const& archive) {
  if constexpr (requires { archive.moves_to(); }) return archive.moves_to();
  return std::nullopt;
}

}  // namespace frugal

#ifndef FRUGAL_COMPILED
#include <frugal/core/state/state_reader.ipp>
#endif
