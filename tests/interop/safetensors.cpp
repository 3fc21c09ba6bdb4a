// SPDX-License-Identifier: Apache-2.0
// torch-free
// The file operations for tests/interop/safetensors.py:
//
//  describe FILE    one line per tensor and metadata text; names and bytes in hexadecimal
//  rewrite IN OUT   reads a file and writes it again
//  make FILE        writes tensors of every type; byte i of the n-th is 31 i + 7 n, modulo 256
//  judge FOLDER     prints for each file "ok" or why it is refused
#include <frugal/base/file.hpp>
#include <frugal/checkpoint/safetensors.hpp>
#include <frugal/checkpoint/safetensors_writer.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <filesystem>
#include <iostream>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace {

std::string hex(std::span<std::byte const> bytes) {
  constexpr char digits[] = "0123456789abcdef";
  std::string out;
  for (std::byte const byte : bytes) {
    out += digits[std::to_integer<unsigned>(byte) >> 4];
    out += digits[std::to_integer<unsigned>(byte) & 15U];
  }
  return out;
}

std::string hex(std::string_view text) { return hex(std::as_bytes(std::span(text))); }

void describe(std::filesystem::path const& path) {
  auto const file = frugal::Safetensors::open(path);
  for (auto const& [key, value] : file.metadata()) {
    std::cout << "metadata " << hex(key) << ' ' << hex(value) << '\n';
  }
  for (std::size_t i = 0; i < file.size(); ++i) {
    frugal::TensorView const tensor = file[i];
    std::cout << "tensor " << hex(tensor.name) << ' ' << frugal::dtype_name(tensor.dtype) << " [";
    for (std::size_t d = 0; d < tensor.shape.size(); ++d) {
      std::cout << (d == 0 ? "" : ",") << tensor.shape[d];
    }
    std::cout << "] " << hex(tensor.bytes) << '\n';
  }
}

void write(std::filesystem::path const& path, std::vector<frugal::TensorView> tensors,
           frugal::SafetensorsWriter::Metadata const& metadata) {
  frugal::SafetensorsWriter const writer(std::move(tensors), metadata, path.string());
  auto file = frugal::File::create(path);
  writer.write(file);
  file.close();
}

void rewrite(std::filesystem::path const& from, std::filesystem::path const& to) {
  auto const file = frugal::Safetensors::open(from);
  std::vector<frugal::TensorView> tensors;
  for (std::size_t i = 0; i < file.size(); ++i) tensors.push_back(file[i]);
  frugal::SafetensorsWriter::Metadata metadata;
  for (auto const& [key, value] : file.metadata()) metadata.emplace(key, value);
  write(to, std::move(tensors), metadata);
}

void make(std::filesystem::path const& path) {
  std::vector<std::uint64_t> const shapes[]{{}, {3, 8}, {2, 0}};
  std::vector<std::string> names;
  std::vector<std::vector<std::byte>> data;
  std::vector<frugal::TensorView> tensors;
  for (int i = 0; i <= static_cast<int>(frugal::Dtype::u64); ++i) {
    for (auto const& shape : shapes) {
      auto const dtype = static_cast<frugal::Dtype>(i);
      auto const bits = *frugal::tensor_bits(dtype, shape);
      if (bits % 8 != 0) continue;  // one packed element
      unsigned const n = static_cast<unsigned>(names.size());
      names.push_back(std::string(frugal::dtype_name(dtype)) + '/' + std::to_string(shape.size()) +
                      (bits == 0 ? "/empty" : "/caf\xc3\xa9 \"\\\n"));
      auto& bytes = data.emplace_back();
      for (unsigned b = 0; b < bits / 8; ++b) {
        unsigned const value = (31 * b + 7 * n) & (dtype == frugal::Dtype::boolean ? 1U : 255U);
        bytes.push_back(static_cast<std::byte>(value));
      }
      tensors.push_back({.name = {}, .dtype = dtype, .shape = shape, .bytes = {}});
    }
  }
  for (std::size_t i = 0; i < names.size(); ++i) {
    tensors[i].name = names[i];
    tensors[i].bytes = data[i];
  }
  write(path, std::move(tensors), {{"format", "pt"}, {"step", "500"}, {"caf\xc3\xa9", "\n\"\\"}});
}

void judge(std::filesystem::path const& folder) {
  std::vector<std::filesystem::path> files;
  for (auto const& entry : std::filesystem::directory_iterator(folder)) files.push_back(entry);
  std::sort(files.begin(), files.end());
  for (auto const& path : files) {
    std::cout << path.filename().string() << ' ';
    try {
      (void)frugal::Safetensors::open(path);
      std::cout << "ok\n";
    } catch (frugal::FormatError const& error) {
      std::cout << error.fault().what << ": " << error.fault().why << '\n';
    }
  }
}

}  // namespace

int main(int count, char** arguments) {
  std::vector<std::string> const words(arguments + 1, arguments + count);
  try {
    if (words.size() == 2 && words[0] == "describe") {
      describe(words[1]);
    } else if (words.size() == 3 && words[0] == "rewrite") {
      rewrite(words[1], words[2]);
    } else if (words.size() == 2 && words[0] == "make") {
      make(words[1]);
    } else if (words.size() == 2 && words[0] == "judge") {
      judge(words[1]);
    } else {
      std::cerr << "describe FILE, rewrite IN OUT, make FILE or judge FOLDER\n";
      return 2;
    }
  } catch (std::exception const& error) {
    std::cerr << error.what() << '\n';
    return 1;
  }
  return 0;
}
