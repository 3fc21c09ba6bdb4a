// SPDX-License-Identifier: Apache-2.0
// torch-free
#include <frugal/data/image/coco_file.hpp>

#include <doctest/doctest.h>

#include <frugal/error.hpp>

#include <array>
#include <cstdint>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace frugal_test::data_image_coco_file {

using frugal::BadAnnotations;
using frugal::CocoFile;
using frugal::CocoOptions;
using frugal::parse_coco;
using Json = nlohmann::json;

/// An image of 20 x 10 with one object of every part, and one without an object.
Json file() {
  return Json::parse(R"({
    "info": {"year": 2026, "more": [1, {"id": 2}]},
    "licenses": [{"id": 1, "name": "x"}],
    "annotations": [
      {"id": 31, "image_id": 9, "category_id": 4, "bbox": [2.5, 1, 10, 4], "iscrowd": 0,
       "segmentation": [[2, 1, 12, 1, 12, 5]], "keypoints": [3, 2, 2, 5, 4, 0, 20, 10, 1], "area": 40}
    ],
    "images": [{"id": 9, "file_name": "b/9.png", "height": 10, "width": 20},
               {"id": 2, "file_name": "2.jpg", "height": 4, "width": 6, "license": 1}],
    "categories": [{"id": 8, "name": "sky"},
                   {"id": 4, "name": "person", "keypoints": ["nose", "left_eye", "right_eye"]}]
  })");
}

frugal::Fault refused(std::string text, CocoOptions const& options = {}) {
  try {
    static_cast<void>(parse_coco(std::move(text), options, "a.json"));
  } catch (frugal::DataError const& error) {
    return error.fault();
  }
  return {.what = "nothing was thrown", .where = "", .why = "", .fix = ""};
}
frugal::Fault refused(Json const& all, CocoOptions const& options = {}) {
  return refused(all.dump(), options);
}

TEST_CASE("images are in the order of their ids, and labels in that of the categories'") {
  CocoFile const read = parse_coco(file().dump(), {.mask = true, .keypoints = true}, "a.json");
  CHECK(read.classes == std::vector<std::string>{"person", "sky"});
  CHECK(read.category_ids == std::vector<std::int64_t>{4, 8});
  CHECK(read.keypoints == std::vector<std::string>{"nose", "left_eye", "right_eye"});
  REQUIRE(read.images.size() == 2);
  CHECK(read.images[0].id == 2);
  CHECK(read.images[0].file == "2.jpg");
  CHECK(read.images[0].objects.empty());
  CHECK(read.images[1].height == 10);
  CHECK(read.images[1].width == 20);
  REQUIRE(read.images[1].objects.size() == 1);
  auto const& object = read.images[1].objects[0];
  CHECK(object.id == 31);
  CHECK(object.label == 0);
  CHECK(object.has_box);
  CHECK(object.box == std::array{2.5, 1.0, 12.5, 5.0});
  CHECK(!object.crowd);
  CHECK(object.polygons == std::vector<std::vector<double>>{{2, 1, 12, 1, 12, 5}});
  CHECK(object.keypoints == std::vector<double>{3, 2, 2, 0, 0, 0, 20, 10, 1});
  CHECK(read.warning().empty());
}

TEST_CASE("parts that are not asked for are not read, and may be missing") {
  Json all = file();
  all["annotations"][0]["segmentation"] = "x";
  all["annotations"][0]["keypoints"] = nullptr;
  auto const boxes = parse_coco(all.dump(), {}, "a.json");
  CHECK(boxes.images[1].objects[0].has_box);
  CHECK(boxes.images[1].objects[0].keypoints.empty());
  CHECK(boxes.keypoints.empty());

  all = file();
  all["annotations"][0].erase("bbox");
  auto const masks = parse_coco(all.dump(), {.boxes = false, .mask = true}, "a.json");
  CHECK(!masks.images[1].objects[0].has_box);
  CHECK(masks.images[1].objects[0].polygons.size() == 1);
}

TEST_CASE("masks are those of pycocotools, to the pixel") {
  Json const reference =
      Json::parse(std::ifstream(std::string(FRUGAL_TEST_DIR) + "/reference/annotated.json"));
  for (Json const& each : reference.at("masks")) {
    CAPTURE(each.at("name").get<std::string>());
    auto const read = parse_coco(each.at("file").dump(), {.boxes = false, .mask = true}, "a.json");
    CHECK(frugal::coco_mask(read.images[0]) == each.at("mask").get<std::vector<std::int64_t>>());
  }
}

TEST_CASE("a text that is no COCO file is refused, with the byte") {
  CHECK(refused(std::string("{\"images\": [}")).where == "a.json, byte 12");
  CHECK(refused(std::string("{\"images\": [}")).what == "the file is no JSON");
  CHECK(refused(std::string("[]")).why == "it is no JSON object");
  CHECK(refused(std::string("3")).why == "it is no JSON object");
  CHECK(refused(std::string("{\"images\": {}}")).why == "\"images\" is no list");
  CHECK(refused(std::string("{\"images\": [7]}")).why ==
        "\"images\" has something that is no object");
  CHECK(refused(std::string("{\"images\": [], \"images\": []}")).why == "it is \"images\"");
  CHECK(refused(std::string("{\"images\": [], \"categories\": []}")).why ==
        "it has no \"annotations\"");
  CHECK(refused(std::string("{\"x\": ") + std::string(100, '[')).what == "the file is no JSON");
  std::string const all = file().dump();
  for (std::size_t size = 0; size < all.size(); ++size) {
    CHECK(refused(all.substr(0, size)).what == "the file is no JSON");
  }
}

TEST_CASE("an element with a bad member is refused, with its id and the member's byte") {
  CocoOptions const all_parts{.mask = true, .keypoints = true};
  struct Bad {
    char const *list, *change, *whose, *why;
  };
  for (Bad const& bad : {
           Bad{"images", R"({"height": 0})", "image 9", "\"height\" is not a size"},
           Bad{"images", R"({"width": 2.5})", "image 9", "\"width\" is not an integer"},
           Bad{"images", R"({"file_name": 3})", "image 9", "\"file_name\" is not a text"},
           Bad{"images", R"({"id": null})", "image", "\"id\" is missing"},
           Bad{"categories", R"({"name": []})", "category 8", "\"name\" is not a text"},
           Bad{"annotations", R"({"category_id": "4"})", "annotation 31",
               "\"category_id\" is not an integer"},
           Bad{"annotations", R"({"bbox": [1, 2, 3]})", "annotation 31",
               "\"bbox\" has 3 numbers, and not its left, top, width and height"},
           Bad{"annotations", R"({"bbox": [1, 2, 3, "4"]})", "annotation 31",
               "\"bbox\" has what is no finite number"},
           Bad{"annotations", R"({"iscrowd": 2})", "annotation 31",
               "\"iscrowd\" is neither 0 nor 1"},
           Bad{"annotations", R"({"keypoints": [1, 2]})", "annotation 31",
               "\"keypoints\" are not x, y and visibility of each"},
           Bad{"annotations", R"({"segmentation": [[1, 2, 3, 4]]})", "annotation 31",
               "a polygon has 4 numbers, and not x and y of three vertices or more"},
           Bad{"annotations", R"({"segmentation": []})", "annotation 31",
               "\"segmentation\" has no polygon"},
           Bad{"annotations", R"({"segmentation": {"size": [10, 20]}})", "annotation 31",
               "\"segmentation\" is neither polygons nor counts with a size"},
           Bad{"annotations", R"({"segmentation": {"size": [10, 20], "counts": "P"}})",
               "annotation 31", "\"counts\" is no compressed region"},
           Bad{"annotations", R"({"segmentation": {"size": [10, 20], "counts": [100, -1]}})",
               "annotation 31", "\"counts\" has what is no length"},
           Bad{"annotations", R"({"segmentation": {"size": [10, 20], "counts": [150, 51]}})",
               "annotation 31", "\"counts\" sum to 201, and the region has 200 pixels"},
       }) {
    Json all = file();
    Json& element = all[bad.list][0];
    element.merge_patch(Json::parse(bad.change));
    if (element["id"].is_null()) element.erase("id");
    CAPTURE(bad.change);
    auto const fault = refused(all, all_parts);
    CHECK(fault.what == std::string("a COCO file has an invalid ") + bad.whose);
    CHECK(fault.why == bad.why);
    // The byte of the value; of the element, where that is missing.
    std::string const text = all.dump();
    auto const byte = std::stoul(fault.where.substr(std::string("a.json, byte ").size()));
    CHECK(text.find(element.dump()) <= byte);
    CHECK(byte < text.find(element.dump()) + element.dump().size());
  }
  std::string twice = file().dump();
  twice.replace(twice.find("\"id\":31"), 7, "\"id\":31,\"id\":32");
  CHECK(refused(twice).why == "\"id\" is there twice");
}

TEST_CASE("ids that are there twice, or name nothing, are refused") {
  auto const with = [](char const* list, Json const& change) {
    Json all = file();
    Json copy = all[list][0];
    copy.update(change);
    all[list].push_back(std::move(copy));
    return refused(all);
  };
  CHECK(with("images", Json::object()).what == "a COCO file has two images of one id");
  CHECK(with("images", Json::object()).why == "it is 9");
  CHECK(with("categories", Json::object()).what == "a COCO file has two categories of one id");
  CHECK(with("annotations", Json::object()).what == "a COCO file has two annotations of one id");
  auto const image = with("annotations", {{"id", 32}, {"image_id", 5}});
  CHECK(image.what == "an annotation is of an image that is not in the file");
  CHECK(image.why == "its image_id is 5");
  CHECK(image.where.ends_with(", annotation 32"));
  auto const category = with("annotations", {{"id", 32}, {"category_id", 5}});
  CHECK(category.what == "an annotation is of a category that is not in the file");
  CHECK(category.why == "its category_id is 5");
}

TEST_CASE("boxes and keypoints outside of their image are refused, or dropped and counted") {
  Json all = file();
  auto const bad = [&](Json const& change) {
    all = file();
    all["annotations"][0].update(change);
    return refused(all, {.keypoints = true});
  };
  auto const dropped = [&] {
    return parse_coco(all.dump(), {.keypoints = true, .bad = BadAnnotations::drop}, "a.json");
  };
  // Up to a pixel is rounding.
  CHECK(bad({{"bbox", {-1, 0, 22, 10.5}}}).what == "nothing was thrown");
  CHECK(dropped().images[1].objects[0].box == std::array{0.0, 0.0, 20.0, 10.0});
  CHECK(dropped().warning().empty());

  auto const far = bad({{"bbox", {-1.5, 0, 8, 4}}});
  CHECK(far.what == "an annotation does not lie within its image");
  CHECK(far.why == "its box is from -1.5, 0 to 6.5, 4; image 9 is 20 x 10");
  CHECK(far.where.ends_with(", annotation 31"));
  CHECK(dropped().images[1].objects[0].box == std::array{0.0, 0.0, 6.5, 4.0});
  CHECK(dropped().clipped == 1);

  CHECK(bad({{"bbox", {5, 5, -2, 3}}}).why == "its box is from 5, 5 to 3, 8; image 9 is 20 x 10");
  CHECK(dropped().images[1].objects.empty());
  CHECK(
      dropped().warning() ==
      "annotations that do not lie within their image: 1 were left out, 0 boxes were clipped, 0 "
      "keypoints were hidden; the first is annotation 31: its box is from 5, 5 to 3, 8 of 20 x 10");
  CHECK(bad({{"bbox", {5, 5, 2, 0}}}).what == "an annotation does not lie within its image");

  CHECK(bad({{"keypoints", {3, 2, 2, 5, 4, 1, 20.5, 1, 1}}}).why ==
        "keypoint 2 is at 20.5, 1; image 9 is 20 x 10");
  CHECK(dropped().images[1].objects[0].keypoints == std::vector<double>{3, 2, 2, 5, 4, 1, 0, 0, 0});
  CHECK(dropped().hidden == 1);
  CHECK(bad({{"keypoints", {3, 2, 2}}}).why == "it has 1, and the category 3");
  CHECK(bad({{"keypoints", {3, 2, 2, 5, 4, 3, 1, 1, 1}}}).why ==
        "keypoint 1 has 3 instead of 0, 1 or 2");
}

TEST_CASE("a region of another size than its image is refused, and a polygon far outside") {
  Json all = file();
  all["annotations"][0]["segmentation"] = {{"size", {20, 10}}, {"counts", {200}}};
  CHECK(refused(all, {.mask = true}).why == "it is 10 x 20, and image 9 is 20 x 10");
  all["annotations"][0]["segmentation"] = {{1, 2, 3, 4, 1e9, 6}};
  CHECK(refused(all, {.mask = true}).why == "a coordinate is 1e+09, and the side 20");
}

TEST_CASE("a mask keeps an object whose box is dropped") {
  Json all = file();
  all["annotations"][0]["bbox"] = {5, 5, 0, 0};
  auto const read = parse_coco(all.dump(), {.mask = true, .bad = BadAnnotations::drop}, "a.json");
  REQUIRE(read.images[1].objects.size() == 1);
  CHECK(!read.images[1].objects[0].has_box);
}

TEST_CASE("no part at all is refused") {
  CHECK_THROWS_AS(parse_coco(file().dump(), {.boxes = false}, "a.json"), frugal::SettingsError);
}

}  // namespace frugal_test::data_image_coco_file
