// SPDX-License-Identifier: Apache-2.0
#include <frugal/checkpoint/archive.hpp>

#include <filesystem>
#include <iostream>

// Moves nothing, because there is nothing; this tests that it links and runs.
int main() {
  auto const folder = std::filesystem::temp_directory_path() / "frugal-consumer-archive";
  std::filesystem::remove_all(folder);
  frugal::RunDirectory run(folder);
  auto const report = frugal::Archive(run, frugal::ColdFolder{folder / "cold"}).move();
  std::cout << report.moved.size() << " checkpoints would move\n";
  return report.moved.empty() ? 0 : 1;
}
