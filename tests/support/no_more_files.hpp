// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/resource.h>

#include <stdexcept>

namespace frugal_test::support {

/// During its lifetime the process may open no file whose descriptor would be `most` or above: as
/// if it had too many open files. Those that it has stay.
class NoMoreFiles {
 public:
  explicit NoMoreFiles(int most = 0) {
    if (::getrlimit(RLIMIT_NOFILE, &before_) != 0) throw std::runtime_error("getrlimit");
    rlimit const now{.rlim_cur = static_cast<rlim_t>(most), .rlim_max = before_.rlim_max};
    if (::setrlimit(RLIMIT_NOFILE, &now) != 0) throw std::runtime_error("setrlimit");
  }
  NoMoreFiles(NoMoreFiles const&) = delete;
  NoMoreFiles& operator=(NoMoreFiles const&) = delete;
  ~NoMoreFiles() { (void)::setrlimit(RLIMIT_NOFILE, &before_); }

 private:
  rlimit before_{};
};

/// Whether `body()` throws an E while no file can be opened. doctest's macros ask an exception for
/// its text, and the undefined-behaviour sanitizer needs a descriptor to look at the object.
template <class E, class Body>
bool throws_without_files(Body&& body) {
  NoMoreFiles const none;
  try {
    body();
  } catch (E const&) {
    return true;
  }
  return false;
}

}  // namespace frugal_test::support
