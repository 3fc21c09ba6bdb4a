// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <frugal/model/weight_files.hpp>

#include "support/checkpoints.hpp"
#include "support/files.hpp"
#include "support/torch_files.hpp"
#include "support/weight_files.hpp"

#include <filesystem>
#include <string>
#include <vector>

namespace frugal_test::model_weight_files {

using frugal::Weights;
using frugal::detail::open_weights;
using frugal::detail::StoredWeights;
using namespace support;

StoredWeights open(std::filesystem::path const& path) {
  return open_weights(path, Weights::validated, "");
}

template <class Error>
void refuses(std::filesystem::path const& path, std::string const& why) {
  CAPTURE(why);
  CHECK_THROWS_WITH_AS(open(path), doctest::Contains(why.c_str()), Error);
}

at::Tensor const ones = at::ones({2});

/// A folder of two shards, with an index of this text.
void write_shards(std::filesystem::path const& folder, std::string const& index) {
  std::filesystem::create_directories(folder);
  write_safetensors(folder / "one.safetensors", {{"a", ones}});
  write_safetensors(folder / "two.safetensors", {{"b", 2 * ones}});
  write_text(folder / "model.safetensors.index.json", index);
}

std::string index_of(std::string const& map) {
  return R"({"metadata":{"total_size":16},"weight_map":{)" + map + "}}";
}
std::string const whole = index_of(R"("a":"one.safetensors","b":"two.safetensors")");

TEST_CASE("a folder with an index has the tensors of all its shards") {
  TemporaryFolder const folder;
  write_shards(folder.path(), whole);
  for (auto const& path : {folder.path(), folder / "model.safetensors.index.json"}) {
    StoredWeights const weights = open(path);
    CHECK(weights.all().size() == 2);
    CHECK(weights.find("a")->tensor().equal(ones));
    CHECK(weights.find("b")->tensor().equal(2 * ones));
    CHECK(weights.place() == (folder / "model.safetensors.index.json").string());
  }
}

TEST_CASE("an index that leaves its folder, lacks a part or does not fit its shards is refused") {
  TemporaryFolder const folder;
  std::filesystem::path const place = folder / "model";
  auto const refused = [&](std::string const& index, std::string const& why) {
    write_shards(place, index);
    refuses<frugal::FormatError>(place, why);
  };
  write_safetensors(folder / "outside.safetensors", {{"a", ones}});
  std::string const elsewhere = folder / "outside.safetensors";
  std::vector<std::string> const files{
      "../outside.safetensors", "x/../../outside.safetensors", "", "..", elsewhere, "sub/"};
  for (std::string const& file : files) {
    refused(index_of(R"("a":")" + file + R"(","b":"two.safetensors")"),
            "'a' is in \"" + file + "\", which is no file of the folder");
  }
  refused(index_of(R"("a":3,"b":"two.safetensors")"), "no file of the folder");
  refused(R"({"weight_map":{"a":"one.safetensors"}})", "it has no \"metadata\"");
  refused(R"({"metadata":{},"weight_map":{}})", "no number \"total_size\"");
  refused(R"({"metadata":{"total_size":"16"},"weight_map":{}})", "no number \"total_size\"");
  refused(R"({"metadata":{"total_size":16}})", "it has no \"weight_map\"");
  refused("[]", "it is not a JSON object");
  refused("{", "it is not a JSON object");
  refused(index_of(R"("a":"one.safetensors","a":"two.safetensors")"), "'a' is there twice");
  refused(index_of(R"("a":"one.safetensors","b":"three.safetensors")"), "three.safetensors");
  refused(index_of(R"("a":"one.safetensors","c":"two.safetensors")"),
          "two.safetensors does not have 'c'");
}

TEST_CASE("a tensor of a shard that the index does not list is refused") {
  TemporaryFolder const folder;
  write_shards(folder.path(), whole);
  write_safetensors(folder / "two.safetensors", {{"b", ones}, {"c", ones}});
  refuses<frugal::FormatError>(folder.path(), "it does not list 'c' of two.safetensors");
  write_safetensors(folder / "two.safetensors", {{"b", ones}, {"a", ones}});
  refuses<frugal::FormatError>(folder.path(), "it does not list 'a' of two.safetensors");
}

TEST_CASE("a shard may be a link, as caches have it") {
  TemporaryFolder const folder;
  write_shards(folder / "model", whole);
  std::filesystem::rename(folder / "model/one.safetensors", folder / "blob");
  std::filesystem::create_symlink("../blob", folder / "model/one.safetensors");
  CHECK(open(folder / "model").find("a")->tensor().equal(ones));
}

TEST_CASE("a file's first bytes say of which format it is") {
  TemporaryFolder const folder;
  write_safetensors(folder / "w.bin", {{"a", ones}});
  CHECK(open(folder / "w.bin").find("a") != nullptr);
  std::string const pickle =
      Pickle().dict([](Pickle& to) { to.text("a").tensor("0", "Float", 2, 0, {2}, {1}); }).done();
  write_torch_file(folder / "pytorch_model.bin", pickle, {{"0", bytes_of_floats({1, 1})}});
  for (auto const& path : {folder.path(), folder / "pytorch_model.bin"}) {
    CHECK(open(path).find("a")->tensor().equal(ones));
  }
  write_text(folder / "old.pt", std::string("\x80\x02\x8a\nl\xfc\x9c\x46\xf9 j\xa8P\x19.", 15));
  refuses<frugal::FormatError>(folder / "old.pt", "torch.save before PyTorch 1.6");
  write_text(folder / "text", "not weights");
  refuses<frugal::FormatError>(folder / "text", "not a safetensors file");
  refuses<frugal::StoreError>(folder / "nothing", "nothing");
}

TEST_CASE("a folder without weights is refused, and says what it lacks") {
  TemporaryFolder const folder;
  refuses<frugal::StoreError>(folder.path(), "it has neither model.safetensors.index.json");
}

}  // namespace frugal_test::model_weight_files
