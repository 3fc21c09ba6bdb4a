// SPDX-License-Identifier: Apache-2.0
// needs: images
#pragma once

#include <array>
#include <bit>
#include <csetjmp>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <new>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <png.h>

#include <frugal/data/image/exif.hpp>
#include <frugal/data/image/pixels.hpp>

namespace frugal {

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
      // Text and colour profiles are not read: no pixel needs them.
      constexpr unsigned char unread[] = "tEXt\0zTXt\0iTXt\0iCCP";
      png_set_keep_unknown_chunks(png_, PNG_HANDLE_CHUNK_NEVER, unread, 4);
      png_read_info(png_, info_);
    });
    std::uint32_t const height = png_get_image_height(png_, info_);
    std::uint32_t const width = png_get_image_width(png_, info_);
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
    int const orientation = options_.orient ? orientation_of() : 1;
    return oriented(with_channels(std::move(image), options_.channels), orientation);
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

  /// 1, 2, 3 or 4 channels of 8 or 16 bits, whatever the file has.
  void choose_format() {
    png_set_expand(png_);  // palettes to RGB, grey of few bits to 8, transparent colours to alpha
    if (png_get_bit_depth(png_, info_) == 16) {
      if (!options_.keep_16_bits) {
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
/// not. 16 bits are rounded to 8 unless `keep_16_bits`. Gamma and colour profiles are left alone.
/// Errors call the file `name`.
///
/// Errors  DataError with name, byte and what libpng says: no PNG file, a damaged or cut off one
///         (checksums included), more pixels than `pixels`, or than the file has bits for.
inline RawImage decode_png(std::span<std::byte const> bytes, DecodeOptions const& options = {},
                           std::string const& name = "PNG image") {
  return detail::PngReader(bytes, options, name).read();
}

}  // namespace frugal
