// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <charconv>
#include <cstdlib>
#include <functional>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include <frugal/error.hpp>

namespace frugal {

/// Value of an environment variable; null if it is not set.
using ReadVariable = std::function<char const*(char const* name)>;

namespace detail {

/// The environment variables of a launcher. An empty one counts as not set.
class Variables {
 public:
  explicit Variables(ReadVariable read) : read_(std::move(read)) {}

  bool has(char const* name) const { return text(name).has_value(); }
  std::optional<std::string> text(char const* name) const {
    char const* const value = read_(name);
    if (value == nullptr || *value == '\0') return std::nullopt;
    return value;
  }
  /// Throws SettingsError for anything but a whole number within the limits.
  std::optional<int> number(char const* name, int least = 0,
                            int most = std::numeric_limits<int>::max()) const {
    std::optional<std::string> const value = text(name);
    if (!value) return std::nullopt;
    int number = 0;
    auto const [end, error] = std::from_chars(value->data(), value->data() + value->size(), number);
    if (error == std::errc{} && end == value->data() + value->size() && number >= least &&
        number <= most)
      return number;
    throw SettingsError(
        {.what = std::string(name) + " is '" + *value + "'",
         .where = "World::from_environment",
         .why = "it must be a whole number from " + std::to_string(least) +
                (most == std::numeric_limits<int>::max() ? " on" : " to " + std::to_string(most)),
         .fix = "Start the processes with torchrun, srun, mpirun or SkyPilot, "
                "which set it, or correct it."});
  }
  /// Throws SettingsError if it is not set. `with` is the variable that demands it.
  int require(char const* name, char const* with, int least = 0) const {
    if (std::optional<int> const value = number(name, least)) return *value;
    throw SettingsError({.what = std::string(with) + " is set, and " + name + " is not",
                         .where = "World::from_environment",
                         .why = "a rank without its world, or a world without the rank, starts "
                                "another run than the launcher meant",
                         .fix = std::string("Set ") + name + " too, or unset " + with +
                                " to train in one process."});
  }

 private:
  ReadVariable read_;
};

}  // namespace detail
}  // namespace frugal
