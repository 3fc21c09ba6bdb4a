// SPDX-License-Identifier: Apache-2.0
// The hand-written loops that frugal is compared with: what a careful engineer writes for one
// recipe, with everything known in advance and nothing configurable. Each does all of its recipe's
// work in the same order: fused AdamW with one shared step counter, cached parameter and gradient
// lists, a backward pass that starts from a cached gradient. Nothing is left out to make frugal
// look good, and nothing is added: they do not check for NaN and count no samples.
//
// Both sides draw their batches from frugal::TensorDataset, so that the loops are compared rather than
// the shuffles.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "rivals/activations.hpp"
#include "rivals/basic.hpp"
#include "rivals/gradients.hpp"
#include "rivals/job.hpp"
#include "rivals/sinks.hpp"
#include "rivals/watching.hpp"
#include "rivals/weights.hpp"

namespace frugal_bench {

/// The arguments of either side; each trains its own module, with equal initial weights.
struct Job {
  fr::TensorDataset& source;
  fr::TensorDataset& valid;
  std::uint64_t steps;
  std::string const& log;
};

struct Recipe {
  std::string_view name;
  void (*by_frugal)(Job const&);
  void (*by_hand)(Job const&);
  bool timed = true;
};

/// A side that is a function of module, source and steps.
template <auto Loop, class Module = Net>
void side(Job const& job) {
  Module net = make_net<Module>();
  Loop(net, job.source, job.steps);
}

inline constexpr Recipe recipes[] = {
    {"none", side<frugal_loop<NoneTrainer, Net>>, side<rival_none>},
    {"bf16", side<frugal_loop<Bf16Trainer, Net>>, side<rival_bf16>},
    {"full",
     [](Job const& job) {
       Net net = make_net();
       frugal_full(net, job.source, job.steps, job.log.c_str());
     },
     [](Job const& job) {
       Net net = make_net();
       rival_full(net, job.source, job.steps, job.log.c_str());
     }},
    {"saves", side<frugal_saves>, side<rival_saves>, false},
    {"fp16", side<frugal_loop<Fp16Trainer, Net>>, side<rival_fp16>},
    {"value", side<frugal_loop<ValueTrainer, Net>>, side<rival_value>},
    {"adaptive", side<frugal_loop<AdaptiveTrainer, Net>>, side<rival_adaptive>},
    {"ema", side<frugal_loop<EmaTrainer, Net>>, side<rival_ema>},
    {"swa", side<frugal_loop<SwaTrainer, Net>>, side<rival_swa>},
    {"recompute", side<frugal_loop<RecomputeTrainer, Deep>, Deep>, side<rival_recompute, Deep>},
    {"half", side<frugal_loop<HalfTrainer, Deep>, Deep>, side<rival_half, Deep>},
    {"speed", side<frugal_loop<SpeedTrainer, Net>>, side<rival_speed>},
    {"profile", side<frugal_loop<ProfileTrainer, Net>>, side<rival_none>},
    {"sinks", side<frugal_sinks>, side<rival_none>},
    {"stop",
     [](Job const& job) {
       Net net = make_net();
       frugal_stop(net, job.source, job.valid, job.steps);
     },
     [](Job const& job) {
       Net net = make_net();
       rival_stop(net, job.source, job.valid, job.steps);
     }},
    {"audit", side<frugal_loop<AuditTrainer, Net>>, side<rival_audit>},
};

/// The recipe with that name; null if there is none.
inline Recipe const* find(std::string_view name) {
  for (Recipe const& each : recipes) {
    if (each.name == name) return &each;
  }
  return nullptr;
}

}  // namespace frugal_bench
