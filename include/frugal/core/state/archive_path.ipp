// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/core/state/archive_path.hpp>
#include <frugal/inline.hpp>

namespace frugal::detail {

FRUGAL_INLINE std::string item_path(std::string const& path, std::size_t index) {
  std::string item = path;
  item.push_back('.');
  return item.append(std::to_string(index));
}

FRUGAL_INLINE std::string ArchivePath::operator()(std::string const& name) const {
  return path_ + name;
}

FRUGAL_INLINE ArchivePath::Inside::Inside(std::string& path, std::string const& name)
    : path_(path), outer_(path.size()) {
  path_.append(name).push_back('/');
}

FRUGAL_INLINE ArchivePath::Inside::~Inside() { path_.resize(outer_); }

}  // namespace frugal::detail
