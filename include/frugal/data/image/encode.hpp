// SPDX-License-Identifier: Apache-2.0
// needs: images
#pragma once

#include <array>
#include <bit>
#include <csetjmp>
#include <cstddef>
#include <cstdint>
#include <new>
#include <span>
#include <string>
#include <vector>

#include <frugal/data/image/decode_pixels.hpp>
#include <frugal/data/image/pixels.hpp>
#include <frugal/error.hpp>

namespace frugal {

struct JpegOptions {
  int quality = 90;       ///< 1 to 100
  bool subsample = true;  ///< store colors at half the width and height (4:2:0)
  bool progressive = false;
};

struct PngOptions {
  int compression = 6;  ///< 0 to 9, zlib's levels
};

namespace detail {

/// Appends in a callback of C, through which no exception may pass.
inline bool append(std::vector<std::byte>& to, std::span<std::byte const> bytes) noexcept {
  try {
    to.insert(to.end(), bytes.begin(), bytes.end());
    return true;
  } catch (std::bad_alloc const&) {
    return false;
  }
}

[[noreturn]] inline void refuse_to_encode(std::string what, std::string why, std::string fix) {
  throw ShapeError(
      {.what = std::move(what), .where = "", .why = std::move(why), .fix = std::move(fix)});
}

inline void check_pixels(RawImage const& image, bool fits, char const* format, char const* takes) {
  std::size_t const bytes =
      std::size_t{image.height} * image.width * image.channels * image.bits / 8;
  if (fits && bytes != 0 && image.bytes.size() == bytes) return;
  refuse_to_encode(std::string("the image cannot be stored as ") + format,
                   std::to_string(image.width) + " x " + std::to_string(image.height) +
                       " pixels, " + std::to_string(image.channels) + " channels of " +
                       std::to_string(image.bits) + " bits, " + std::to_string(image.bytes.size()) +
                       " bytes",
                   std::string("Give it ") + takes + ".");
}

/// libjpeg's destination: a block, which is appended to `out` when it is full.
class JpegWriter {
 public:
  JpegWriter() {
    jpeg_.err = &errors_.base;
    guarded([this] { jpeg_create_compress(&jpeg_); });
    jpeg_.client_data = this;
    to_.init_destination = [](j_compress_ptr jpeg) { of(jpeg).begin_block(); };
    to_.empty_output_buffer = [](j_compress_ptr jpeg) -> boolean {
      of(jpeg).end_block(block_size);
      of(jpeg).begin_block();
      return TRUE;
    };
    to_.term_destination = [](j_compress_ptr jpeg) {
      of(jpeg).end_block(block_size - of(jpeg).to_.free_in_buffer);
    };
    jpeg_.dest = &to_;
  }
  JpegWriter(JpegWriter const&) = delete;
  JpegWriter& operator=(JpegWriter const&) = delete;
  ~JpegWriter() { jpeg_destroy_compress(&jpeg_); }

  std::vector<std::byte> write(RawImage const& image, JpegOptions const& options) {
    guarded([this, image = &image, options = &options] {
      jpeg_.image_height = image->height;
      jpeg_.image_width = image->width;
      jpeg_.input_components = static_cast<int>(image->channels);
      jpeg_.in_color_space = image->channels == 1 ? JCS_GRAYSCALE : JCS_RGB;
      jpeg_set_defaults(&jpeg_);
      jpeg_set_quality(&jpeg_, options->quality, TRUE);
      if (!options->subsample) {
        for (int i = 0; i < jpeg_.num_components; ++i) {
          jpeg_.comp_info[i].h_samp_factor = jpeg_.comp_info[i].v_samp_factor = 1;
        }
      }
      if (options->progressive) jpeg_simple_progression(&jpeg_);
      jpeg_start_compress(&jpeg_, TRUE);
      std::size_t const row = std::size_t{image->width} * image->channels;
      while (jpeg_.next_scanline < jpeg_.image_height) {
        JSAMPROW rows[] = {const_cast<JSAMPROW>(image->bytes.data() + jpeg_.next_scanline * row)};
        jpeg_write_scanlines(&jpeg_, rows, 1);
      }
      jpeg_finish_compress(&jpeg_);
    });
    return std::move(out_);
  }

 private:
  static constexpr std::size_t block_size = std::size_t{1} << 16;

  static JpegWriter& of(j_compress_ptr jpeg) {
    return *static_cast<JpegWriter*>(jpeg->client_data);
  }
  void begin_block() {
    to_.next_output_byte = block_.data();
    to_.free_in_buffer = block_.size();
  }
  void end_block(std::size_t size) {
    if (append(out_, std::as_bytes(std::span(block_)).first(size))) return;
    jpeg_.err->msg_code = JERR_OUT_OF_MEMORY;
    jpeg_.err->error_exit(reinterpret_cast<j_common_ptr>(&jpeg_));
  }

  template <class Step>
  void guarded(Step step) {
    if (setjmp(errors_.jump) != 0) {
      refuse_to_encode("the image cannot be stored as JPEG", errors_.text.data(),
                       "Give it at most 65,500 rows and columns.");
    }
    step();
  }

  std::vector<std::byte> out_;
  JpegErrors errors_;
  jpeg_destination_mgr to_{};
  jpeg_compress_struct jpeg_{};
  std::array<std::uint8_t, block_size> block_{};
};

class PngWriter {
 public:
  PngWriter()
      : png_(png_create_write_struct(PNG_LIBPNG_VER_STRING, &errors_, PngErrors::leave,
                                     PngErrors::ignore)) {
    if (png_ != nullptr) info_ = png_create_info_struct(png_);
    if (info_ == nullptr) {
      png_destroy_write_struct(&png_, nullptr);
      throw std::bad_alloc();
    }
  }
  PngWriter(PngWriter const&) = delete;
  PngWriter& operator=(PngWriter const&) = delete;
  ~PngWriter() { png_destroy_write_struct(&png_, &info_); }

  std::vector<std::byte> write(RawImage const& image, PngOptions const& options) {
    std::size_t const row = std::size_t{image.width} * image.channels * image.bits / 8;
    std::vector<png_bytep> rows(image.height);
    for (std::size_t y = 0; y < rows.size(); ++y) {
      rows[y] = const_cast<png_bytep>(image.bytes.data() + y * row);
    }
    if (setjmp(png_jmpbuf(png_)) != 0) {
      refuse_to_encode("the image cannot be stored as PNG", errors_.text.data(),
                       "Give it at most 1,000,000 rows and columns.");
    }
    encode(image, options, rows.data());
    return std::move(out_);
  }

 private:
  void encode(RawImage const& image, PngOptions const& options, png_bytepp rows) {
    png_set_write_fn(
        png_, &out_,
        [](png_structp png, png_bytep from, std::size_t count) {
          auto& out = *static_cast<std::vector<std::byte>*>(png_get_io_ptr(png));
          if (!append(out, std::as_bytes(std::span(from, count)))) png_error(png, "out of memory");
        },
        [](png_structp) {});
    constexpr std::array colors{PNG_COLOR_TYPE_GRAY, PNG_COLOR_TYPE_GRAY_ALPHA, PNG_COLOR_TYPE_RGB,
                                PNG_COLOR_TYPE_RGB_ALPHA};
    png_set_IHDR(png_, info_, image.width, image.height, static_cast<int>(image.bits),
                 colors[image.channels - 1], PNG_INTERLACE_NONE, PNG_COMPRESSION_TYPE_DEFAULT,
                 PNG_FILTER_TYPE_DEFAULT);
    png_set_compression_level(png_, options.compression);
    png_write_info(png_, info_);
    if (image.bits == 16 && std::endian::native == std::endian::little) png_set_swap(png_);
    png_write_image(png_, rows);
    png_write_end(png_, nullptr);
  }

  std::vector<std::byte> out_;
  PngErrors errors_;
  png_structp png_;
  png_infop info_ = nullptr;
};

}  // namespace detail

/// The bytes of a JPEG file: baseline unless `progressive`, 8 bits, grey or RGB.
///
/// Errors  ShapeError for other channels or bits, and for an empty image; SettingsError for a
///         quality outside of 1 to 100.
inline std::vector<std::byte> encode_jpeg(RawImage const& image, JpegOptions const& options = {}) {
  bool const fits = image.bits == 8 && (image.channels == 1 || image.channels == 3);
  detail::check_pixels(image, fits, "JPEG", "1 or 3 channels of 8 bits");
  if (options.quality < 1 || options.quality > 100) {
    throw SettingsError({.what = "a JPEG quality of " + std::to_string(options.quality),
                         .where = "encode_jpeg",
                         .why = "",
                         .fix = "Set JpegOptions::quality to 1 to 100."});
  }
  return detail::JpegWriter().write(image, options);
}

/// The bytes of a PNG file: 8 or 16 bits, grey or RGB, with or without alpha. Reading them gives
/// the same pixels.
///
/// Errors  ShapeError for other channels or bits, and for an empty image; SettingsError for a
///         compression outside of 0 to 9.
inline std::vector<std::byte> encode_png(RawImage const& image, PngOptions const& options = {}) {
  bool const fits =
      (image.bits == 8 || image.bits == 16) && image.channels >= 1 && image.channels <= 4;
  detail::check_pixels(image, fits, "PNG", "1 to 4 channels of 8 or 16 bits");
  if (options.compression < 0 || options.compression > 9) {
    throw SettingsError({.what = "a PNG compression of " + std::to_string(options.compression),
                         .where = "encode_png",
                         .why = "",
                         .fix = "Set PngOptions::compression to 0 to 9."});
  }
  return detail::PngWriter().write(image, options);
}

}  // namespace frugal
