// SPDX-License-Identifier: Apache-2.0
// needs: images
// Shapes: C channels, H rows, W columns.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <system_error>
#include <tuple>
#include <utility>
#include <vector>

#include <ATen/core/Tensor.h>

#include <frugal/base/hash.hpp>
#include <frugal/core/source/data_identity.hpp>
#include <frugal/data/file_identity.hpp>
#include <frugal/data/image/decode.hpp>
#include <frugal/data/image/pixels.hpp>
#include <frugal/error.hpp>

namespace frugal {

namespace detail {

/// Calls `step`, with a file system error as DataError.
template <class Walk>
void list_images(Walk&& step) {
  try {
    step();
  } catch (std::filesystem::filesystem_error const& error) {
    throw DataError({.what = "the images cannot be listed",
                     .where = error.path1().string(),
                     .why = error.code().message(),
                     .fix = "Check the path, and whether this user may read it."});
  }
}

/// What a set of image files is, as a text for caches: paths below its folder, sizes and times of
/// change. Asks the file system for each file.
class ImageFilesText {
 public:
  void add(std::string const& text) {
    std::string const line = std::to_string(text.size()) + ":" + text;
    hash_.update(std::as_bytes(std::span(line)));
  }
  void add_file(std::filesystem::path const& root, std::string const& path) {
    list_images([&] {
      add(path);
      add(std::to_string(std::filesystem::file_size(root / path)));
      add(std::to_string(std::filesystem::last_write_time(root / path).time_since_epoch().count()));
    });
  }
  std::string text() const { return hex_of(hash_.digest()); }

 private:
  Hash hash_;
};

inline bool is_hidden(std::filesystem::path const& path) {
  return path.filename().string().starts_with('.');
}

/// The image files below a folder, as paths below `root`, in the order of their bytes; those that
/// ImageFolder reads.
inline std::vector<std::string> image_files(std::filesystem::path const& folder,
                                            std::filesystem::path const& root) {
  auto const is_image = [](std::filesystem::path const& path) {
    std::string end = path.extension().string();
    std::ranges::transform(end, end.begin(), [](char c) {
      return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c;
    });
    return !is_hidden(path) && (end == ".jpg" || end == ".jpeg" || end == ".png");
  };
  std::vector<std::string> paths;
  list_images([&] {
    using std::filesystem::recursive_directory_iterator;
    for (auto each = recursive_directory_iterator(
             folder, std::filesystem::directory_options::follow_directory_symlink);
         each != recursive_directory_iterator(); ++each) {
      if (is_hidden(each->path())) {
        each.disable_recursion_pending();
      } else if (is_image(each->path()) && each->is_regular_file()) {
        paths.push_back(each->path().lexically_relative(root).string());
      }
    }
  });
  std::ranges::sort(paths);
  return paths;
}

/// Options that change what an image becomes.
inline std::string decoding_text(DecodeOptions const& options) {
  return std::to_string(static_cast<int>(options.channels)) + (options.orient ? "o" : "-") +
         (options.keep_16_bits ? "k" : "-") + (options.accept_damaged ? "d" : "-") +
         std::to_string(options.at_least);
}

}  // namespace detail

/// An image [C, H, W], uint8, and the number of its class.
struct LabelledImage {
  at::Tensor data;
  std::int64_t target = 0;

  static constexpr std::tuple parts{&LabelledImage::data, &LabelledImage::target};
};

/// A set of the JPEG and PNG files under a folder that has a folder for each class, as
/// torchvision's ImageFolder has them:
///
///     pets/cat/1.jpg  pets/cat/more/2.png  pets/dog/3.jpg
///
/// Classes are numbered by name, in the order of their bytes, and so are the files of a class,
/// which may lie in folders below it. Names that begin with a dot are left out, and so are files
/// whose name ends in none of .jpg, .jpeg and .png. Files are read when they are asked for.
///
/// Errors  DataError for a folder that cannot be read, and for a class without an image, which it
///         names; from get(), for a file that cannot be read or decoded, with its path and byte.
class ImageFolder {
 public:
  explicit ImageFolder(std::filesystem::path root, DecodeOptions options = {})
      : root_(std::move(root)), options_(options), all_(std::make_shared<All>()) {
    detail::list_images([&] {
      for (auto const& entry : std::filesystem::directory_iterator(root_)) {
        if (entry.is_directory() && !detail::is_hidden(entry.path())) {
          all_->classes.push_back(entry.path().filename().string());
        }
      }
    });
    std::ranges::sort(all_->classes);
    if (all_->classes.empty()) refuse("there is no folder of a class", root_);
    for (std::size_t label = 0; label < all_->classes.size(); ++label) add_class(label);
  }

  std::uint64_t size() const { return all_->files.size(); }

  LabelledImage get(std::uint64_t index) const {
    File const& file = all_->files.at(index);
    return {read_image(root_ / file.path, options_), file.label};
  }

  /// Path of a file.
  std::string name(std::uint64_t index) const {
    return (root_ / all_->files.at(index).path).string();
  }

  std::int64_t label(std::uint64_t index) const { return all_->files.at(index).label; }

  /// Names of the classes, by number.
  std::vector<std::string> const& classes() const { return all_->classes; }

  /// A hash of paths below the folder, sizes and times of change, and of the options: it changes
  /// with them, and not when the folder is moved as it is. Asks the file system for each file.
  std::string identity() const {
    detail::ImageFilesText text;
    for (File const& file : all_->files) text.add_file(root_, file.path);
    text.add(detail::decoding_text(options_));
    return "ImageFolder/1 " + std::to_string(size()) + " " + text.text();
  }

  /// Wherever the folder lies, and whenever it was fetched; and the options.
  void identify(DataIdentity& to) const {
    detail::FilesIdentity files(all_->files.size());
    for (File const& file : all_->files) files.add(root_ / file.path, file.path);
    files.identify(to);
    to.add("decoding", detail::decoding_text(options_));
  }

 private:
  struct File {
    std::string path;  ///< below the root
    std::int64_t label;
  };
  struct All {
    std::vector<std::string> classes;
    std::vector<File> files;
  };

  void add_class(std::size_t label) {
    std::filesystem::path const folder = root_ / all_->classes[label];
    auto paths = detail::image_files(folder, root_);
    if (paths.empty()) refuse("the class has no image", folder);
    for (std::string& path : paths) {
      all_->files.push_back({std::move(path), static_cast<std::int64_t>(label)});
    }
  }

  [[noreturn]] static void refuse(char const* what, std::filesystem::path const& where) {
    throw DataError({.what = what,
                     .where = where.string(),
                     .why = "images lie as in root/class/image.jpg, and end in .jpg, .jpeg or .png",
                     .fix = "Put a folder for each class there, or remove the empty one."});
  }

  std::filesystem::path root_;
  DecodeOptions options_;
  std::shared_ptr<All> all_;  // copies share the list
};

}  // namespace frugal
