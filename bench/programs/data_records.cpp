// SPDX-License-Identifier: Apache-2.0
// frugal's side of bench/data_records.py: writes a folder of shards of samples of BYTES bytes each,
// or reads all of it once. Every reading prints a JSON line with its name, seconds, samples and a
// check.
//
//   data_records write FOLDER --samples N --bytes N
//   data_records read FOLDER --batch N
//
// in order, shuffled    batches of copies by get_batch()
// views                 samples by get(), not copied
// plain read            the same bytes by read(2), into one buffer of a batch's size: the limit
#include <ATen/Parallel.h>
#include <frugal/data/sampling/pass.hpp>
#include <frugal/data/shards/record_set.hpp>
#include <frugal/data/shards/shard_writer.hpp>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <iostream>
#include <random>
#include <span>
#include <string>
#include <vector>

namespace {

using Set = frugal::RecordSet<at::Tensor>;

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
            << ", \"samples\": " << samples << ", \"check\": " << check << "}\n";
}

void write(std::string const& folder, std::int64_t samples, std::int64_t bytes) {
  frugal::ShardWriter writer(folder, {.bytes_per_shard = 16U << 20});
  std::mt19937_64 random(1);
  at::Tensor const sample = at::empty({bytes}, at::kByte);
  auto* const at = static_cast<std::uint8_t*>(sample.mutable_data_ptr());
  for (std::int64_t i = 0; i < samples; ++i) {
    std::generate_n(at, bytes, [&] { return static_cast<std::uint8_t>(random()); });
    writer.add(sample);
  }
  static_cast<void>(writer.close());
}

/// Length and first byte of each sample, as the Python side sums them.
std::uint64_t check_of(std::uint8_t const* bytes, std::int64_t samples, std::int64_t size) {
  std::uint64_t check = 0;
  for (std::int64_t i = 0; i < samples; ++i) {
    check += static_cast<std::uint64_t>(size) + bytes[i * size];
  }
  return check;
}

void read_batches(std::string const& folder, std::int64_t batch, bool shuffle) {
  Clock const clock;
  Set const set(folder);
  frugal::Pass pass(set.size(), {.batch = batch, .shuffle = shuffle}, folder);
  std::uint64_t check = 0;
  std::vector<std::uint64_t> indices;
  for (auto slice = pass.advance(); slice.count > 0; slice = pass.advance()) {
    indices.resize(slice.count);
    pass.indices(slice, std::span(indices));
    at::Tensor const data = set.get_batch(indices);
    check += check_of(static_cast<std::uint8_t const*>(data.const_data_ptr()), data.size(0),
                      data.size(1));
  }
  answer(shuffle ? "shuffled" : "in order", clock.seconds(), set.size(), check);
}

void read_views(std::string const& folder) {
  Clock const clock;
  Set const set(folder);
  std::uint64_t check = 0;
  for (std::uint64_t i = 0; i < set.size(); ++i) {
    at::Tensor const sample = set.get(i);
    check += check_of(static_cast<std::uint8_t const*>(sample.const_data_ptr()), 1, sample.size(0));
  }
  answer("views", clock.seconds(), set.size(), check);
}

void read_plainly(std::string const& folder, std::int64_t batch) {
  Set const set(folder);
  auto const size = static_cast<std::size_t>(set.get(0).numel());
  Clock const clock;
  std::vector<std::byte> bytes(static_cast<std::size_t>(batch) * size);
  std::uint64_t check = 0;
  for (auto const& path : frugal::entries_of(folder)) {
    if (path.extension() != ".safetensors") continue;
    frugal::File file = frugal::File::open(path);
    while (std::size_t const got = file.read(bytes)) check += got;
  }
  answer("plain read", clock.seconds(), set.size(), check);
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("Reads and writes shards of samples, for bench/data_records.py");
  app.require_subcommand(1);
  std::string folder;
  std::int64_t samples = 40000;
  std::int64_t bytes = 784;
  std::int64_t batch = 256;
  CLI::App& writing = *app.add_subcommand("write", "writes shards");
  CLI::App& reading = *app.add_subcommand("read", "reads them");
  writing.add_option("folder", folder)->required();
  writing.add_option("--samples", samples, "samples");
  writing.add_option("--bytes", bytes, "bytes of a sample");
  reading.add_option("folder", folder)->required();
  reading.add_option("--batch", batch, "samples of a batch");
  CLI11_PARSE(app, argc, argv);
  at::set_num_threads(1);
  if (writing.parsed()) {
    write(folder, samples, bytes);
    return 0;
  }
  read_batches(folder, batch, false);
  read_batches(folder, batch, true);
  read_views(folder);
  read_plainly(folder, batch);
  return 0;
}
