// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fcntl.h>
#include <unistd.h>

#include <cinttypes>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <optional>

namespace frugal::detail {

/// How far a run is: the file `heartbeat` of its folder, written about twice a second. A run that
/// was killed has left in it what it had done beyond its last checkpoint, so that the next start
/// can say what was lost. Only ever a figure in a report: nothing hangs on it, no failure to write
/// it is an error, and it is not fsynced.
class Heartbeat {
 public:
  struct Beat {
    std::uint64_t step = 0;  ///< optimizer steps
    double seconds = 0;      ///< of training
  };

  Heartbeat() = default;
  explicit Heartbeat(std::filesystem::path const& path)
      : descriptor_(::open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0666)) {}
  Heartbeat(Heartbeat const&) = delete;
  Heartbeat& operator=(Heartbeat const&) = delete;
  ~Heartbeat() {
    if (descriptor_ >= 0) ::close(descriptor_);
  }

  void beat(Beat now) const {
    if (descriptor_ < 0) return;
    char text[64];
    int const size = std::snprintf(text, sizeof text, "step %020" PRIu64 " seconds %020.6f\n",
                                   now.step, now.seconds);
    // One write of one length at one place: a reader sees the last or the one before it.
    if (::pwrite(descriptor_, text, static_cast<std::size_t>(size), 0) != size) return;
  }

  /// Nothing where there is none, or none that reads.
  static std::optional<Beat> read(std::filesystem::path const& path) {
    std::FILE* const file = std::fopen(path.c_str(), "re");
    if (file == nullptr) return std::nullopt;
    Beat last;
    int const got = std::fscanf(file, "step %" SCNu64 " seconds %lf", &last.step, &last.seconds);
    std::fclose(file);
    if (got != 2) return std::nullopt;
    return last;
  }

 private:
  int descriptor_ = -1;
};

}  // namespace frugal::detail
