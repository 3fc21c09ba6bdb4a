// SPDX-License-Identifier: Apache-2.0
// needs: images
#pragma once

#include <algorithm>
#include <array>
#include <csetjmp>
#include <cstddef>
#include <cstdint>
#include <cstdio>  // jpeglib.h uses FILE, and does not include it
#include <cstring>
#include <functional>
#include <iterator>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <jerror.h>
#include <jpeglib.h>

#include <frugal/data/image/exif.hpp>
#include <frugal/data/image/pixels.hpp>

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
      if (options_.orient) jpeg_save_markers(&jpeg_, JPEG_APP0 + 1, 0xFFFF);
      jpeg_read_header(&jpeg_, TRUE);
    });
    // A Huffman code is one bit at least, and a block of 8 x 8 has one at least.
    std::uint64_t const most = jpeg_.arith_code ? ~std::uint64_t{0} : 8 * 64;
    check_claim(jpeg_.image_height, jpeg_.image_width, bytes_.size(), most, options_, name_,
                position());
    choose_colours();
    guarded([this] {
      choose_size();
      jpeg_start_decompress(&jpeg_);
    });
    RawImage image{.height = jpeg_.output_height,
                   .width = jpeg_.output_width,
                   .channels = cmyk() ? 3U : channels()};
    image.bytes.resize(std::size_t{image.height} * image.width * image.channels);
    int const orientation = options_.orient ? orientation_of() : 1;  // the end of the file frees it
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
    return oriented(with_channels(std::move(image), options_.channels), orientation);
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

  void choose_colours() {
    switch (jpeg_.jpeg_color_space) {
      case JCS_GRAYSCALE:
        jpeg_.out_color_space = JCS_GRAYSCALE;
        return;
      case JCS_YCbCr:  // Y is the luma: grey costs no colour
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
        refuse_image("the JPEG image has unknown colours", name_, position(),
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

  /// Four inks to three colours. Adobe stores them inverted, and so does everyone else.
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
  return detail::JpegReader(bytes, options, name).read();
}

}  // namespace frugal
