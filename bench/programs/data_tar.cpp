// SPDX-License-Identifier: Apache-2.0
// torch-free
// needs: archive
// frugal's side of bench/data_tar.py: tar shards of small samples.
//
//   data_tar write FOLDER --samples N --bytes N --shards N    and prints nothing
//   data_tar read FOLDER                                      times, a line of JSON for each way
#include <frugal/base/file.hpp>
#include <frugal/data/shards/shard_order.hpp>
#include <frugal/data/shards/tar_set.hpp>
#include <frugal/data/shards/tar_shard_writer.hpp>

#include <CLI/CLI.hpp>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <span>
#include <string>
#include <string_view>
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

void answer(char const* name, double seconds, std::uint64_t samples, std::uint64_t check) {
  std::cout << "{\"name\": \"" << name << "\", \"seconds\": " << seconds
            << ", \"samples\": " << samples << ", \"check\": " << check << "}" << std::endl;
}

void write(std::string const& folder, std::uint64_t samples, std::size_t bytes,
           std::uint64_t shards) {
  frugal::TarShardWriter writer(folder, {.samples = (samples + shards - 1) / shards});
  std::string content(bytes, '\0');
  std::uint32_t x = 1;
  for (std::uint64_t i = 0; i < samples; ++i) {
    for (char& c : content) c = static_cast<char>((x = x * 1664525U + 1013904223U) >> 24);
    writer.add(std::to_string(i), {{"bin", content}});
  }
  writer.finish();
}

/// What is read of a sample, so that no read can be left out: its size and its first byte.
std::uint64_t check(frugal::TarSample const& sample) {
  std::string_view const bytes = sample["bin"];
  return bytes.size() + static_cast<unsigned char>(bytes.front());
}

void read(std::string const& folder) {
  {
    Clock const clock;
    frugal::TarSet const set(folder, {.keep_index = false});
    answer("first opening", clock.seconds(), set.size(), set.size());
  }
  frugal::TarSet const set(folder);  // writes the index
  {
    Clock const clock;
    frugal::TarSet const again(folder);
    std::uint64_t sum = 0;
    for (std::uint64_t i = 0; i < again.size(); ++i) sum += check(again.get(i));
    answer("in order", clock.seconds(), again.size(), sum);
  }
  {
    Clock const clock;
    frugal::ShardOrder order(set, {.batch = 64}, {.shards = 4});
    order.seek({.seed = 1});
    std::vector<std::uint64_t> batch;
    std::uint64_t sum = 0;
    for (auto slice = order.advance(); slice.count != 0; slice = order.advance()) {
      batch.resize(slice.count);
      order.indices(slice, std::span(batch));
      for (std::uint64_t const index : batch) sum += check(set.get(index));
    }
    answer("shuffled", clock.seconds(), set.size(), sum);
  }
  {
    Clock const clock;
    std::vector<std::byte> block(std::size_t{1} << 20);
    std::uint64_t sum = 0;
    for (auto const& each : frugal::shard_paths(folder, {".tar"})) {
      frugal::File file = frugal::File::open(each);
      for (std::size_t got = file.read(block); got != 0; got = file.read(block)) sum += got;
    }
    answer("plain read", clock.seconds(), set.size(), sum);
  }
}

}  // namespace

int main(int argc, char** argv) {
  std::string what, folder;
  std::uint64_t samples = 60'000, shards = 8;
  std::size_t bytes = 784;
  CLI::App app("Tar shards of small samples: writes them, or times reading them.");
  app.add_option("what", what)->required()->check(CLI::IsMember({"write", "read"}));
  app.add_option("folder", folder)->required();
  app.add_option("--samples", samples)->capture_default_str();
  app.add_option("--bytes", bytes)->check(CLI::PositiveNumber)->capture_default_str();
  app.add_option("--shards", shards)->check(CLI::PositiveNumber)->capture_default_str();
  CLI11_PARSE(app, argc, argv);
  try {
    what == "write" ? write(folder, samples, bytes, shards) : read(folder);
  } catch (frugal::Error const& error) {
    std::cerr << error.what() << '\n';
    return EXIT_FAILURE;
  }
}
