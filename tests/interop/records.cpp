// SPDX-License-Identifier: Apache-2.0
// The file operations for tests/interop/records.py:
//
//  write FOLDER         shards of two records, of seven: sample i is "image", U8 [2, 3] with i to i + 5,
//                       "label" i as I64, and "weight" i / 4 as F32; in FOLDER/tensors
//                       texts "", "x", "xx", ... in FOLDER/bytes
//  describe PATH        one line per sample of tensors: each as its name, shape and numbers
//  texts PATH           one line per record of any bytes
#include <frugal/data/shards/record_set.hpp>
#include <frugal/data/shards/shard_writer.hpp>

#include <cstdint>
#include <exception>
#include <filesystem>
#include <iostream>
#include <map>
#include <string>
#include <vector>

namespace {

using Tensors = std::map<std::string, at::Tensor>;

void write(std::filesystem::path const& folder) {
  frugal::ShardWriter tensors(folder / "tensors", {.records_per_shard = 2, .block_bytes = 16});
  frugal::ShardWriter bytes(folder / "bytes", {.records_per_shard = 2, .block_bytes = 16});
  for (std::int64_t i = 0; i < 7; ++i) {
    tensors.add(Tensors{{"image", at::arange(i, i + 6, at::kByte).view({2, 3})},
                        {"label", at::scalar_tensor(i, at::kLong)},
                        {"weight", at::scalar_tensor(0.25 * static_cast<double>(i), at::kFloat)}});
    bytes.add(std::string(static_cast<std::size_t>(i), 'x'));
  }
  tensors.close();
  bytes.close();
}

void describe(std::filesystem::path const& path) {
  frugal::RecordSet<Tensors> const set(path);
  for (std::uint64_t i = 0; i < set.size(); ++i) {
    for (auto const& [name, tensor] : set.get(i)) {
      std::cout << name << ' ' << tensor.dtype() << ' ' << tensor.sizes();
      at::Tensor const numbers = tensor.flatten().to(at::kDouble);
      for (std::int64_t k = 0; k < numbers.numel(); ++k) {
        std::cout << ' ' << numbers[k].item<double>();
      }
      std::cout << "; ";
    }
    std::cout << '\n';
  }
}

void texts(std::filesystem::path const& path) {
  frugal::RecordSet<std::string> const set(path);
  for (std::uint64_t i = 0; i < set.size(); ++i) std::cout << set.get(i) << '\n';
}

}  // namespace

int main(int count, char** arguments) {
  std::vector<std::string> const words(arguments + 1, arguments + count);
  try {
    if (words.size() == 2 && words[0] == "write") {
      write(words[1]);
    } else if (words.size() == 2 && words[0] == "describe") {
      describe(words[1]);
    } else if (words.size() == 2 && words[0] == "texts") {
      texts(words[1]);
    } else {
      std::cerr << "write FOLDER, describe PATH or texts PATH\n";
      return 2;
    }
  } catch (std::exception const& error) {
    std::cerr << error.what() << '\n';
    return 1;
  }
  return 0;
}
