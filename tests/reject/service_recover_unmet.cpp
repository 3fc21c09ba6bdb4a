// SPDX-License-Identifier: Apache-2.0
// needs: torch
// expect: frugal: this policy provides service::recover, and its State lacks the member. Write `bool recover(CheckpointPhase&, LossError const&)`.
#include <frugal/core.hpp>

#include <torch/nn/modules/linear.h>

using namespace frugal;

struct Sound {
  struct kind : optional_kind {
    static constexpr std::string_view name = "Sound";
  };
  using listens = list<frugal::on::window>;
  using provides = list<frugal::service::recover>;
  struct State {
    explicit State(Sound const&) {}
    void on_window(WindowBegin&) {}
    bool recover(CheckpointPhase&, LossError const&) { return false; }
  };
};
using SoundEngine = frugal::Context<torch::nn::Linear, Sound>::engine;
static_assert(sizeof(SoundEngine) >= 1);
#ifdef FRUGAL_REJECT
struct Unsound {
  struct kind : optional_kind {
    static constexpr std::string_view name = "Unsound";
  };
  using listens = list<frugal::on::window>;
  using provides = list<frugal::service::recover>;
  struct State {
    explicit State(Unsound const&) {}
    void on_window(WindowBegin&) {}
    void recover(CheckpointPhase&) {}
  };
};
using UnsoundEngine = frugal::Context<torch::nn::Linear, Unsound>::engine;
static_assert(sizeof(UnsoundEngine) >= 1);
#endif
