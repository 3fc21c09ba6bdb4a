// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <c10/core/Device.h>

#include <concepts>
#include <functional>
#include <vector>

#include <ATen/core/Generator.h>

namespace frugal {

/// Records a device's work and replays it.
///
/// `require(device)`         throws SettingsError if the device does not support it
/// `begin(device)`           called once, before the first window
/// `on_side_stream(body)`    runs `body` on the stream of later captures, ordered after the current
///                          stream's pending work; the current stream continues after it
/// `capture(generators, body)`  records `body` without executing it. Its allocations come from one
///                          pool for all captures since the last `forget()`; a replay draws new
///                          numbers from the generators
/// `recording.replay()`      executes the recording on the current stream
/// `forget()`                earlier captures will not be used again
template <class B>
concept CaptureBackend =
    std::copyable<B> && std::default_initializable<B> &&
    requires(B& backend, typename B::Recording& recording, c10::Device device,
             std::vector<at::Generator> const& generators, std::function<void()> const& body) {
      B::require(device);
      backend.begin(device);
      backend.on_side_stream(body);
      { backend.capture(generators, body) } -> std::same_as<typename B::Recording>;
      recording.replay();
      backend.forget();
    };

/// The backend of a build without CUDA: it compiles, and throws an error that says so.
struct NoCapture {
  struct Recording {
    void replay() const {}
  };

  static void require(c10::Device device);
  void begin(c10::Device) {}
  void on_side_stream(std::function<void()> const& body) { body(); }
  Recording capture(std::vector<at::Generator> const&, std::function<void()> const&) { return {}; }
  void forget() {}
};

}  // namespace frugal

#ifndef FRUGAL_COMPILED
#include <frugal/core/libtorch/capture_backend.ipp>
#endif
