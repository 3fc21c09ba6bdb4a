// SPDX-License-Identifier: Apache-2.0
// CUDA graphs with counters: a run whose captures all fail continues eagerly, with the same bits,
// and only a count shows the difference.
#pragma once

#include <c10/core/Device.h>

#include <frugal/policy/cuda_graph.hpp>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace frugal_test::gpu {

struct CaptureLog {
  int side_streams = 0;  ///< warm-up windows
  int captures = 0;      ///< recordings begun
  int broken_off = 0;    ///< failed ones among these
  int replays = 0;
  int forgets = 0;
};

class CountingCapture {
 public:
  class Recording {
   public:
    Recording(frugal::CudaCapture::Recording recording, std::shared_ptr<CaptureLog> log)
        : recording_(std::move(recording)), log_(std::move(log)) {}
    void replay() {
      recording_.replay();
      ++log_->replays;
    }

   private:
    frugal::CudaCapture::Recording recording_;
    std::shared_ptr<CaptureLog> log_;
  };

  CountingCapture() = default;
  explicit CountingCapture(std::shared_ptr<CaptureLog> log) : log_(std::move(log)) {}

  static void require(c10::Device device) { frugal::CudaCapture::require(device); }
  void begin(c10::Device device) { cuda_.begin(device); }

  void on_side_stream(std::function<void()> const& body) {
    ++log_->side_streams;
    cuda_.on_side_stream(body);
  }

  Recording capture(std::vector<at::Generator> const& generators,
                    std::function<void()> const& body) {
    ++log_->captures;
    try {
      return {cuda_.capture(generators, body), log_};
    } catch (...) {
      ++log_->broken_off;
      throw;
    }
  }

  void forget() {
    ++log_->forgets;
    cuda_.forget();
  }

 private:
  frugal::CudaCapture cuda_;
  std::shared_ptr<CaptureLog> log_ = std::make_shared<CaptureLog>();
};

using Counted = frugal::CudaGraph<frugal::WholeStep, CountingCapture>;

constexpr int never = 1 << 20;  // warm-up windows

/// The CudaGraph of a recipe whose captures are counted.
inline Counted counted(std::shared_ptr<CaptureLog> log, int warm_up = 3) {
  Counted graph;
  graph.warm_up = warm_up;
  graph.backend = CountingCapture(std::move(log));
  return graph;
}

/// The number of lines in a report's advice that contain `text`.
inline int lines_with(std::string const& text, std::vector<std::string> const& advice) {
  int lines = 0;
  for (std::string const& each : advice) lines += each.find(text) != std::string::npos ? 1 : 0;
  return lines;
}

}  // namespace frugal_test::gpu
