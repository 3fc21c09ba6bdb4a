// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/resource.h>

#include <csignal>

namespace frugal_test::support {

/// No file of this process grows above so many bytes, as on a full disk.
class FullDisk {
 public:
  explicit FullDisk(rlim_t bytes = 0) : ignored_(std::signal(SIGXFSZ, SIG_IGN)) {
    ::getrlimit(RLIMIT_FSIZE, &before_);
    rlimit less = before_;
    less.rlim_cur = bytes;
    ::setrlimit(RLIMIT_FSIZE, &less);
  }
  FullDisk(FullDisk const&) = delete;
  FullDisk& operator=(FullDisk const&) = delete;
  ~FullDisk() {
    ::setrlimit(RLIMIT_FSIZE, &before_);
    std::signal(SIGXFSZ, ignored_);
  }

 private:
  rlimit before_{};
  void (*ignored_)(int);
};

}  // namespace frugal_test::support
