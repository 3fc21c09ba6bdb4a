// SPDX-License-Identifier: Apache-2.0
// needs: images
#include <frugal/data/image/mask_folder.hpp>

#include <doctest/doctest.h>

#include <frugal/core/source/labels.hpp>
#include <frugal/data/image/encode.hpp>
#include <frugal/error.hpp>

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "files.hpp"
#include "support/files.hpp"
#include "support/reference.hpp"

namespace frugal_test::data_image_mask_folder {

using namespace frugal_test::image;
using namespace frugal;
namespace fs = std::filesystem;

static_assert(SampleSet<MaskFolder> && IdentifiedSet<MaskFolder>);

at::Tensor mask(std::int64_t height, std::int64_t width) {
  return at::arange(height * width).remainder(4).view({1, height, width}).to(at::kByte);
}

/// Two images with their masks, whose numbers are 0 to 3.
struct Masks : support::TemporaryFolder {
  Masks() {
    write("images/a.jpg", encode_jpeg(gradient(6, 9, 3)));
    write("masks/a.png", encode_png(mask(6, 9)));
    write("images/below/b.png", encode_png(gradient(5, 4, 3)));
    write("masks/below/b.png", encode_png(mask(5, 4)));
  }
  void write(std::string const& name, std::vector<std::byte> const& bytes) const {
    fs::create_directories((*this / name).parent_path());
    std::ofstream(*this / name, std::ios::binary)
        .write(reinterpret_cast<char const*>(bytes.data()),
               static_cast<std::streamsize>(bytes.size()));
  }
  MaskFolder set(MaskFolderOptions const& options = {.classes = 4}) const {
    return {*this / "images", *this / "masks", options};
  }
};

TEST_CASE("an image has the mask at its path in the other folder") {
  Masks const masks;
  MaskFolder const set = masks.set();
  REQUIRE(set.size() == 2);
  CHECK(set.name(1) == (masks / "images/below/b.png").string());
  AnnotatedImage const sample = set.get(1);
  CHECK(sample.id == 1);
  CHECK(at::equal(sample.data, read_image(masks / "images/below/b.png")));
  CHECK(at::equal(sample.mask, mask(5, 4)[0].to(at::kLong)));
  CHECK(!sample.boxes.defined());
  CHECK(set.identity() == masks.set().identity());
  CHECK(set.identity() != masks.set({.classes = 4, .ignored = 3}).identity());
}

TEST_CASE("masks are read as Pillow reads them: of a palette the index") {
  for (Json const& each : support::reference("annotated.json").at("label_files")) {
    CAPTURE(each.at("name").get<std::string>());
    at::Tensor const read = decode_image(bytes_of(each), {.channels = Channels::labels});
    CHECK(at::equal(read.to(at::kLong),
                    support::tensor_in(each.at("values"), {1, 7, 13}, at::kLong)));
  }
  auto const why = [](std::vector<std::byte> const& file) {
    return fault_of<DataError>([&] { return decode_image(file, {.channels = Channels::labels}); })
        .why;
  };
  CHECK(why(file_of("png RGB rgb")) == "it has colors");
  CHECK(why(file_of("png LA grey")) == "it has grey and alpha");
  CHECK(why(file_of("png 4 bits")).starts_with("it has grey of 2 or 4 bits"));
  CHECK(why(file_of("jpeg grey")) == "its compression changes values");
}

TEST_CASE("one number may stand for no class, and others are refused with their pixel") {
  Masks const masks;
  at::Tensor const read = masks.set({.classes = 3, .ignored = 3}).get(1).mask;
  at::Tensor const expected = mask(5, 4)[0].to(at::kLong);
  CHECK(at::equal(read, expected.masked_fill(expected.eq(3), ignored_label)));
  auto const fault = fault_of<DataError>([&] { return masks.set({.classes = 3}).get(0); });
  CHECK(fault.where == (masks / "masks/a.png").string() + ", row 0, column 3");
  CHECK(fault.why == "it is 3, and there are 3 classes");
  CHECK_THROWS_AS(masks.set({}), SettingsError);
  CHECK_THROWS_AS(masks.set({.classes = 4, .decoding = {.at_least = 8}}), SettingsError);
}

TEST_CASE("files without their counterpart, or of two sizes, are refused") {
  Masks const masks;
  auto const refused = [&] { return fault_of<DataError>([&] { return masks.set(); }); };
  masks.write("masks/a.png", encode_png(mask(9, 6)));
  CHECK(fault_of<DataError>([&] { return masks.set().get(0); }).why ==
        "it is 6 x 9, and the image 9 x 6");

  fs::remove(masks / "masks/a.png");
  CHECK(refused().what == "an image has no mask");
  CHECK(refused().where == (masks / "images/a.jpg").string());
  CHECK(masks.set({.classes = 4, .only_with_mask = true}).size() == 1);

  fs::remove(masks / "images/a.jpg");
  masks.write("masks/c.png", encode_png(mask(5, 4)));
  CHECK(refused().what == "a mask has no image");
  CHECK(refused().where == (masks / "masks/c.png").string());
  masks.write("images/c.jpg", encode_jpeg(gradient(5, 4, 3)));
  masks.write("images/c.png", encode_png(gradient(5, 4, 3)));
  CHECK(refused().what == "two files have one name");

  fs::remove_all(masks / "masks");
  fs::remove_all(masks / "images/c.png");
  CHECK(refused().what == "the images cannot be listed");
  fs::create_directories(masks / "masks");
  CHECK(fault_of<DataError>([&] {
          return masks.set({.classes = 4, .only_with_mask = true});
        }).what == "there is no image with a mask");
}

}  // namespace frugal_test::data_image_mask_folder
