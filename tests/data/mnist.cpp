// SPDX-License-Identifier: Apache-2.0
#include <frugal/data/mnist.hpp>

#include "data/sources.hpp"

#include <doctest/doctest.h>

#include <frugal/data/idx.hpp>

#include <array>
#include <bit>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <utility>

namespace frugal_test::data_mnist {

using namespace frugal_test::data_sources;
using frugal::DataError;
using frugal::Pixels;
using frugal::read_mnist;
using frugal::Split;

TEST_CASE("an IDX array becomes a tensor with its type and shape without a copy") {
  using Kind = std::pair<char, at::ScalarType>;
  for (auto const& [code, dtype] :
       {Kind{0x08, at::kByte}, Kind{0x09, at::kChar}, Kind{0x0b, at::kShort}, Kind{0x0c, at::kInt},
        Kind{0x0d, at::kFloat}, Kind{0x0e, at::kDouble}}) {
    std::string bytes("\0\0?\2\0\0\0\3\0\0\0\2", 12);
    bytes[2] = code;
    bytes += std::string(6 * c10::elementSize(dtype), '\1');
    std::istringstream input(bytes);
    auto array = frugal::read_idx(input, "test.idx");
    void const* const data = array.data.get();
    auto const tensor = frugal::to_tensor(std::move(array));
    CHECK((tensor.scalar_type() == dtype));
    CHECK(tensor.sizes() == at::IntArrayRef({3, 2}));
    CHECK(tensor.const_data_ptr() == data);
  }
}

TEST_CASE("the elements of an IDX tensor are those of the file, row by row") {
  std::istringstream input(std::string("\0\0\x0b\2\0\0\0\2\0\0\0\2", 12) +
                           std::string("\0\1\0\2\1\0\xff\xff", 8));
  auto const tensor = frugal::to_tensor(frugal::read_idx(input, "test.idx"));
  CHECK(at::equal(tensor, at::tensor({1, 2, 256, -1}, at::kShort).view({2, 2})));
}

void write(std::filesystem::path const& file, std::string const& bytes) {
  std::ofstream(file, std::ios::binary) << bytes;
}

std::string idx(std::string shape, std::size_t elements) {
  std::string out("\0\0\x08", 3);
  out.push_back(static_cast<char>(shape.size()));
  for (char const extent : shape) out += std::string("\0\0\0", 3) + extent;
  for (std::size_t i = 0; i < elements; ++i) out.push_back(static_cast<char>(i * 51));
  return out;
}

TEST_CASE("Fashion-MNIST's test half is read as its authors describe it") {
  auto const set = read_mnist(fashion, Split::test);
  CHECK(set.data.sizes() == at::IntArrayRef({10'000, 1, 28, 28}));
  CHECK((set.data.scalar_type() == at::kFloat));
  CHECK(set.data.min().item<float>() == 0);
  CHECK(set.data.max().item<float>() == 1);
  CHECK(set.target.sizes() == at::IntArrayRef({10'000}));
  CHECK((set.target.scalar_type() == at::kLong));
  // A thousand images of each of the ten classes.
  CHECK(at::equal(at::bincount(set.target), at::full({10}, 1'000, at::kLong)));
}

TEST_CASE("Fashion-MNIST's training half has six thousand images of each class") {
  auto const set = read_mnist(fashion, Split::train, Pixels::bytes);
  CHECK(set.data.sizes() == at::IntArrayRef({60'000, 1, 28, 28}));
  CHECK((set.data.scalar_type() == at::kByte));
  CHECK(at::equal(at::bincount(set.target), at::full({10}, 6'000, at::kLong)));
  // The published mean of the training pixels is 0.2860.
  CHECK(set.data.to(at::kDouble).mean().item<double>() / 255 ==
        doctest::Approx(0.2860).epsilon(0.0005));
}

TEST_CASE("plain files are read like compressed ones, and scaled pixels are bytes over 255") {
  TemporaryFolder folder;
  write(folder.path() / "train-images-idx3-ubyte", idx({2, 1, 3}, 6));
  write(folder.path() / "train-labels-idx1-ubyte", idx({2}, 2));
  auto const set = read_mnist(folder.path(), Split::train);
  CHECK(set.data.sizes() == at::IntArrayRef({2, 1, 1, 3}));
  CHECK(at::equal(set.data.flatten(), at::tensor({0.F, 51.F, 102.F, 153.F, 204.F, 255.F}) / 255));
  CHECK(at::equal(set.target, at::tensor({0, 51}, at::kLong)));
}

TEST_CASE("a missing file names the folder and the package that has it") {
  TemporaryFolder folder;
  try {
    read_mnist(folder.path(), Split::test);
    FAIL("nothing was thrown");
  } catch (DataError const& error) {
    CHECK(error.fault().what.find("t10k-images-idx3-ubyte") != std::string::npos);
    CHECK(error.fault().where == "folder " + folder.path().string());
    CHECK(error.fault().fix.find("dataset-fashion-mnist") != std::string::npos);
  }
}

TEST_CASE("images and labels of different lengths name both files and both lengths") {
  TemporaryFolder folder;
  write(folder.path() / "train-images-idx3-ubyte", idx({2, 1, 3}, 6));
  write(folder.path() / "train-labels-idx1-ubyte", idx({3}, 3));
  try {
    read_mnist(folder.path(), Split::train);
    FAIL("nothing was thrown");
  } catch (DataError const& error) {
    CHECK(error.fault().where.find("train-images-idx3-ubyte") != std::string::npos);
    CHECK(error.fault().where.find("train-labels-idx1-ubyte") != std::string::npos);
    CHECK(error.fault().why == "2 images and 3 labels");
  }
}

TEST_CASE("labels under the name of images are refused as another kind of array") {
  TemporaryFolder folder;
  write(folder.path() / "train-images-idx3-ubyte", idx({2}, 2));
  write(folder.path() / "train-labels-idx1-ubyte", idx({2}, 2));
  CHECK_THROWS_AS(read_mnist(folder.path(), Split::train), DataError);
}

TEST_CASE("a set of no images is refused as empty") {
  TemporaryFolder folder;
  write(folder.path() / "train-images-idx3-ubyte", idx(std::string("\0\1\3", 3), 0));
  write(folder.path() / "train-labels-idx1-ubyte", idx(std::string("\0", 1), 0));
  CHECK_THROWS_AS(read_mnist(folder.path(), Split::train), frugal::EmptySourceError);
}

TEST_CASE("a damaged file among the four is named with its offset") {
  TemporaryFolder folder;
  write(folder.path() / "train-images-idx3-ubyte", idx({2, 1, 3}, 5));
  write(folder.path() / "train-labels-idx1-ubyte", idx({2}, 2));
  try {
    read_mnist(folder.path(), Split::train);
    FAIL("nothing was thrown");
  } catch (DataError const& error) {
    CHECK(error.fault().where ==
          (folder.path() / "train-images-idx3-ubyte").string() + ", byte 21");
  }
}

}  // namespace frugal_test::data_mnist
