// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <unistd.h>

#include <atomic>
#include <cstddef>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

namespace frugal_test::support {

/// A temporary folder, deleted with the test.
class TemporaryFolder {
 public:
  explicit TemporaryFolder(
      std::filesystem::path const& base = std::filesystem::temp_directory_path()) {
    static std::atomic<int> count{0};
    path_ = base / ("frugal-test-" + std::to_string(::getpid()) + "-" + std::to_string(count++));
    std::filesystem::remove_all(path_);  // of a killed process that had this number
    std::filesystem::create_directories(path_);
  }
  TemporaryFolder(TemporaryFolder const&) = delete;
  TemporaryFolder& operator=(TemporaryFolder const&) = delete;
  ~TemporaryFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }

  std::filesystem::path const& path() const { return path_; }
  std::filesystem::path operator/(std::string const& name) const { return path_ / name; }

 private:
  std::filesystem::path path_;
};

/// Number of entries in a folder; those of /proc show what a process holds.
inline std::size_t entries(std::filesystem::path const& folder) {
  std::size_t count = 0;
  for ([[maybe_unused]] auto const& each : std::filesystem::directory_iterator(folder)) ++count;
  return count;
}

inline std::string text_of(std::filesystem::path const& path) {
  std::ifstream file(path);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

inline std::vector<std::string> lines_of(std::string const& text) {
  std::vector<std::string> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

}  // namespace frugal_test::support
