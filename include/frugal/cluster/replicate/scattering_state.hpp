// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <c10/core/ScalarType.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <type_traits>

#include <frugal/cluster/replicate/state.hpp>
#include <frugal/cluster/shard/scattered_gradients.hpp>
#include <frugal/core/run/services.hpp>
#include <frugal/error.hpp>

namespace frugal::detail {

/// The State of both Replicates with Shard<States, Grads> and Shard<States, Grads, Params>: what they
/// differ in is the worlds that they allow.
template <class Context>
class ScatteringState : public ReplicateState<Context, ScatteredGradients, /*shards=*/true> {
 public:
  using Base = ReplicateState<Context, ScatteredGradients, true>;

  template <class Settings>
  ScatteringState(Settings const& settings, MicroBatches const& own, char const* name, bool gathers,
                  c10::ScalarType wire)
      : Base(settings.communicator(), own, name,
             {.bytes = positive(settings.bucket_bytes, name),
              .layers = gathers ? std::max<std::int64_t>(settings.whole_below, 1) : 0},
             ScatteredGradients::Settings{.micro_batches = own.count, .wire = wire, .name = name}) {
  }

 private:
  static std::int64_t positive(std::int64_t bytes, char const* name) {
    if (bytes > 0) return bytes;
    throw SettingsError({.what = "bucket_bytes is " + std::to_string(bytes),
                         .where = name,
                         .why = "a bucket has at least one gradient",
                         .fix = "Set 1 or more; 25 MiB is the default."});
  }
};

/// Without parts of weights it has nothing to save.
template <class Context>
struct TransientScatteringState : ScatteringState<Context> {
  using transient = void;

  template <class Settings>
  TransientScatteringState(Settings const& settings, MicroBatches const& own, char const* name,
                           c10::ScalarType wire = c10::ScalarType::Undefined)
      : ScatteringState<Context>(settings, own, name, false, wire) {}
};

/// With parts of weights a process that resumes in the last window of an epoch must know what the
/// others collect.
template <class Context>
struct GatheringState : ScatteringState<Context> {
  using dispensable = void;

  template <class Settings>
  GatheringState(Settings const& settings, MicroBatches const& own, char const* name,
                 c10::ScalarType wire = c10::ScalarType::Undefined)
      : ScatteringState<Context>(settings, own, name, true, wire) {}

  template <class Archive>
  void persist(Archive& archive) {
    archive("order", this->gradients_.order());
  }
};

template <class Context, bool gathers>
using scattering_state =
    std::conditional_t<gathers, GatheringState<Context>, TransientScatteringState<Context>>;

}  // namespace frugal::detail
