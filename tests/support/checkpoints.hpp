// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/checkpoint/run_directory.hpp>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <map>
#include <span>
#include <string>

namespace frugal_test::support {

inline std::span<std::byte const> bytes_of(std::string const& text) {
  return std::as_bytes(std::span<char const>(text.data(), text.size()));
}

inline void write_text(std::filesystem::path const& path, std::string const& text) {
  std::ofstream(path, std::ios::binary) << text;
}

/// The contents of this step's checkpoint: text, so that a failing test prints something readable.
inline std::map<std::string, std::string> contents_of(std::uint64_t step) {
  std::string const number = std::to_string(step);
  return {{"model.safetensors", "weights of step " + number},
          {"optimizer.safetensors", std::string(40, static_cast<char>('a' + step % 26))},
          {"state.json", "{\"step\":" + number + "}"}};
}

inline frugal::SavedCheckpoint save(frugal::RunDirectory& run, std::uint64_t step,
                                    std::map<std::string, double> metrics = {}) {
  frugal::CheckpointWriter writer = run.begin(step);
  for (auto const& [name, text] : contents_of(step)) {
    writer.add(name, [&](auto& sink) { sink.write(bytes_of(text)); });
  }
  return run.commit(writer, metrics);
}

inline void flip_bit(std::filesystem::path const& path, std::size_t bit) {
  std::fstream file(path, std::ios::binary | std::ios::in | std::ios::out);
  file.seekg(static_cast<std::streamoff>(bit / 8));
  int const byte = file.get();
  file.seekp(static_cast<std::streamoff>(bit / 8));
  file.put(static_cast<char>(byte ^ (1 << (bit % 8))));
}

}  // namespace frugal_test::support
