// SPDX-License-Identifier: Apache-2.0
// torch-free
#include <doctest/doctest.h>

#include <frugal/base/file.hpp>
#include <frugal/checkpoint/safetensors_writer.hpp>
#include <frugal/checkpoint/tensor_files.hpp>

#include "support/files.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace frugal_test::store_tensor_files {

using frugal::detail::Durable;
using frugal::detail::shard_name;
using frugal::detail::TensorFiles;
using frugal::detail::TensorIndex;
using support::TemporaryFolder;

/// Tensors of one byte, the value of which is their place.
void write_tensors(std::filesystem::path const& path, std::vector<std::string> const& names) {
  std::vector<std::byte> bytes(names.size());
  std::array<std::uint64_t, 1> const shape{1};
  std::vector<frugal::TensorView> views;
  for (std::size_t i = 0; i < names.size(); ++i) {
    bytes[i] = static_cast<std::byte>(i);
    views.push_back({.name = names[i],
                     .dtype = frugal::Dtype::u8,
                     .shape = shape,
                     .bytes = {bytes.data() + i, 1}});
  }
  frugal::SafetensorsWriter const writer(views, {{"key", path.filename().string()}});
  std::filesystem::remove(path);
  frugal::File file = frugal::File::create(path);
  writer.write(file);
  file.close();
}

/// Two files and their index.
std::filesystem::path write_two(TemporaryFolder const& folder) {
  TensorIndex index{.total_size = 3};
  std::vector<std::vector<std::string>> const names{{"a", "c"}, {"b"}};
  for (std::size_t i = 0; i < names.size(); ++i) {
    std::string const file = shard_name("model.safetensors", i, names.size());
    write_tensors(folder / file, names[i]);
    for (std::string const& name : names[i]) index.weight_map.emplace(name, file);
  }
  std::filesystem::path const path = folder / "model.safetensors.index.json";
  frugal::detail::write_whole_file(path, index.text(), Durable::no);
  return path;
}

TEST_CASE("an index has the tensors of all its files, and a file its own") {
  TemporaryFolder const folder;
  std::filesystem::path const path = write_two(folder);
  TensorFiles const all = TensorFiles::open(path);
  CHECK(all.size() == 3);
  CHECK(all.name() == path.string());
  std::string names;
  for (std::size_t i = 0; i < all.size(); ++i) names += all[i].name;
  CHECK(names == "acb");
  REQUIRE(all.find("c"));
  CHECK(all.find("c")->bytes[0] == std::byte{1});
  CHECK(all.find("b")->bytes[0] == std::byte{0});
  CHECK(!all.find("d"));
  CHECK(all.metadata("key") == "model-00001-of-00002.safetensors");
  CHECK(!all.metadata("other"));

  TensorFiles const one = TensorFiles::open(folder / "model-00002-of-00002.safetensors");
  CHECK(one.size() == 1);
  CHECK(one.find("b"));
}

TEST_CASE("the text of an index reads as it was written") {
  TemporaryFolder const folder;
  TensorIndex const read = TensorIndex::read(write_two(folder));
  CHECK(read.weight_map.at("b") == "model-00002-of-00002.safetensors");
  CHECK(read.files().size() == 2);
  CHECK(shard_name("averaged.safetensors", 11, 12) == "averaged-00012-of-00012.safetensors");
}

TEST_CASE("an index that does not fit its files is refused, and so is a file that is not there") {
  TemporaryFolder const folder;
  std::filesystem::path const path = write_two(folder);
  std::string const second = "model-00002-of-00002.safetensors";
  write_tensors(folder / second, {"b", "x"});
  CHECK_THROWS_WITH_AS(TensorFiles::open(path),
                       doctest::Contains("it does not list 'x' of model-00002"),
                       frugal::FormatError);
  write_tensors(folder / second, {});
  CHECK_THROWS_WITH_AS(TensorFiles::open(path), doctest::Contains("does not have 'b'"),
                       frugal::FormatError);
  std::filesystem::remove(folder / second);
  CHECK_THROWS_WITH_AS(TensorFiles::open(path), doctest::Contains(second.c_str()),
                       frugal::StoreError);
}

}  // namespace frugal_test::store_tensor_files
