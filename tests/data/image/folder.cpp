// SPDX-License-Identifier: Apache-2.0
// needs: images
#include <doctest/doctest.h>

#include <frugal/core/source/sample_set.hpp>
#include <frugal/data/collate.hpp>
#include <frugal/data/image/folder.hpp>
#include <frugal/error.hpp>

#include <filesystem>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include "files.hpp"
#include "support/files.hpp"

namespace frugal_test::image_folder {

using namespace frugal_test::image;
using frugal::DataError;
using frugal::ImageFolder;
namespace fs = std::filesystem;

static_assert(frugal::SampleSet<ImageFolder> && frugal::IdentifiedSet<ImageFolder>);

void write(fs::path const& path, std::vector<std::byte> const& bytes) {
  fs::create_directories(path.parent_path());
  std::ofstream(path, std::ios::binary)
      .write(reinterpret_cast<char const*>(bytes.data()),
             static_cast<std::streamsize>(bytes.size()));
}

/// Two classes with two images each, and files that are none.
struct Pets : support::TemporaryFolder {
  Pets() {
    write(*this / "dog/b.PNG", file_of("png RGB rgb"));
    write(*this / "dog/a.jpg", file_of("jpeg 420"));
    write(*this / "cat/later/1.jpeg", file_of("jpeg grey"));
    write(*this / "cat/0.png", file_of("png L grey"));
    write(*this / "cat/notes.txt", {std::byte{'x'}});
    write(*this / "cat/.hidden.png", {std::byte{'x'}});
    write(*this / "cat/.thumbnails/0.png", {std::byte{'x'}});
    write(*this / ".git/0.png", {std::byte{'x'}});
    write(*this / "list.txt", {std::byte{'x'}});
  }
};

TEST_CASE("folders are classes, and images are in the order of their paths") {
  Pets const pets;
  ImageFolder const set(pets.path());
  CHECK(set.classes() == std::vector<std::string>{"cat", "dog"});
  REQUIRE(set.size() == 4);
  std::vector<std::string> const names{"cat/0.png", "cat/later/1.jpeg", "dog/a.jpg", "dog/b.PNG"};
  for (std::uint64_t i = 0; i < 4; ++i) {
    CHECK(set.name(i) == (pets / names[i]).string());
    CHECK(set.label(i) == (i < 2 ? 0 : 1));
    CHECK(set.get(i).target == set.label(i));
    CHECK(at::equal(set.get(i).data, frugal::read_image(pets / names[i])));
    CHECK(set.get(i).data.size(0) == 3);
  }
  CHECK(frugal::sample_name(set, 2) == (pets / "dog/a.jpg").string());
}

TEST_CASE("images are decoded as the options say") {
  Pets const pets;
  ImageFolder const set(pets.path(), {.channels = frugal::Channels::as_stored});
  CHECK(set.get(0).data.size(0) == 1);
  CHECK(set.get(3).data.size(0) == 3);
}

TEST_CASE("samples of one size are stacked to a batch") {
  Pets const pets;
  ImageFolder const set(pets.path());
  frugal::Batch const batch = frugal::Stack{}(std::vector{set.get(3), set.get(3)});
  CHECK(batch.data.sizes() == at::IntArrayRef({2, 3, 7, 13}));
  CHECK(at::equal(batch.target, at::ones({2}, at::kLong)));
}

TEST_CASE("a damaged image is an error of its own, with its path") {
  Pets const pets;
  auto cut = file_of("jpeg 420");
  cut.resize(300);
  write(pets / "dog/a.jpg", cut);
  ImageFolder const set(pets.path());
  CHECK(set.get(3).data.size(2) == 13);
  auto const fault = fault_of<DataError>([&] { return set.get(2); });
  CHECK(fault.where == (pets / "dog/a.jpg").string() + ", byte 300");
  fs::remove(pets / "dog/a.jpg");
  CHECK(fault_of<DataError>([&] { return set.get(2); }).where == (pets / "dog/a.jpg").string());
}

TEST_CASE("threads read the same set") {
  Pets const pets;
  ImageFolder const set(pets.path());
  at::Tensor const expected = set.get(2).data;
  std::vector<int> wrong(4);
  {
    std::vector<std::jthread> threads;
    for (int& mine : wrong) {
      threads.emplace_back([&] {
        for (int i = 0; i < 50; ++i) mine += !at::equal(set.get(2).data, expected);
      });
    }
  }
  CHECK(wrong == std::vector<int>(4));
}

TEST_CASE("the identity changes with the files and the options, and not with the place") {
  Pets const pets;
  auto const identity = ImageFolder(pets.path()).identity();
  CHECK(identity == ImageFolder(pets.path()).identity());
  CHECK(identity != ImageFolder(pets.path(), {.at_least = 8}).identity());
  fs::rename(pets / "dog", pets / "dog2");
  CHECK(identity != ImageFolder(pets.path()).identity());
  fs::rename(pets / "dog2", pets / "dog");
  CHECK(identity == ImageFolder(pets.path()).identity());

  auto const time = fs::last_write_time(pets / "cat/0.png");
  fs::last_write_time(pets / "cat/0.png", time + std::chrono::seconds(1));
  CHECK(identity != ImageFolder(pets.path()).identity());
  fs::last_write_time(pets / "cat/0.png", time);
  write(pets / "cat/0.png", file_of("png RGB rgb"));
  fs::last_write_time(pets / "cat/0.png", time);
  CHECK(identity != ImageFolder(pets.path()).identity());
}

TEST_CASE("a folder without classes, and a class without images, are refused") {
  support::TemporaryFolder const folder;
  CHECK(fault_of<DataError>([&] { return ImageFolder(folder.path()); }).what ==
        "there is no folder of a class");
  fs::create_directories(folder / "cat");
  auto const empty = fault_of<DataError>([&] { return ImageFolder(folder.path()); });
  CHECK(empty.what == "the class has no image");
  CHECK(empty.where == (folder / "cat").string());
  auto const missing = fault_of<DataError>([&] { return ImageFolder(folder / "none"); });
  CHECK(missing.where == (folder / "none").string());
  CHECK(missing.why == "No such file or directory");
}

}  // namespace frugal_test::image_folder
