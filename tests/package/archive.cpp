// SPDX-License-Identifier: Apache-2.0
#include <frugal/store/archive.hpp>

#include <filesystem>
#include <iostream>

// Moves nothing: there is nothing. That it links and runs is what counts.
int main() {
  auto const folder = std::filesystem::temp_directory_path() / "frugal-consumer-archive";
  std::filesystem::remove_all(folder);
  frugal::RunDirectory run(folder);
  auto const report = frugal::Archive(run, frugal::ColdFolder{folder / "cold"}).move();
  std::cout << report.moved.size() << " checkpoints would move\n";
  return report.moved.empty() ? 0 : 1;
}
