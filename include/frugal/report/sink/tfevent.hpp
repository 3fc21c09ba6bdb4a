// SPDX-License-Identifier: Apache-2.0
// needs: tensorboard
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <boost/crc.hpp>
#include <protozero/pbf_writer.hpp>

#include <frugal/base/utf8.hpp>

namespace frugal {

/// The values of a tensor in buckets, for TensorBoard. Bucket i has the values below `limits[i]`
/// and not below `limits[i - 1]`.
struct HistogramSummary {
  double min = 0, max = 0, count = 0, sum = 0, sum_of_squares = 0;
  std::vector<double> limits{}, counts{};
};

}  // namespace frugal

// The protocol buffers of TensorBoard's event files (event.proto, summary.proto, tensor.proto of
// its package tensorboard/compat/proto), as far as frugal writes them. Protozero encodes them: it
// has no library of its own, which would meet the protobuf that LibTorch exports.
namespace frugal::detail {

/// When an event happened.
struct TfWhen {
  double wall_time = 0;  ///< seconds since 1970
  std::int64_t step = 0;
};

inline std::string tf_event(TfWhen const& when, protozero::pbf_tag_type field,
                            std::string_view message) {
  std::string out;
  protozero::pbf_writer event(out);
  event.add_double(1, when.wall_time);
  if (when.step != 0) event.add_int64(2, when.step);
  event.add_bytes(field, message.data(), message.size());
  return out;
}

/// The first event of each file.
inline std::string tf_version_event(double wall_time) {
  return tf_event({wall_time, 0}, 3, "brain.Event:2");
}

/// Readers drop the events of earlier files and lines that have this step or a later one.
inline std::string tf_restart_event(TfWhen const& when) {
  std::string log;
  protozero::pbf_writer(log).add_enum(1, 1);  // SessionLog.START
  return tf_event(when, 7, log);
}

/// Gathers the values of one event.
class TfSummary {
 public:
  bool empty() const { return bytes_.empty(); }
  std::string event(TfWhen const& when) const { return tf_event(when, 5, bytes_); }

  void scalar(std::string_view tag, double number) {
    add(tag, [&](protozero::pbf_writer& value) { value.add_float(2, static_cast<float>(number)); });
  }

  void histogram(std::string_view tag, HistogramSummary const& all) {
    std::string bytes;
    protozero::pbf_writer histogram(bytes);
    histogram.add_double(1, all.min);
    histogram.add_double(2, all.max);
    histogram.add_double(3, all.count);
    histogram.add_double(4, all.sum);
    histogram.add_double(5, all.sum_of_squares);
    histogram.add_packed_double(6, all.limits.begin(), all.limits.end());
    histogram.add_packed_double(7, all.counts.begin(), all.counts.end());
    add(tag, [&](protozero::pbf_writer& value) { value.add_message(5, bytes); });
  }

  /// Markdown.
  void text(std::string_view tag, std::string_view markdown) {
    std::string plugin, metadata, size, shape, tensor;
    protozero::pbf_writer(plugin).add_string(1, "text");
    protozero::pbf_writer(metadata).add_message(1, plugin);
    protozero::pbf_writer(size).add_int64(1, 1);
    protozero::pbf_writer(shape).add_message(2, size);
    protozero::pbf_writer writer(tensor);
    writer.add_enum(1, 7);  // DT_STRING
    writer.add_message(2, shape);
    writer.add_bytes(8, as_utf8(markdown));  // bytes to the format, a text to its readers
    add(tag, [&](protozero::pbf_writer& value) {
      value.add_message(9, metadata);
      value.add_message(8, tensor);
    });
  }

  /// `channels` is 1 (grey), 3 (RGB) or 4 (RGBA).
  void image(std::string_view tag, std::int32_t height, std::int32_t width, std::int32_t channels,
             std::string_view png) {
    std::string bytes;
    protozero::pbf_writer image(bytes);
    image.add_int32(1, height);
    image.add_int32(2, width);
    image.add_int32(3, channels);
    image.add_bytes(4, png.data(), png.size());
    add(tag, [&](protozero::pbf_writer& value) { value.add_message(4, bytes); });
  }

 private:
  template <class Fill>
  void add(std::string_view tag, Fill&& fill) {
    std::string bytes;
    protozero::pbf_writer value(bytes);
    // Readers check the encoding: one wrong byte would end the file for them.
    value.add_string(1, as_utf8(tag));
    fill(value);
    protozero::pbf_writer(bytes_).add_message(1, bytes);
  }

  std::string bytes_;
};

inline std::uint32_t crc32c(std::string_view bytes) {
  boost::crc_optimal<32, 0x1EDC6F41, 0xFFFFFFFF, 0xFFFFFFFF, true, true> crc;
  crc.process_bytes(bytes.data(), bytes.size());
  return crc.checksum();
}

/// As TFRecord files store it: a checksum of data that holds its own checksum would tell little.
inline std::uint32_t masked_crc32c(std::string_view bytes) {
  std::uint32_t const crc = crc32c(bytes);
  return ((crc >> 15U) | (crc << 17U)) + 0xa282ead8U;
}

template <class Number>
void append_little_endian(std::string& out, Number number) {
  for (std::size_t i = 0; i < sizeof number; ++i) {
    out += static_cast<char>(static_cast<unsigned char>(number >> (8 * i)));
  }
}

/// One record: its length, a checksum of that, the bytes, a checksum of these.
inline std::string tfrecord(std::string_view bytes) {
  std::string out;
  append_little_endian(out, static_cast<std::uint64_t>(bytes.size()));
  append_little_endian(out, masked_crc32c(out));
  out += bytes;
  append_little_endian(out, masked_crc32c(bytes));
  return out;
}

}  // namespace frugal::detail
