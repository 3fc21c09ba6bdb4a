// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/data/image/coco_file.hpp>

#include <frugal/base/json.hpp>
#include <frugal/base/number_text.hpp>
#include <frugal/data/image/region.hpp>
#include <frugal/error.hpp>
#include <frugal/inline.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <optional>
#include <string_view>
#include <unordered_map>
#include <unordered_set>

namespace frugal::detail {

/// Makes objects of the elements of a COCO file's lists, one after the other: all of the file as
/// values would take a hundred bytes for each number.
class CocoParser : public NumbersAsWritten {
 public:
  CocoParser(JsonStream const& stream, CocoOptions const& options, std::string const& name)
      : stream_(stream), options_(options), name_(name) {}

  // The parser's tokens. Those of an element go to its Builder.
  bool Null() {
    return scalar([](Json::Builder& to) { return to.Null(); });
  }
  bool Bool(bool truth) {
    return scalar([truth](Json::Builder& to) { return to.Bool(truth); });
  }
  bool RawNumber(char const* digits, unsigned size, bool copy) {
    return scalar([=](Json::Builder& to) { return to.RawNumber(digits, size, copy); });
  }
  bool String(char const* text, unsigned size, bool copy) {
    return is_json_text({text, size}) &&
           scalar([=](Json::Builder& to) { return to.String(text, size, copy); });
  }
  bool Key(char const* text, unsigned size, bool copy) {
    if (element_) return element_->Key(text, size, copy);
    if (depth_ == 1) key_.assign(text, size);
    return is_json_text({text, size});
  }
  bool StartObject() {
    return open(true, [](Json::Builder& to) { return to.StartObject(); });
  }
  bool StartArray() {
    return open(false, [](Json::Builder& to) { return to.StartArray(); });
  }
  bool EndObject(unsigned size) {
    return close([=](Json::Builder& to) { return to.EndObject(size); });
  }
  bool EndArray(unsigned size) {
    return close([=](Json::Builder& to) { return to.EndArray(size); });
  }

  CocoFile finish();

  [[noreturn]] void refuse(std::size_t byte, std::string what, std::string why,
                           std::string fix = "Correct the file, or make it again.",
                           std::string const& whose = {}) const {
    throw DataError(
        {.what = std::move(what),
         .where = name_ + ", byte " + std::to_string(byte) + (whose.empty() ? "" : ", " + whose),
         .why = std::move(why),
         .fix = std::move(fix)});
  }

 private:
  enum List { images, annotations, categories, none };
  static constexpr std::array<std::string_view, 3> lists{"images", "annotations", "categories"};
  static constexpr std::size_t deepest = 64;

  struct Image {
    CocoImage image;
    std::size_t at;
  };
  struct Category {
    std::int64_t id;
    std::string name;
    std::size_t keypoints;  // how many
    std::size_t at;
  };
  struct Object {
    CocoObject object;
    std::int64_t image, category;
    std::size_t size_at;                      // where the region's size is
    std::array<std::uint32_t, 2> size{0, 0};  // of a region: height and width
    std::size_t at;
  };

  template <class Token>
  bool scalar(Token&& token) {
    if (element_) return token(*element_);
    refuse_misplaced();
    return true;
  }
  template <class Token>
  bool open(bool object, Token&& token) {
    if (depth_ == deepest) return false;
    if (depth_ == 1 && list_of(key_) != none && !object) {
      list_ = list_of(key_);
      if (std::exchange(seen_[list_], true)) {
        refuse(stream_.Tell(), "a COCO file has a list twice", "it is \"" + key_ + "\"");
      }
    } else if (!element_) {
      if (depth_ == 0 ? !object : depth_ < 3 && (list_ == none || !object)) refuse_misplaced();
      if (depth_ == 2 && list_ != none) element_.emplace(stream_);
    }
    ++depth_;
    return !element_ || token(*element_);
  }
  template <class Token>
  bool close(Token&& token) {
    --depth_;
    if (!element_) {
      if (depth_ == 1) list_ = none;
      return true;
    }
    if (!token(*element_)) return false;
    if (depth_ == 2) {
      Json const value = element_->take();
      element_.reset();
      element(value);
    }
    return true;
  }

  static List list_of(std::string_view key) {
    return static_cast<List>(std::find(lists.begin(), lists.end(), key) - lists.begin());
  }
  /// Of a token that is not within an element: refuses it where an element or a list has to be.
  void refuse_misplaced() const {
    if (depth_ == 0) refuse(0, "the file is not in COCO's format", "it is no JSON object");
    if (depth_ == 1 && list_of(key_) != none) {
      refuse(stream_.Tell(), "the file is not in COCO's format", "\"" + key_ + "\" is no list");
    }
    if (depth_ == 2 && list_ != none) {
      refuse(stream_.Tell(), "the file is not in COCO's format",
             "\"" + std::string(lists[list_]) + "\" has something that is no object");
    }
  }

  void element(Json const& value) {
    std::unordered_set<std::string_view> names;
    for (Json const& each : value.items()) {
      if (!names.insert(each.name()).second) {
        refuse(value, each, "\"" + each.name() + "\" is there twice");
      }
    }
    if (list_ == images) add_image(value);
    if (list_ == categories) add_category(value);
    if (list_ == annotations) add_object(value);
  }

  std::string whose(Json const& element) const {
    Json const* const id = element.find("id");
    bool const known = id != nullptr && id->is(Json::Kind::number);
    std::string const kind = list_ == images        ? "image"
                             : list_ == annotations ? "annotation"
                                                    : "category";
    return kind + (known ? " " + id->text() : "");
  }
  [[noreturn]] void refuse(Json const& element, Json const& at, std::string why) const {
    refuse(at.at(), "a COCO file has an invalid " + whose(element), std::move(why));
  }
  Json const& member(Json const& element, char const* name) const {
    Json const* const found = element.find(name);
    if (found == nullptr) {
      refuse(element, element, "\"" + std::string(name) + "\" is missing");
    }
    return *found;
  }
  std::int64_t integer(Json const& element, char const* name) const {
    Json const& found = member(element, name);
    auto const value = found.as_signed();
    if (!value) refuse(element, found, "\"" + std::string(name) + "\" is not an integer");
    return *value;
  }
  std::uint32_t side(Json const& element, char const* name) const {
    std::int64_t const value = integer(element, name);
    if (value < 1 || value > std::numeric_limits<std::int32_t>::max() / 16) {
      refuse(element, member(element, name), "\"" + std::string(name) + "\" is not a size");
    }
    return static_cast<std::uint32_t>(value);
  }
  std::string const& text(Json const& element, char const* name) const {
    Json const& found = member(element, name);
    if (!found.is(Json::Kind::text)) {
      refuse(element, found, "\"" + std::string(name) + "\" is not a text");
    }
    return found.text();
  }
  std::vector<double> numbers(Json const& element, Json const& list, char const* name) const {
    if (!list.is(Json::Kind::array)) {
      refuse(element, list, "\"" + std::string(name) + "\" is not a list");
    }
    std::vector<double> all;
    all.reserve(list.items().size());
    for (Json const& each : list.items()) {
      auto const value = each.as_double();
      if (!value || !std::isfinite(*value)) {
        refuse(element, each, "\"" + std::string(name) + "\" has what is no finite number");
      }
      all.push_back(*value);
    }
    return all;
  }

  void add_image(Json const& value) {
    images_.push_back({.image = {.id = integer(value, "id"),
                                 .file = text(value, "file_name"),
                                 .height = side(value, "height"),
                                 .width = side(value, "width")},
                       .at = value.at()});
  }
  void add_category(Json const& value) {
    Category category{
        .id = integer(value, "id"), .name = text(value, "name"), .keypoints = 0, .at = value.at()};
    Json const* const names = options_.keypoints ? value.find("keypoints") : nullptr;
    if (names != nullptr) {
      if (!names->is(Json::Kind::array)) refuse(value, *names, "\"keypoints\" is not a list");
      std::vector<std::string> mine;
      for (Json const& each : names->items()) {
        if (!each.is(Json::Kind::text)) refuse(value, each, "\"keypoints\" has what is no name");
        mine.push_back(each.text());
      }
      if (!mine.empty() && !keypoints_.empty() && mine != keypoints_) {
        refuse(value, *names, "its keypoints are not those of another category");
      }
      category.keypoints = mine.size();
      if (!mine.empty()) keypoints_ = std::move(mine);
    }
    categories_.push_back(std::move(category));
  }
  void add_object(Json const& value);
  void add_region(Json const& value, Object& to) const;

  static std::string id_of(Object const& each) {
    return "annotation " + std::to_string(each.object.id);
  }
  /// Within its image, or dropped: then false.
  bool fit_box(CocoFile& file, CocoImage const& image, Object& each) const;
  void fit_keypoints(CocoFile& file, CocoImage const& image, Object& each, std::size_t count) const;
  void check_region(CocoImage const& image, Object const& each) const;
  void bad(CocoFile& file, CocoImage const& image, Object const& each, std::string why) const;

  JsonStream const& stream_;
  CocoOptions const& options_;
  std::string const& name_;
  std::optional<Json::Builder> element_{};
  std::size_t depth_ = 0;
  std::string key_{};
  List list_ = none;
  std::array<bool, 4> seen_{};
  std::vector<Image> images_{};
  std::vector<Object> objects_{};
  std::vector<Category> categories_{};
  std::vector<std::string> keypoints_{};
};

FRUGAL_INLINE void CocoParser::add_object(Json const& value) {
  Object to{.object = {.id = integer(value, "id")},
            .image = integer(value, "image_id"),
            .category = integer(value, "category_id"),
            .size_at = 0,
            .at = value.at()};
  if (Json const* const crowd = value.find("iscrowd")) {
    auto const number = crowd->as_unsigned();
    if (!crowd->is(Json::Kind::boolean) && (!number || *number > 1)) {
      refuse(value, *crowd, "\"iscrowd\" is neither 0 nor 1");
    }
    to.object.crowd = crowd->truth() || number == 1U;
  }
  if (options_.boxes || options_.keypoints) {
    Json const& box = member(value, "bbox");
    auto const all = numbers(value, box, "bbox");
    if (all.size() != 4) {
      refuse(value, box,
             "\"bbox\" has " + std::to_string(all.size()) +
                 " numbers, and not its left, top, width and height");
    }
    to.object.box = {all[0], all[1], all[0] + all[2], all[1] + all[3]};
  }
  if (options_.keypoints) {
    if (Json const* const points = value.find("keypoints")) {
      to.object.keypoints = numbers(value, *points, "keypoints");
      if (to.object.keypoints.size() % 3 != 0) {
        refuse(value, *points, "\"keypoints\" are not x, y and visibility of each");
      }
    }
  }
  if (options_.mask) add_region(value, to);
  objects_.push_back(std::move(to));
}

FRUGAL_INLINE void CocoParser::add_region(Json const& value, Object& to) const {
  Json const& region = member(value, "segmentation");
  if (region.is(Json::Kind::array)) {
    for (Json const& each : region.items()) {
      auto polygon = numbers(value, each, "segmentation");
      if (polygon.size() < 6 || polygon.size() % 2 != 0) {
        refuse(value, each,
               "a polygon has " + std::to_string(polygon.size()) +
                   " numbers, and not x and y of three vertices or more");
      }
      to.object.polygons.push_back(std::move(polygon));
    }
    if (to.object.polygons.empty()) {
      refuse(value, region, "\"segmentation\" has no polygon");
    }
    return;
  }
  Json const* const size = region.find("size");
  Json const* const counts = region.find("counts");
  if (size == nullptr || counts == nullptr) {
    refuse(value, region, "\"segmentation\" is neither polygons nor counts with a size");
  }
  auto const sides = numbers(value, *size, "size");
  constexpr double most = std::numeric_limits<std::uint32_t>::max();
  auto const is_count = [](double x) { return x >= 0 && x <= most && std::floor(x) == x; };
  if (sides.size() != 2 || !std::all_of(sides.begin(), sides.end(), is_count)) {
    refuse(value, *size, "\"size\" is not a height and a width");
  }
  to.size_at = size->at();
  to.size = {static_cast<std::uint32_t>(sides[0]), static_cast<std::uint32_t>(sides[1])};
  if (counts->is(Json::Kind::text)) {
    auto decoded = decoded_counts(counts->text());
    if (!decoded) refuse(value, *counts, "\"counts\" is no compressed region");
    to.object.counts = *std::move(decoded);
  } else {
    for (double const each : numbers(value, *counts, "counts")) {
      if (!is_count(each)) refuse(value, *counts, "\"counts\" has what is no length");
      to.object.counts.push_back(static_cast<std::uint32_t>(each));
    }
  }
  std::uint64_t sum = 0;
  for (std::uint32_t const each : to.object.counts) sum += each;
  std::uint64_t const pixels = std::uint64_t{to.size[0]} * to.size[1];
  if (sum != pixels) {
    refuse(value, *counts,
           "\"counts\" sum to " + std::to_string(sum) + ", and the region has " +
               std::to_string(pixels) + " pixels");
  }
}

FRUGAL_INLINE void CocoParser::bad(CocoFile& file, CocoImage const& image, Object const& each,
                                   std::string why) const {
  std::string const size = std::to_string(image.width) + " x " + std::to_string(image.height);
  if (options_.bad == BadAnnotations::refuse) {
    refuse(each.at, "an annotation does not lie within its image",
           why + "; image " + std::to_string(image.id) + " is " + size,
           "Correct it, or let BadAnnotations::drop clip or leave out such annotations.",
           id_of(each));
  }
  if (file.first_bad.empty()) file.first_bad = id_of(each) + ": " + why + " of " + size;
}

FRUGAL_INLINE bool CocoParser::fit_box(CocoFile& file, CocoImage const& image, Object& each) const {
  auto& [left, top, right, bottom] = each.object.box;
  std::string const text = "its box is from " + general(left, 6) + ", " + general(top, 6) + " to " +
                           general(right, 6) + ", " + general(bottom, 6);
  double const w = image.width, h = image.height;
  constexpr double rounding = 1;  // pixels
  bool const outside =
      left < -rounding || top < -rounding || right > w + rounding || bottom > h + rounding;
  left = std::clamp(left, 0.0, w);
  right = std::clamp(right, 0.0, w);
  top = std::clamp(top, 0.0, h);
  bottom = std::clamp(bottom, 0.0, h);
  // As single precision, which tensors have.
  bool const empty = !(static_cast<float>(right) > static_cast<float>(left)) ||
                     !(static_cast<float>(bottom) > static_cast<float>(top));
  if (!outside && !empty) return true;
  bad(file, image, each, text);
  (empty ? file.dropped : file.clipped) += 1;
  return !empty;
}

FRUGAL_INLINE void CocoParser::fit_keypoints(CocoFile& file, CocoImage const& image, Object& each,
                                             std::size_t count) const {
  auto& all = each.object.keypoints;
  if (!all.empty() && all.size() != 3 * count) {
    refuse(
        each.at, "an annotation does not have the keypoints of its category",
        "it has " + std::to_string(all.size() / 3) + ", and the category " + std::to_string(count),
        "Correct the file.", id_of(each));
  }
  for (std::size_t k = 0; k < all.size(); k += 3) {
    double const visible = all[k + 2];
    if (visible != 0 && visible != 1 && visible != 2) {
      refuse(each.at, "a keypoint has no visibility",
             "keypoint " + std::to_string(k / 3) + " has " + general(visible, 6) +
                 " instead of 0, 1 or 2",
             "Correct the file.", id_of(each));
    }
    bool const inside =
        all[k] >= 0 && all[k] <= image.width && all[k + 1] >= 0 && all[k + 1] <= image.height;
    if (visible != 0 && !inside) {
      bad(file, image, each,
          "keypoint " + std::to_string(k / 3) + " is at " + general(all[k], 6) + ", " +
              general(all[k + 1], 6));
      ++file.hidden;
    }
    if (visible == 0 || !inside) all[k] = all[k + 1] = all[k + 2] = 0;
  }
}

FRUGAL_INLINE void CocoParser::check_region(CocoImage const& image, Object const& each) const {
  if (each.object.polygons.empty() &&
      (each.size[0] != image.height || each.size[1] != image.width)) {
    refuse(each.size_at, "a region has another size than its image",
           "it is " + std::to_string(each.size[1]) + " x " + std::to_string(each.size[0]) +
               ", and image " + std::to_string(image.id) + " is " + std::to_string(image.width) +
               " x " + std::to_string(image.height),
           "Correct the file.", id_of(each));
  }
  // A polygon may leave its image; one that is far away would be drawn for long, point by point.
  for (auto const& polygon : each.object.polygons) {
    for (std::size_t i = 0; i < polygon.size(); ++i) {
      double const side = i % 2 == 0 ? image.width : image.height;
      if (polygon[i] >= -side && polygon[i] <= 2 * side) continue;
      refuse(each.at, "a polygon has a vertex far outside of its image",
             "a coordinate is " + general(polygon[i], 6) + ", and the side " + general(side, 6),
             "Correct the file.", id_of(each));
    }
  }
}

FRUGAL_INLINE CocoFile CocoParser::finish() {
  for (std::size_t i = 0; i < lists.size(); ++i) {
    if (!seen_[i]) {
      refuse(stream_.Tell(), "the file is not in COCO's format",
             "it has no \"" + std::string(lists[i]) + "\"",
             "Give COCO's file of instances or of keypoints.");
    }
  }
  auto const by_id = [](auto const& a, auto const& b) { return a.id < b.id; };
  CocoFile file;
  file.keypoints = std::move(keypoints_);

  std::sort(categories_.begin(), categories_.end(), by_id);
  std::unordered_map<std::int64_t, std::size_t> labels;
  for (Category& each : categories_) {
    if (!labels.emplace(each.id, file.classes.size()).second) {
      refuse(each.at, "a COCO file has two categories of one id",
             "it is " + std::to_string(each.id));
    }
    file.category_ids.push_back(each.id);
    file.classes.push_back(std::move(each.name));
  }

  std::sort(images_.begin(), images_.end(),
            [&](Image const& a, Image const& b) { return by_id(a.image, b.image); });
  std::unordered_map<std::int64_t, std::size_t> numbers;
  for (Image& each : images_) {
    if (!numbers.emplace(each.image.id, file.images.size()).second) {
      refuse(each.at, "a COCO file has two images of one id",
             "it is " + std::to_string(each.image.id));
    }
    file.images.push_back(std::move(each.image));
  }

  std::unordered_set<std::int64_t> ids;
  for (Object& each : objects_) {
    if (!ids.insert(each.object.id).second) {
      refuse(each.at, "a COCO file has two annotations of one id",
             "it is " + std::to_string(each.object.id));
    }
    auto const image = numbers.find(each.image);
    if (image == numbers.end()) {
      refuse(each.at, "an annotation is of an image that is not in the file",
             "its image_id is " + std::to_string(each.image), "Correct the file.", id_of(each));
    }
    auto const label = labels.find(each.category);
    if (label == labels.end()) {
      refuse(each.at, "an annotation is of a category that is not in the file",
             "its category_id is " + std::to_string(each.category), "Correct the file.",
             id_of(each));
    }
    each.object.label = static_cast<std::int64_t>(label->second);
    CocoImage& of = file.images[image->second];
    if (options_.mask) check_region(of, each);
    bool const boxes = options_.boxes || options_.keypoints;
    each.object.has_box = boxes && fit_box(file, of, each);
    if (each.object.has_box && options_.keypoints) {
      fit_keypoints(file, of, each, categories_[label->second].keypoints);
    }
    // A mask needs objects without a box, too.
    if (each.object.has_box || options_.mask) of.objects.push_back(std::move(each.object));
  }
  return file;
}

}  // namespace frugal::detail

namespace frugal {

FRUGAL_INLINE std::string CocoFile::warning() const {
  if (first_bad.empty()) return {};
  return "annotations that do not lie within their image: " + std::to_string(dropped) +
         " were left out, " + std::to_string(clipped) + " boxes were clipped, " +
         std::to_string(hidden) + " keypoints were hidden; the first is " + first_bad;
}

FRUGAL_INLINE CocoFile parse_coco(std::string text, CocoOptions const& options,
                                  std::string const& name) {
  if (!options.boxes && !options.mask && !options.keypoints) {
    throw SettingsError({.what = "no part of the annotations is asked for",
                         .where = "CocoOptions",
                         .why = "boxes, mask and keypoints are false",
                         .fix = "Set one of them, or read the images with ImageFolder."});
  }
  detail::JsonStream stream(text.data(), text.size());
  detail::CocoParser parser(stream, options, name);
  if (auto const fault = detail::parse_json(stream, parser)) {
    std::string const why = fault->why.substr(0, fault->why.find_last_not_of('.') + 1);
    parser.refuse(fault->at, "the file is no JSON", why, "Fetch the file again, or make it again.");
  }
  return parser.finish();
}

FRUGAL_INLINE std::vector<std::int64_t> coco_mask(CocoImage const& image) {
  constexpr std::int64_t ignored = -100;
  std::vector<std::int64_t> mask(std::size_t{image.height} * image.width);
  for (CocoObject const& object : image.objects) {
    auto const draw = [&](std::vector<detail::PixelRun> const& runs) {
      detail::paint(runs, object.label + 1, ignored, image.height, image.width, mask);
    };
    if (object.polygons.empty()) draw(detail::counted_runs(object.counts));
    for (auto const& polygon : object.polygons) {
      draw(detail::polygon_runs(polygon, image.height, image.width));
    }
  }
  return mask;
}

}  // namespace frugal
