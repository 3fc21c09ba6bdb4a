// SPDX-License-Identifier: Apache-2.0
// needs: tensorboard
#pragma once

#include <frugal/base/io_error.hpp>
#include <frugal/error.hpp>
#include <frugal/report/sink/log_file.hpp>
#include <frugal/report/sink/record.hpp>
#include <frugal/report/sink/tfevent.hpp>

#include <ATen/ATen.h>
#include <png.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <limits>
#include <memory>
#include <mutex>
#include <numeric>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

namespace frugal::detail {

/// TensorBoard's usual limits: 1e-12 times powers of 1.1 to 1e20, the same below 0, and 0.
inline std::vector<double> const& histogram_limits() {
  static std::vector<double> const limits = [] {
    std::vector<double> positive;
    for (double limit = 1e-12; limit < 1e20; limit *= 1.1) positive.push_back(limit);
    std::vector<double> all;
    for (auto each = positive.rbegin(); each != positive.rend(); ++each) all.push_back(-*each);
    all.push_back(0);
    all.insert(all.end(), positive.begin(), positive.end());
    all.push_back(std::numeric_limits<double>::max());
    return all;
  }();
  return limits;
}

/// Minimum, maximum, sum, sum of squares, and the count of each bucket.
inline HistogramSummary histogram_in(std::span<double const> row) {
  std::vector<double> const& limits = histogram_limits();
  std::span<double const> const counts = row.subspan(4);
  HistogramSummary summary;
  summary.count = std::accumulate(counts.begin(), counts.end(), 0.0);
  if (summary.count == 0) return summary;
  summary.min = row[0];
  summary.max = row[1];
  summary.sum = row[2];
  summary.sum_of_squares = row[3];
  std::size_t first = 0;
  std::size_t last = limits.size() - 1;
  while (counts[first] == 0) ++first;
  while (counts[last] == 0) --last;
  // An empty bucket before the first tells where that one begins.
  if (first != 0) --first;
  for (std::size_t i = first; i <= last; ++i) {
    summary.limits.push_back(limits[i]);
    summary.counts.push_back(counts[i]);
  }
  return summary;
}

/// Makes histograms of tensors, each on its device. From any thread.
class Histograms {
 public:
  /// Counts the finite values of each tensor (those that a sparse one stores, the sizes of complex
  /// ones): its row on its device, 12 KB, for read(). Not defined where there are no values.
  ///
  /// The first call copies the limits to the device. A sparse tensor waits for the number of its
  /// values.
  std::vector<at::Tensor> rows_of(std::vector<at::Tensor> const& tensors) {
    at::NoGradGuard const no_gradients;
    std::vector<at::Tensor> rows(tensors.size());
    for (std::size_t i = 0; i < tensors.size(); ++i) {
      at::Tensor const flat = values_of(tensors[i]);
      if (flat.numel() != 0) rows[i] = row_of(flat);
    }
    return rows;
  }

  /// The histograms of rows; a count of 0 tells that there were no values. One copy to the host for
  /// each device.
  static std::vector<HistogramSummary> read(std::vector<at::Tensor> const& rows) {
    std::vector<HistogramSummary> all(rows.size());
    std::vector<bool> done(rows.size(), false);
    for (std::size_t first = 0; first < rows.size(); ++first) {
      if (done[first] || !rows[first].defined()) continue;
      std::vector<at::Tensor> together;
      std::vector<std::size_t> places;
      for (std::size_t i = first; i < rows.size(); ++i) {
        if (done[i] || !rows[i].defined() || rows[i].device() != rows[first].device()) continue;
        done[i] = true;
        together.push_back(rows[i]);
        places.push_back(i);
      }
      at::Tensor const host = at::cat(together).cpu();
      std::size_t const size = static_cast<std::size_t>(host.numel()) / together.size();
      auto const* const value = static_cast<double const*>(host.const_data_ptr());
      for (std::size_t i = 0; i < together.size(); ++i) {
        all[places[i]] = histogram_in({value + i * size, size});
      }
    }
    return all;
  }

  std::vector<HistogramSummary> of(std::vector<at::Tensor> const& tensors) {
    return read(rows_of(tensors));
  }

  /// Frees the limits on devices.
  void clear() {
    std::scoped_lock const lock(guard_);
    limits_.clear();
  }

 private:
  static at::Tensor values_of(at::Tensor const& tensor) {
    at::Tensor const stored =
        tensor.is_sparse() ? tensor.detach().coalesce().values() : tensor.detach();
    return (stored.is_complex() ? stored.abs() : stored).reshape({-1}).to(at::kDouble);
  }

  /// No operator here asks the device for the size of its result, as a selection of the finite
  /// values would.
  at::Tensor row_of(at::Tensor const& flat) {
    constexpr double infinity = std::numeric_limits<double>::infinity();
    at::Tensor const limits = limits_on(flat.device());
    at::Tensor const finite = flat.isfinite();
    at::Tensor const bad = finite.logical_not();
    at::Tensor const safe = flat.masked_fill(bad, 0);
    // The bucket of a value has the first limit that is greater. Values that are not finite count
    // 0.
    at::Tensor const bucket = at::bucketize(safe, limits, /*out_int32=*/true, /*right=*/true)
                                  .clamp_max(limits.numel() - 1);
    at::Tensor counts = at::zeros({limits.numel()}, limits.options());
    counts.index_add_(0, bucket, finite.to(at::kDouble));
    return at::cat({flat.masked_fill(bad, infinity).min().reshape({1}),
                    flat.masked_fill(bad, -infinity).max().reshape({1}), safe.sum().reshape({1}),
                    safe.square().sum().reshape({1}), counts});
  }

  at::Tensor limits_on(c10::Device device) {
    std::scoped_lock const lock(guard_);
    for (at::Tensor const& each : limits_) {
      if (each.device() == device) return each;
    }
    return limits_.emplace_back(at::tensor(histogram_limits(), at::kDouble).to(device));
  }

  std::mutex guard_;
  std::vector<at::Tensor> limits_;  ///< one for each device that has been seen
};

/// Encodes 8-bit pixels, row by row, of 1 (grey), 3 (RGB) or 4 (RGBA) channels. Throws what libpng
/// says if it fails.
inline std::string encode_png(std::uint32_t height, std::uint32_t width, std::uint32_t channels,
                              std::span<std::uint8_t const> pixels) {
  png_image image{};
  image.version = PNG_IMAGE_VERSION;
  image.width = width;
  image.height = height;
  image.format =
      channels == 1 ? PNG_FORMAT_GRAY : (channels == 3 ? PNG_FORMAT_RGB : PNG_FORMAT_RGBA);
  if (pixels.size() != std::size_t{height} * width * channels) {
    throw std::invalid_argument("the image has another size than its pixels");
  }
  std::string out(PNG_IMAGE_PNG_SIZE_MAX(image), '\0');
  png_alloc_size_t size = out.size();
  if (png_image_write_to_memory(&image, out.data(), &size, 0, pixels.data(), 0, nullptr) == 0) {
    std::string const why = image.message;
    png_image_free(&image);
    throw std::runtime_error("libpng: " + why);
  }
  out.resize(size);
  return out;
}

}  // namespace frugal::detail

namespace frugal {

namespace detail {

/// The number for the name of a new event file: seconds since 1970 in ten digits, as in PyTorch, or
/// the next number after those in the folder. Readers take files in the order of their names, and
/// the clock of a machine that resumes a run may be behind.
inline std::string later_stamp(std::filesystem::path const& folder, std::string_view prefix) {
  std::string stamp = std::to_string(static_cast<std::uint64_t>(std::max(unix_time(), 0.0)));
  if (stamp.size() < 10) stamp.insert(0, 10 - stamp.size(), '0');
  std::error_code failure;
  for (std::filesystem::directory_iterator each(folder, failure), end; !failure && each != end;
       each.increment(failure)) {
    std::string const name = each->path().filename().string();
    if (!name.starts_with(prefix)) continue;
    std::string taken = name.substr(prefix.size());
    taken.resize(std::min(taken.find_first_not_of("0123456789"), taken.size()));
    if (taken < stamp) continue;
    // The digits behind its last one below 9 are all 9.
    std::size_t const last = taken.find_last_not_of('9');
    if (last == std::string::npos) {
      stamp = taken + '0';
      continue;
    }
    ++taken[last];
    std::fill(taken.begin() + static_cast<std::ptrdiff_t>(last) + 1, taken.end(), '0');
    stamp = taken;
  }
  return stamp;
}

}  // namespace detail

/// Writes TensorBoard's event files. The policy TensorBoard opens one for each fit; a program may
/// hold a copy of its `writer`, which shares the file, and add histograms, texts and images from
/// any thread. While no file is open, nothing is written.
///
/// Like every sink it does not end a run: a failed write is counted (`lost`), and the next is tried
/// again. ShapeError for a tensor that is no image, whether a file is open or not.
class TensorBoardWriter {
 public:
  /// The prefix of event files' names, by which TensorBoard finds them.
  static constexpr std::string_view prefix = "events.out.tfevents.";

  TensorBoardWriter() : shared_(std::make_shared<Shared>()) {}

  /// Makes a new file in a folder; DataError if it cannot.
  void open(std::filesystem::path const& folder) const;
  void close() const {
    std::scoped_lock const lock(shared_->guard);
    // A run that was refused leaves an empty file.
    if (shared_->file && shared_->file->size() == 0) ::unlink(shared_->path.c_str());
    shared_->file.reset();
    shared_->histograms.clear();
  }
  bool is_open() const {
    std::scoped_lock const lock(shared_->guard);
    return shared_->file != nullptr;
  }
  std::filesystem::path path() const {
    std::scoped_lock const lock(shared_->guard);
    return shared_->path;
  }
  std::uint64_t lost() const { return shared_->lost; }  ///< events of the members below

  void scalar(std::string_view tag, std::uint64_t step, double value) const {
    add(step, [&](detail::TfSummary& summary) { summary.scalar(tag, value); });
  }
  /// The finite values of a tensor, wherever it is. On a device one host sync, and at the first
  /// histogram of a fit another one.
  void histogram(std::string_view tag, std::uint64_t step, at::Tensor const& tensor) const {
    add(step, [&](detail::TfSummary& summary) {
      add_histograms(summary, {std::string(tag)}, histogram_rows({tensor}));
    });
  }
  /// Markdown.
  void text(std::string_view tag, std::uint64_t step, std::string_view markdown) const {
    add(step, [&](detail::TfSummary& summary) { summary.text(tag, markdown); });
  }
  /// [C, H, W] with 1, 3 or 4 channels, or [H, W]: bytes (uint8), or floating-point numbers from 0
  /// to 1.
  void image(std::string_view tag, std::uint64_t step, at::Tensor const& pixels) const {
    require_image(pixels);
    add(step, [&](detail::TfSummary& summary) {
      at::Tensor bytes_CHW =
          pixels.detach().dim() == 2 ? pixels.detach().unsqueeze(0) : pixels.detach();
      if (bytes_CHW.is_floating_point()) {
        bytes_CHW = bytes_CHW.to(at::kFloat).nan_to_num(0).clamp(0, 1).mul(255).round();
      }
      at::Tensor const bytes_HWC = bytes_CHW.to(at::kByte).cpu().permute({1, 2, 0}).contiguous();
      std::array<std::int32_t, 3> size{};
      for (std::size_t i = 0; i < 3; ++i) {
        size[i] = static_cast<std::int32_t>(bytes_HWC.size(static_cast<std::int64_t>(i)));
      }
      auto const* const data = static_cast<std::uint8_t const*>(bytes_HWC.const_data_ptr());
      auto const as_size = [](std::int32_t n) { return static_cast<std::uint32_t>(n); };
      summary.image(
          tag, size[0], size[1], size[2],
          detail::encode_png(as_size(size[0]), as_size(size[1]), as_size(size[2]),
                             std::span(data, static_cast<std::size_t>(bytes_HWC.numel()))));
    });
  }

  // For the policy: these throw if they fail.

  void write(detail::TfSummary const& summary, std::uint64_t step) const {
    if (!summary.empty()) put(summary.event(when(step)));
  }
  /// Readers drop what has this step or a later one: the run has gone back to before it.
  void restart(std::uint64_t step) const { put(detail::tf_restart_event(when(step))); }

  /// For add_histograms, on the devices of the tensors.
  std::vector<at::Tensor> histogram_rows(std::vector<at::Tensor> const& tensors) const {
    return shared_->histograms.rows_of(tensors);
  }
  /// One copy to the host for all rows of a device.
  static void add_histograms(detail::TfSummary& summary, std::vector<std::string> const& tags,
                             std::vector<at::Tensor> const& rows) {
    std::vector<HistogramSummary> const all = detail::Histograms::read(rows);
    for (std::size_t i = 0; i < all.size(); ++i) {
      if (all[i].count > 0) summary.histogram(tags[i], all[i]);
    }
  }

 private:
  struct Shared {
    std::mutex guard{};
    std::filesystem::path path{};
    std::unique_ptr<detail::LogFile> file{};
    std::atomic<std::uint64_t> lost{0};
    detail::Histograms histograms{};
  };

  static detail::TfWhen when(std::uint64_t step) {
    return {detail::unix_time(), static_cast<std::int64_t>(step)};
  }

  template <class Fill>
  void add(std::uint64_t step, Fill&& fill) const {
    if (!is_open()) return;
    try {
      detail::TfSummary summary;
      fill(summary);
      write(summary, step);
    } catch (std::exception const&) {
      ++shared_->lost;
    }
  }

  /// All of a record or none of it: a reader stops for ever at a torn one.
  void put(std::string_view event) const {
    std::scoped_lock const lock(shared_->guard);
    if (!shared_->file) return;
    if (shared_->file->removed()) {
      // Not its folder: who removed that does not want it back.
      auto again = std::make_unique<detail::LogFile>(shared_->path, detail::Links::refuse);
      if (!again->open()) fail(errno);
      shared_->file = std::move(again);
    }
    std::string records;
    if (shared_->file->size() == 0)
      records = detail::tfrecord(detail::tf_version_event(detail::unix_time()));
    records += detail::tfrecord(event);
    if (!shared_->file->append(records)) fail(errno);
  }

  [[noreturn]] void fail(int code) const {
    throw std::runtime_error(shared_->path.string() + ": " + detail::why_of(shared_->path, code));
  }

  static void require_image(at::Tensor const& pixels) {
    bool const plane = pixels.defined() && pixels.dim() == 2;
    bool const planes = pixels.defined() && pixels.dim() == 3 &&
                        (pixels.size(0) == 1 || pixels.size(0) == 3 || pixels.size(0) == 4);
    bool const typed =
        pixels.defined() && (pixels.is_floating_point() || pixels.scalar_type() == at::kByte);
    if ((plane || planes) && typed && pixels.numel() > 0) return;
    std::string shape = "undefined";
    if (pixels.defined()) {
      shape = std::string(c10::toString(pixels.scalar_type())) + " [";
      for (std::int64_t i = 0; i < pixels.dim(); ++i) {
        shape += (i == 0 ? "" : ", ") + std::to_string(pixels.size(i));
      }
      shape += ']';
    }
    throw ShapeError({.what = "the tensor is not an image but " + shape,
                      .where = "TensorBoardWriter::image",
                      .why =
                          "an image is [C, H, W] with 1, 3 or 4 channels, or [H, W], of bytes or "
                          "floating-point numbers from 0 to 1",
                      .fix = "Take one image of the batch, and move its channels to the front."});
  }

  std::shared_ptr<Shared> shared_;
};

inline void TensorBoardWriter::open(std::filesystem::path const& folder) const {
  static std::atomic<unsigned> files{0};
  std::error_code failure;
  std::filesystem::create_directories(folder, failure);
  if (failure) {
    Fault const why =
        detail::folder_error(folder, detail::first_missing(folder), failure.value()).fault();
    throw DataError({.what = "TensorBoard cannot open its file",
                     .where = folder.string(),
                     .why = why.what + ": " + why.why,
                     .fix = why.fix});
  }
  std::array<char, 256> host{};
  if (::gethostname(host.data(), host.size() - 1) != 0 || host[0] == '\0') host = {"host"};
  std::string const name = std::string(prefix) + detail::later_stamp(folder, prefix) + "." +
                           host.data() + "." + std::to_string(::getpid()) + "." +
                           std::to_string(files++);
  std::scoped_lock const lock(shared_->guard);
  shared_->path = folder / name;
  shared_->file = std::make_unique<detail::LogFile>(shared_->path, detail::Links::refuse);
  if (shared_->file->open()) return;
  int const code = errno;
  shared_->file.reset();
  throw DataError({.what = "TensorBoard cannot open its file",
                   .where = shared_->path.string(),
                   .why = detail::why_of(shared_->path, code),
                   .fix = "Check the permissions and the free space there, or set another "
                          "TensorBoard::path."});
}

}  // namespace frugal
