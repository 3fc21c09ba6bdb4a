// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>
#include <type_traits>

// Shared by the archives of core/state/state_writer.hpp and core/state/state_reader.hpp.
namespace frugal::detail {

template <class T>
concept ListOfValues = requires(T& list) {
  typename T::value_type;
  list.resize(1);
} && !std::is_same_v<T, std::string>;

// Appended piece by piece: g++ 12 falsely warns of overlapping copies in "a" + std::string (GCC bug
// 105651), and users build with -Werror.
std::string item_path(std::string const& path, std::size_t index);

/// The path of the value that is being archived.
class ArchivePath {
 public:
  template <class Archive, class F>
  void scope(std::string const& name, Archive& archive, F&& body) {
    Inside const inside(path_, name);
    body(archive);
  }
  std::string operator()(std::string const& name) const;

 private:
  /// Leaves the scope also if the body throws: a caller that loads several states may continue with
  /// the next one.
  class Inside {
   public:
    Inside(std::string& path, std::string const& name);
    Inside(Inside const&) = delete;
    Inside& operator=(Inside const&) = delete;
    ~Inside();

   private:
    std::string& path_;
    std::size_t outer_;  // the length of the path outside
  };

  std::string path_;
};

}  // namespace frugal::detail

#ifndef FRUGAL_COMPILED
#include <frugal/core/state/archive_path.ipp>
#endif
