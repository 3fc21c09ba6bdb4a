// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <csignal>

namespace frugal::detail {

/// For its lifetime, a write to a pipe without a reader fails with EPIPE in this thread and has no
/// other effect. The process's own handling of SIGPIPE, which by default ends it, is unchanged, and
/// so is errno.
class [[nodiscard]] SigpipeGuard {
 public:
  SigpipeGuard();
  ~SigpipeGuard();
  SigpipeGuard(SigpipeGuard const&) = delete;
  SigpipeGuard& operator=(SigpipeGuard const&) = delete;

 private:
  sigset_t set_{};
  sigset_t before_{};
  bool blocks_ = false;
};

}  // namespace frugal::detail

#ifndef FRUGAL_COMPILED
#include <frugal/base/sigpipe_guard.ipp>
#endif
