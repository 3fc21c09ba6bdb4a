// SPDX-License-Identifier: Apache-2.0
// needs: images
#pragma once

#include <frugal/base/file.hpp>
#include <frugal/base/io_error.hpp>
#include <frugal/data/image/pixels.hpp>
#include <frugal/error.hpp>

#include <algorithm>
#include <array>
#include <bit>
#include <csetjmp>
#include <cstddef>
#include <cstdint>
#include <cstdio>  // jpeglib.h uses FILE, and does not include it
#include <cstring>
#include <filesystem>
#include <functional>
#include <iterator>
#include <new>
#include <span>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include <jerror.h>
#include <jpeglib.h>
#include <png.h>

namespace frugal {

namespace detail {

/// libjpeg reports an error by a call that must not return. Each call into it therefore stands in
/// JpegReader::guarded, and the jump back passes no object with a destructor.
struct JpegErrors {
  jpeg_error_mgr base{};  // first: libjpeg's pointer to it is a pointer to this
  std::jmp_buf jump{};
  std::array<char, JMSG_LENGTH_MAX> text{};
  bool accept_damaged = false;
  bool at_end = false;  ///< the file has ended without its end marker; `text` says so

  JpegErrors() {
    jpeg_std_error(&base);
    base.error_exit = [](j_common_ptr codec) { of(codec).leave(codec); };
    base.output_message = [](j_common_ptr) {};
    base.emit_message = [](j_common_ptr codec, int level) {
      JpegErrors& errors = of(codec);
      if (level >= 0 || errors.accept_damaged) return;
      int const code = codec->err->msg_code;
      if (code == JWRN_JPEG_EOF) {
        // Not yet damage: all bits of the pixels may have been there. libjpeg goes on as if the end
        // marker followed, and warns where a code is cut off.
        if (!errors.at_end) errors.base.format_message(codec, errors.text.data());
        errors.at_end = true;
      } else if (damages(code) || (errors.at_end && code == JWRN_EXTRANEOUS_DATA)) {
        errors.leave(codec);
      }
    };
  }

  static JpegErrors& of(j_common_ptr codec) { return *reinterpret_cast<JpegErrors*>(codec->err); }

  /// Warnings about bytes that no pixel depends on are not damage: many cameras write such files.
  static bool damages(int code) {
    return code != JWRN_EXTRANEOUS_DATA && code != JWRN_JFIF_MAJOR && code != JWRN_ADOBE_XFORM &&
           code != JWRN_TOO_MUCH_DATA && code != JWRN_BOGUS_PROGRESSION;
  }

  [[noreturn]] void leave(j_common_ptr codec) {
    if (!at_end) base.format_message(codec, text.data());
    std::longjmp(jump, 1);
  }
};

class JpegReader {
 public:
  JpegReader(std::span<std::byte const> bytes, DecodeOptions const& options,
             std::string const& name)
      : bytes_(bytes), options_(options), name_(name) {
    errors_.accept_damaged = options.accept_damaged;
    jpeg_.err = &errors_.base;
    progress_.progress_monitor = [](j_common_ptr codec) {
      // A few bytes of scans cost as much time as the image has pixels; encoders write some ten.
      constexpr int most_scans = 100;
      if (reinterpret_cast<j_decompress_ptr>(codec)->input_scan_number <= most_scans) return;
      JpegErrors& errors = JpegErrors::of(codec);
      std::snprintf(errors.text.data(), errors.text.size(), "more than %d scans", most_scans);
      std::longjmp(errors.jump, 1);
    };
    guarded([this] { jpeg_create_decompress(&jpeg_); });
    jpeg_.progress = &progress_;
  }
  JpegReader(JpegReader const&) = delete;
  JpegReader& operator=(JpegReader const&) = delete;
  ~JpegReader() { jpeg_destroy_decompress(&jpeg_); }

  RawImage read() {
    guarded([this] {
      jpeg_mem_src(&jpeg_, reinterpret_cast<unsigned char const*>(bytes_.data()), bytes_.size());
      if (reads_orientation(options_)) jpeg_save_markers(&jpeg_, JPEG_APP0 + 1, 0xFFFF);
      jpeg_read_header(&jpeg_, TRUE);
    });
    // A Huffman code is one bit at least, and a block of 8 x 8 has one at least.
    std::uint64_t const most = jpeg_.arith_code ? ~std::uint64_t{0} : 8 * 64;
    check_claim(jpeg_.image_height, jpeg_.image_width, bytes_.size(), most, options_, name_,
                position());
    choose_colors();
    guarded([this] {
      choose_size();
      jpeg_start_decompress(&jpeg_);
    });
    RawImage image{.height = jpeg_.output_height,
                   .width = jpeg_.output_width,
                   .channels = cmyk() ? 3U : channels()};
    image.bytes.resize(std::size_t{image.height} * image.width * image.channels);
    int const orientation = orientation_of();  // the end of the file frees the markers
    std::vector<std::uint8_t> row(cmyk() ? std::size_t{4} * image.width : 0);
    guarded([this, pixels = image.bytes.data(), inks = row.data()] {
      std::size_t const width = std::size_t{jpeg_.output_width} * (cmyk() ? 3U : channels());
      while (jpeg_.output_scanline < jpeg_.output_height) {
        std::uint8_t* const to = pixels + jpeg_.output_scanline * width;
        JSAMPROW rows[] = {cmyk() ? inks : to};
        if (jpeg_read_scanlines(&jpeg_, rows, 1) == 1 && cmyk()) {
          to_rgb(inks, to, jpeg_.output_width);
        }
      }
      if (errors_.at_end && !is_whole()) errors_.leave(reinterpret_cast<j_common_ptr>(&jpeg_));
      jpeg_finish_decompress(&jpeg_);
    });
    if (errors_.at_end && may_be_filled_up()) fail();
    return oriented_as(options_, with_channels(std::move(image), options_.channels), orientation,
                       name_);
  }

 private:
  template <class Step>
  void guarded(Step step) {
    if (setjmp(errors_.jump) != 0) fail();
    step();
  }

  [[noreturn]] void fail() const {
    refuse_image("the JPEG image cannot be decoded", name_, position(), errors_.text.data(),
                 "Fetch the file again, or leave it out.");
  }

  /// Whether a file without an end marker has all bits of all pixels. An arithmetic decoder reads
  /// zeros behind the end, and does not tell.
  bool is_whole() const {
    if (jpeg_.arith_code) return false;
    if (!jpeg_.progressive_mode) return jpeg_.comps_in_scan == jpeg_.num_components;
    for (int c = 0; c < jpeg_.num_components; ++c) {
      // Bits of each coefficient that are still to come; -1 for all.
      auto const& bits = jpeg_.coef_bits[c];
      if (std::any_of(std::begin(bits), std::end(bits), [](int left) { return left != 0; })) {
        return false;
      }
    }
    return true;
  }

  /// Whether zeros may stand where the file had pixels: a download into a file of its final size
  /// that was not finished. Zeros are valid codes, and the last block would be made of them.
  bool may_be_filled_up() const {
    std::size_t const size = bytes_.size();
    return bytes_[size - 1] == std::byte{0} && bytes_[size - 2] != std::byte{0xFF};
  }

  std::uint32_t channels() const { return static_cast<std::uint32_t>(jpeg_.output_components); }
  bool cmyk() const { return jpeg_.out_color_space == JCS_CMYK; }

  void choose_colors() {
    switch (jpeg_.jpeg_color_space) {
      case JCS_GRAYSCALE:
        jpeg_.out_color_space = JCS_GRAYSCALE;
        return;
      case JCS_YCbCr:  // Y is the luma: grey costs no color
        jpeg_.out_color_space = options_.channels == Channels::grey ? JCS_GRAYSCALE : JCS_RGB;
        return;
      case JCS_RGB:
        jpeg_.out_color_space = JCS_RGB;
        return;
      case JCS_CMYK:
      case JCS_YCCK:
        jpeg_.out_color_space = JCS_CMYK;
        return;
      default:
        refuse_image("the JPEG image has unknown colors", name_, position(),
                     "it has " + std::to_string(jpeg_.num_components) +
                         " components that are neither grey, RGB, YCbCr, CMYK nor YCCK",
                     "Convert it, or leave it out.");
    }
  }

  void choose_size() {
    unsigned const shorter = std::min(jpeg_.image_height, jpeg_.image_width);
    jpeg_.scale_num = 1;
    jpeg_.scale_denom = 1;
    if (options_.at_least == 0) return;
    for (unsigned const by : {2U, 4U, 8U}) {
      if (shorter / by >= options_.at_least) jpeg_.scale_denom = by;
    }
  }

  /// Four inks to three colors. Adobe stores them inverted, and so does everyone else.
  static void to_rgb(std::uint8_t const* cmyk, std::uint8_t* rgb, std::size_t count) {
    for (std::size_t i = 0; i < count; ++i, cmyk += 4, rgb += 3) {
      for (std::size_t c = 0; c < 3; ++c) {
        unsigned const ink = (255U - cmyk[c]) * cmyk[3] + 128;  // over 255, rounded
        rgb[c] = static_cast<std::uint8_t>(cmyk[3] - ((ink + (ink >> 8)) >> 8));
      }
    }
  }

  int orientation_of() const {
    constexpr std::string_view exif("Exif\0\0", 6);
    for (auto const* marker = jpeg_.marker_list; marker != nullptr; marker = marker->next) {
      if (marker->marker != JPEG_APP0 + 1 || marker->data_length < exif.size()) continue;
      if (std::memcmp(marker->data, exif.data(), exif.size()) != 0) continue;
      return exif_orientation(
          std::as_bytes(std::span(marker->data, marker->data_length)).subspan(exif.size()));
    }
    return 1;
  }

  /// Where in the file libjpeg stands, within a block of pixels where the block begins. Behind the
  /// end of the file it reads two bytes of its own.
  std::size_t position() const {
    if (errors_.at_end) return bytes_.size();
    if (jpeg_.src == nullptr) return 0;
    auto const* const at = reinterpret_cast<std::byte const*>(jpeg_.src->next_input_byte);
    bool const inside =
        !std::less<>{}(at, bytes_.data()) && !std::less<>{}(bytes_.data() + bytes_.size(), at);
    return inside ? static_cast<std::size_t>(at - bytes_.data()) : bytes_.size();
  }

  std::span<std::byte const> bytes_;
  DecodeOptions const& options_;
  std::string const& name_;
  JpegErrors errors_;
  jpeg_progress_mgr progress_{};
  jpeg_decompress_struct jpeg_{};
};

}  // namespace detail

/// Decodes a JPEG file: baseline or progressive; grey, RGB, YCbCr, CMYK or YCCK, the last two as
/// RGB. Errors call the file `name`.
///
/// A file that lacks nothing but its end marker is whole: it ends with, or behind, the last bit of
/// the last pixel. One with other bytes in the place of the marker is refused, because nobody can
/// tell whether they stand where pixels were.
///
/// Errors  DataError with name, byte and what libjpeg says: no JPEG file, a damaged or cut off one
///         (unless `accept_damaged`), more than 100 scans, more pixels than `pixels`, or than the
///         file has bits for.
inline RawImage decode_jpeg(std::span<std::byte const> bytes, DecodeOptions const& options = {},
                            std::string const& name = "JPEG image") {
  if (options.channels == Channels::labels) {
    detail::refuse_image("a JPEG image has no labels", name, 0, "its compression changes values",
                         "Give masks as PNG files.");
  }
  return detail::JpegReader(bytes, options, name).read();
}

namespace detail {

/// libpng reports an error by a call that must not return. Each call into it therefore stands in
/// PngReader::guarded, and the jump back passes no object with a destructor.
struct PngErrors {
  std::array<char, 200> text{};

  [[noreturn]] static void leave(png_structp png, png_const_charp message) {
    auto& text = static_cast<PngErrors*>(png_get_error_ptr(png))->text;
    std::snprintf(text.data(), text.size(), "%s", message);
    png_longjmp(png, 1);
  }
  static void ignore(png_structp, png_const_charp) {}
};

class PngReader {
 public:
  PngReader(std::span<std::byte const> bytes, DecodeOptions const& options, std::string const& name)
      : bytes_(bytes),
        options_(options),
        name_(name),
        png_(png_create_read_struct(PNG_LIBPNG_VER_STRING, &errors_, PngErrors::leave,
                                    PngErrors::ignore)) {
    if (png_ == nullptr) throw std::bad_alloc();
    info_ = png_create_info_struct(png_);
    if (info_ == nullptr) {
      png_destroy_read_struct(&png_, nullptr, nullptr);
      throw std::bad_alloc();
    }
  }
  PngReader(PngReader const&) = delete;
  PngReader& operator=(PngReader const&) = delete;
  ~PngReader() { png_destroy_read_struct(&png_, &info_, nullptr); }

  RawImage read() {
    guarded([this] {
      png_set_read_fn(png_, this, [](png_structp png, png_bytep to, std::size_t count) {
        auto& self = *static_cast<PngReader*>(png_get_io_ptr(png));
        if (count > self.bytes_.size() - self.at_) {
          self.at_ = self.bytes_.size();
          png_error(png, "the file ends within a chunk");
        }
        std::memcpy(to, self.bytes_.data() + self.at_, count);
        self.at_ += count;
      });
      // Text and color profiles are not read: no pixel needs them.
      constexpr unsigned char unread[] = "tEXt\0zTXt\0iTXt\0iCCP";
      png_set_keep_unknown_chunks(png_, PNG_HANDLE_CHUNK_NEVER, unread, 4);
      png_read_info(png_, info_);
    });
    std::uint32_t const height = png_get_image_height(png_, info_);
    std::uint32_t const width = png_get_image_width(png_, info_);
    if (options_.channels == Channels::labels) check_labels();
    // Deflate makes at most 1032 bytes of one, and a pixel may be a bit.
    check_claim(height, width, bytes_.size(), 8 * 1032, options_, name_, at_);
    guarded([this] { choose_format(); });
    RawImage image{.height = height,
                   .width = width,
                   .channels = png_get_channels(png_, info_),
                   .bits = png_get_bit_depth(png_, info_)};
    std::size_t const row = png_get_rowbytes(png_, info_);
    image.bytes.resize(row * height);
    std::vector<png_bytep> rows(height);
    for (std::size_t y = 0; y < height; ++y) rows[y] = image.bytes.data() + y * row;
    guarded([this, to = rows.data()] {
      png_read_image(png_, to);
      png_read_end(png_, info_);
    });
    int const orientation = reads_orientation(options_) ? orientation_of() : 1;
    return oriented_as(options_, with_channels(std::move(image), options_.channels), orientation,
                       name_);
  }

 private:
  template <class Step>
  void guarded(Step step) {
    if (setjmp(png_jmpbuf(png_)) != 0) fail();
    step();
  }

  [[noreturn]] void fail() const {
    refuse_image("the PNG image cannot be decoded", name_, at_, errors_.text.data(),
                 "Fetch the file again, or leave it out.");
  }

  void check_labels() const {
    auto const type = png_get_color_type(png_, info_);
    int const bits = png_get_bit_depth(png_, info_);
    char const* why = nullptr;
    if (type == PNG_COLOR_TYPE_GRAY && (bits == 2 || bits == 4)) {
      why = "it has grey of 2 or 4 bits, which some programs read as 0 to 255";
    } else if (type == PNG_COLOR_TYPE_GRAY_ALPHA) {
      why = "it has grey and alpha";
    } else if (type != PNG_COLOR_TYPE_PALETTE && type != PNG_COLOR_TYPE_GRAY) {
      why = "it has colors";
    }
    if (why == nullptr) return;
    refuse_image("the PNG image has no labels", name_, at_, why,
                 "Give masks with a palette, or of one grey channel of 8 or 16 bits, with the "
                 "number of the class.");
  }

  /// 1, 2, 3 or 4 channels of 8 or 16 bits, whatever the file has.
  void choose_format() {
    bool const labels = options_.channels == Channels::labels;
    if (labels) {
      png_set_packing(png_);  // a byte for each number of 1, 2 or 4 bits, which stays as it is
    } else {
      png_set_expand(png_);  // palettes to RGB, grey of few bits to 8, transparent colors to alpha
    }
    if (png_get_bit_depth(png_, info_) == 16) {
      if (!labels && !options_.keep_16_bits) {
        png_set_scale_16(png_);
      } else if (std::endian::native == std::endian::little) {
        png_set_swap(png_);
      }
    }
    png_set_interlace_handling(png_);
    png_read_update_info(png_, info_);
  }

  int orientation_of() {
    std::uint32_t size = 0;
    png_bytep block = nullptr;
    guarded([this, to_size = &size, to_block = &block] {
      png_get_eXIf_1(png_, info_, to_size, to_block);
    });
    return block == nullptr ? 1 : exif_orientation(std::as_bytes(std::span(block, size)));
  }

  std::span<std::byte const> bytes_;
  DecodeOptions const& options_;
  std::string const& name_;
  std::size_t at_ = 0;
  PngErrors errors_;
  png_structp png_;
  png_infop info_ = nullptr;
};

}  // namespace detail

/// Decodes a PNG file: 1 to 16 bits, grey, RGB or palette, with or without alpha, interlaced or
/// not. 16 bits are rounded to 8 unless `keep_16_bits`. Gamma and color profiles are left alone.
/// Errors call the file `name`.
///
/// Errors  DataError with name, byte and what libpng says: no PNG file, a damaged or cut off one
///         (checksums included), more pixels than `pixels`, or than the file has bits for.
inline RawImage decode_png(std::span<std::byte const> bytes, DecodeOptions const& options = {},
                           std::string const& name = "PNG image") {
  return detail::PngReader(bytes, options, name).read();
}

namespace detail {

inline bool begins_with(std::span<std::byte const> bytes, std::string_view text) {
  return bytes.size() >= text.size() && std::memcmp(bytes.data(), text.data(), text.size()) == 0;
}

/// The format of a file that is no JPEG and no PNG, by its first bytes.
inline std::string other_format(std::span<std::byte const> bytes) {
  if (bytes.empty()) return "it is empty";
  if (begins_with(bytes, "GIF8")) return "it is a GIF";
  if (begins_with(bytes, "BM")) return "it is a BMP";
  if (begins_with(bytes, "II*") || begins_with(bytes, std::string_view("MM\0*", 4))) {
    return "it is a TIFF";
  }
  if (begins_with(bytes, "RIFF") && bytes.size() >= 12 && begins_with(bytes.subspan(8), "WEBP")) {
    return "it is a WebP";
  }
  if (bytes.size() >= 12 && begins_with(bytes.subspan(4), "ftyp")) return "it is a HEIF or AVIF";
  return "its first bytes are neither FF D8 FF nor 89 'PNG'";
}

}  // namespace detail

/// Decodes a JPEG or PNG file, which its first bytes distinguish. Errors call it `name`.
/// Errors  those of decode_jpeg and decode_png; DataError for another format, which it names.
inline RawImage decode_pixels(std::span<std::byte const> bytes, DecodeOptions const& options = {},
                              std::string const& name = "image") {
  if (detail::begins_with(bytes, "\xff\xd8\xff")) return decode_jpeg(bytes, options, name);
  if (detail::begins_with(bytes, "\x89PNG")) return decode_png(bytes, options, name);
  detail::refuse_image("the file is neither JPEG nor PNG", name, 0, detail::other_format(bytes),
                       "Convert it, or leave it out.");
}

/// The bytes of a file. DataError with the path and the reason for one that is missing, is a
/// folder, or changes while it is read; IoError for one that cannot be read now.
inline std::vector<std::byte> read_image_file(std::filesystem::path const& path) {
  std::string why = "its size changed while it was read";
  try {
    File file = File::open(path);
    std::vector<std::byte> bytes(file.size());
    if (file.read(bytes) == bytes.size()) return bytes;
  } catch (IoError const& error) {
    if (!detail::no_such_file(error.code)) throw;
    std::error_code ignored;
    why = std::filesystem::is_directory(path, ignored) ? "it is a folder" : error.fault().why;
  }
  throw DataError({.what = "the image cannot be read",
                   .where = path.string(),
                   .why = std::move(why),
                   .fix = "Give the path of a readable JPEG or PNG file."});
}

}  // namespace frugal
