// SPDX-License-Identifier: Apache-2.0
// The program that tests/fault/run.py injects faults into: saves, or reports what is there.
//
//   fault_save save RUN STEP [KEEP [BYTES]]   saves a step, keeps the last KEEP (0: all); its
//                                             model has BYTES, the other files have 3000
//   fault_save check RUN                      prints what a next start finds, as JSON
//
// Exit codes: 0 success, 3 a StoreError, with its text on stderr; anything else is a crash.
#include <frugal/base/folder.hpp>
#include <frugal/checkpoint/retention.hpp>
#include <frugal/checkpoint/run_directory.hpp>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <iostream>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <vector>

namespace {

/// Bytes that a reader can recompute from the step and the file name.
std::vector<std::byte> bytes_of(std::uint64_t step, std::string const& name, std::size_t size) {
  std::vector<std::byte> bytes(size);
  std::uint64_t state = step * 0x9e3779b97f4a7c15 + name.size();
  for (std::byte& byte : bytes) {
    state = state * 6364136223846793005 + 1442695040888963407;
    byte = static_cast<std::byte>(state >> 56);
  }
  return bytes;
}

std::vector<std::string> const names{"model.safetensors", "optimizer.safetensors", "state.json"};

constexpr std::size_t usual_size = 3000;

int save(std::filesystem::path const& folder, std::uint64_t step, std::size_t keep,
         std::size_t model_size) {
  frugal::RunDirectory run(folder);
  frugal::CheckpointWriter writer = run.begin(step);
  for (std::string const& name : names) {
    std::size_t const size = name == names.front() ? model_size : usual_size;
    writer.add(
        name,
        [&](auto& sink) {
          auto const bytes = bytes_of(step, name, size);
          // In two pieces, like a header and its tensors.
          sink.write(std::span(bytes).first(size / 3));
          sink.write(std::span(bytes).subspan(size / 3));
        },
        size);
  }
  run.commit(writer);
  if (keep != 0) frugal::retain(run, {.last = keep, .best = {}});
  return 0;
}

int check(std::filesystem::path const& folder) {
  frugal::RunDirectory run(folder);
  frugal::NewestValid const newest = run.newest_valid();
  nlohmann::json out;
  out["step"] = newest.checkpoint ? nlohmann::json(newest.checkpoint->step()) : nullptr;
  out["damaged"] = newest.damaged.size();
  out["whole"] = nlohmann::json::array();
  for (auto const& checkpoint : run.list().whole) {
    frugal::verify(checkpoint);
    out["whole"].push_back(checkpoint.step());
    // The hashes come from the writer; this comparison does not depend on it.
    for (frugal::FileEntry const& entry : checkpoint.manifest.files) {
      frugal::File file = frugal::File::open(checkpoint.folder / entry.name);
      std::vector<std::byte> found(entry.size);
      found.resize(file.read(found));
      if (found != bytes_of(checkpoint.step(), entry.name, entry.size)) {
        std::cerr << "not what was saved: " << checkpoint.folder / entry.name << '\n';
        return 4;
      }
    }
    if (checkpoint.manifest.files.size() != names.size()) return 5;
  }
  // There must be nothing but checkpoints in the folder.
  out["others"] = nlohmann::json::array();
  for (auto const& path : frugal::entries_of(run.checkpoints_folder())) {
    std::string const name = path.filename().string();
    if (!name.starts_with("step-")) out["others"].push_back(name);
  }
  std::cout << out << '\n';
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  std::vector<std::string> const given(argv + 1, argv + argc);
  try {
    if (given.size() == 2 && given[0] == "check") return check(given[1]);
    if (given.size() >= 3 && given[0] == "save") {
      return save(given[1], std::stoull(given[2]), given.size() > 3 ? std::stoull(given[3]) : 0,
                  given.size() > 4 ? std::stoull(given[4]) : usual_size);
    }
  } catch (frugal::StoreError const& error) {
    std::cerr << error.what() << '\n';
    return 3;
  }
  std::cerr << "fault_save save RUN STEP [KEEP [BYTES]] | check RUN\n";
  return 2;
}
