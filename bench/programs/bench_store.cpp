// SPDX-License-Identifier: Apache-2.0
// torch-free
// frugal's side of bench/store.py: writes or reads a file of tensors once, and prints the time of
// that alone.
//
//   bench_store write FILE --mib N --tensors N   a new file, hashed and fsynced
//   bench_store open|touch|copy FILE             maps it; touches every page; copies every tensor
#include <frugal/base/file.hpp>
#include <frugal/base/hash.hpp>
#include <frugal/checkpoint/safetensors.hpp>
#include <frugal/checkpoint/safetensors_writer.hpp>

#include <CLI/CLI.hpp>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <iostream>
#include <memory>
#include <random>
#include <span>
#include <string>
#include <vector>

namespace {

class Clock {
 public:
  double seconds() const {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
  }

 private:
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

void answer(double seconds, std::uint64_t check) {
  std::cout << "{\"seconds\": " << seconds << ", \"check\": " << check << "}\n";
}

void write(std::string const& path, std::size_t bytes, std::size_t count) {
  // Sizes as in a network: matrices, with vectors in between.
  std::size_t const small = 1024;
  std::size_t const large = (bytes - count / 2 * small) / (count - count / 2) / 4 * 4;
  std::vector<std::vector<std::uint64_t>> words;
  std::vector<std::string> names;
  std::mt19937_64 random(1);
  for (std::size_t i = 0; i < count; ++i) {
    words.emplace_back(((i % 2 == 0 ? large : small) + 7) / 8);
    for (std::uint64_t& word : words.back()) word = random();
    names.push_back("layers." + std::to_string(i) + ".weight");
  }
  std::vector<std::vector<std::uint64_t>> shapes;
  for (auto const& each : words) shapes.push_back({each.size() * 2});
  std::vector<frugal::TensorView> tensors;
  for (std::size_t i = 0; i < count; ++i) {
    tensors.push_back({.name = names[i],
                       .dtype = frugal::Dtype::f32,
                       .shape = shapes[i],
                       .bytes = std::as_bytes(std::span(words[i]))});
  }
  Clock const clock;
  frugal::SafetensorsWriter const writer(std::move(tensors));
  frugal::File file = frugal::File::create(path);
  file.reserve(writer.size());
  frugal::Hashed<frugal::File> sink(file);
  writer.write(sink);
  file.sync();
  file.close();
  answer(clock.seconds(), sink.digest() >> 12);
}

void read(std::string const& how, std::string const& path) {
  constexpr std::size_t page = 4096;
  std::uint64_t check = 0;
  std::vector<std::unique_ptr<std::byte[]>> copies;
  Clock const clock;
  auto const tensors = frugal::Safetensors::open(path);
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    auto const bytes = tensors[i].bytes;
    check += bytes.size();
    if (how == "touch") {
      for (std::size_t at = 0; at < bytes.size(); at += page) {
        check += std::to_integer<std::uint64_t>(bytes[at]);
      }
    } else if (how == "copy") {
      copies.push_back(std::make_unique_for_overwrite<std::byte[]>(bytes.size()));
      std::memcpy(copies.back().get(), bytes.data(), bytes.size());
    }
  }
  answer(clock.seconds(), check);
}

}  // namespace

int main(int argc, char** argv) {
  std::string how, path;
  std::size_t mib = 512;
  std::size_t tensors = 200;
  CLI::App app("Writes or reads a file of tensors once.");
  app.add_option("how", how, "write, open, touch or copy")
      ->required()
      ->check(CLI::IsMember({"write", "open", "touch", "copy"}));
  app.add_option("file", path, "the file")->required();
  app.add_option("--mib", mib, "bytes of all tensors")->check(CLI::Range(1, 1 << 20));
  app.add_option("--tensors", tensors, "how many")->check(CLI::Range(2, 100000));
  CLI11_PARSE(app, argc, argv);
  try {
    if (how == "write") {
      write(path, mib << 20, tensors);
    } else {
      read(how, path);
    }
  } catch (frugal::Error const& error) {
    std::cerr << error.what() << '\n';
    return EXIT_FAILURE;
  }
}
