// SPDX-License-Identifier: Apache-2.0
// torch-free
// needs: archive
// The file operations for tests/interop/tar_shards.py:
//
//  describe SHARDS   one line per sample: its key, then extension and bytes of each field, in
//  hexadecimal rewrite IN OUT    reads shards and writes their samples again, three to a shard npy
//  FILE          type, shape and elements of an array of NumPy
#include <frugal/base/file.hpp>
#include <frugal/data/shards/npy.hpp>
#include <frugal/data/shards/tar_set.hpp>
#include <frugal/data/shards/tar_shard_writer.hpp>

#include <cstdint>
#include <exception>
#include <iostream>
#include <string>
#include <string_view>
#include <vector>

namespace {

std::string hex(std::string_view bytes) {
  constexpr char digits[] = "0123456789abcdef";
  std::string out;
  for (char const c : bytes) {
    out += digits[static_cast<unsigned char>(c) >> 4];
    out += digits[static_cast<unsigned char>(c) & 15U];
  }
  return out;
}

void describe(std::string const& shards) {
  frugal::TarSet const set(shards, {.keep_index = false});
  for (std::uint64_t i = 0; i < set.size(); ++i) {
    frugal::TarSample const sample = set.get(i);
    std::cout << hex(sample.key);
    for (std::size_t f = 0; f < sample.size(); ++f) {
      std::cout << ' ' << hex(sample.extension(f)) << ':' << hex(sample.bytes(f));
    }
    std::cout << '\n';
  }
}

void rewrite(std::string const& from, std::string const& to) {
  frugal::TarSet const set(from, {.keep_index = false});
  frugal::TarShardWriter writer(to, {.samples = 3});
  for (std::uint64_t i = 0; i < set.size(); ++i) {
    frugal::TarSample const sample = set.get(i);
    std::vector<frugal::ShardField> fields;
    for (std::size_t f = 0; f < sample.size(); ++f) {
      fields.push_back({sample.extension(f), sample.bytes(f)});
    }
    writer.add(sample.key, fields);
  }
  writer.finish();
}

void npy(std::string const& path) {
  frugal::MappedFile const file(path);
  frugal::NpyArray const array = frugal::read_npy(file.bytes(), path);
  std::cout << frugal::dtype_name(array.dtype);
  for (std::uint64_t const extent : array.shape) std::cout << ' ' << extent;
  std::string_view const bytes(reinterpret_cast<char const*>(array.bytes.data()),
                               array.bytes.size());
  std::string_view const all(reinterpret_cast<char const*>(file.bytes().data()),
                             file.bytes().size());
  // The header is that of np.save, byte for byte.
  bool const same =
      frugal::npy_header(array.dtype, array.shape) == all.substr(0, all.size() - bytes.size());
  std::cout << '\n' << hex(bytes) << '\n' << (same ? "same header" : "another header") << '\n';
}

}  // namespace

int main(int count, char** arguments) {
  std::vector<std::string> const words(arguments + 1, arguments + count);
  try {
    if (words.size() == 2 && words[0] == "describe") {
      describe(words[1]);
    } else if (words.size() == 3 && words[0] == "rewrite") {
      rewrite(words[1], words[2]);
    } else if (words.size() == 2 && words[0] == "npy") {
      npy(words[1]);
    } else {
      std::cerr << "describe SHARDS, rewrite IN OUT or npy FILE\n";
      return 2;
    }
  } catch (std::exception const& error) {
    std::cerr << error.what() << '\n';
    return 1;
  }
  return 0;
}
