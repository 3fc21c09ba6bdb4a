// SPDX-License-Identifier: Apache-2.0
// What the programs of bench/search.py train, and how they look into it: a small convolutional network on Fashion-MNIST, a GPT on
// the bytes of a text, a source that counts its samples, a policy that records each step, and a schedule that promotes every trial.
//
// Shapes: B images, 1x28x28 each, 10 classes; N sequences of T tokens.
#pragma once

#include <frugal/frugal.hpp>
#include <frugal/search.hpp>

#include <fcntl.h>
#include <unistd.h>

#include <cstdint>
#include <fstream>
#include <iterator>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "transformer.hpp"

namespace frugal_bench {

namespace fr = frugal;
namespace nn = torch::nn;

/// An architecture: `depth` convolutions, each of which halves the image's edges, and a hidden layer.
struct Shape {
  int channels = 8, depth = 2, kernel = 3, hidden = 64;
  bool norm = false;
  double dropout = 0;
  std::string activation = "relu";
};

inline nn::Sequential network(Shape const& shape) {
  nn::Sequential net;
  auto const activate = [&] {
    if (shape.activation == "gelu") {
      net->push_back(nn::GELU());
    } else if (shape.activation == "silu") {
      net->push_back(nn::SiLU());
    } else {
      net->push_back(nn::ReLU());
    }
  };
  std::int64_t in = 1, edge = 28;
  for (int i = 0; i < shape.depth; ++i) {
    std::int64_t const out = shape.channels * (i == 0 ? 1 : 2);
    net->push_back(
        nn::Conv2d(nn::Conv2dOptions(in, out, shape.kernel).stride(2).padding(shape.kernel / 2)));
    if (shape.norm) net->push_back(nn::BatchNorm2d(out));
    activate();
    in = out;
    edge = (edge + 1) / 2;
  }
  net->push_back(nn::Flatten());
  net->push_back(nn::Linear(in * edge * edge, shape.hidden));
  activate();
  net->push_back(nn::Dropout(shape.dropout));
  net->push_back(nn::Linear(shape.hidden, 10));
  return net;
}

/// Adds up the samples that a source hands out.
struct CountSamples {
  static constexpr bool keeps_input = true;
  std::uint64_t* samples;
  fr::Batch operator()(fr::Batch batch) const {
    *samples += static_cast<std::uint64_t>(batch.data.size(0));
    return batch;
  }
};
using CountedSource = fr::Mapped<fr::TensorDataset, CountSamples>;

/// The images that trials train on, and those that they are compared and tested by.
struct Images {
  explicit Images(std::string const& folder)
      : Images(fr::read_mnist(folder, fr::Split::train), fr::read_mnist(folder, fr::Split::test)) {}

  std::uint64_t handed_out = 0;
  CountedSource train;
  fr::TensorDataset valid, test;

 private:
  Images(fr::Batch const& all, fr::Batch const& rest)
      : train(fr::TensorDataset(all.data.narrow(0, 0, 50000), all.target.narrow(0, 0, 50000),
                                {.batch = 64, .drop_last = true}),
              CountSamples{&handed_out}),
        valid(all.data.narrow(0, 50000, 10000), all.target.narrow(0, 50000, 10000),
              {.batch = 500, .shuffle = false}),
        test(rest.data, rest.target, {.batch = 500, .shuffle = false}) {}
};

struct GptShape {
  int width = 64, layers = 2;
};
constexpr std::int64_t gpt_tokens = 64;

inline nn::Sequential gpt(GptShape const& shape) {
  return make_gpt({.layers = shape.layers,
                   .batch = 8,
                   .tokens = gpt_tokens,
                   .channels = shape.width,
                   .heads = 4,
                   .words = 256});
}

/// Sequences of a text's bytes: those of the first 19/20 to train on, and 256 of the rest.
struct Text {
  explicit Text(std::string const& file) : Text(bytes_of(file)) {}

  std::uint64_t handed_out = 0;
  CountedSource train;
  fr::TensorDataset valid;

 private:
  explicit Text(at::Tensor const& bytes)
      : train(fr::TensorDataset(sequences(bytes.slice(0, 0, bytes.numel() / 20 * 19)),
                                {.batch = 8, .drop_last = true}),
              CountSamples{&handed_out}),
        valid(sequences(bytes.slice(0, bytes.numel() / 20 * 19).slice(0, 0, 256 * gpt_tokens + 1)),
              {.batch = 64, .shuffle = false}) {}

  static at::Tensor bytes_of(std::string const& file) {
    std::ifstream in(file, std::ios::binary);
    std::string text((std::istreambuf_iterator<char>(in)), std::istreambuf_iterator<char>());
    if (text.size() < 1'000'000) {
      throw fr::DataError({.what = "the text cannot be read, or has less than a million bytes",
                           .where = file,
                           .why = "",
                           .fix = "Give --text a file."});
    }
    auto const size = static_cast<std::int64_t>(text.size());
    return at::from_blob(text.data(), {size}, at::kByte).to(at::kLong);
  }
  /// Sequences, and the same ones a byte further.
  static fr::Batch sequences(at::Tensor const& bytes) {
    std::int64_t const count = (bytes.numel() - 1) / gpt_tokens, size = count * gpt_tokens;
    return {bytes.narrow(0, 0, size).view({count, gpt_tokens}).contiguous(),
            bytes.narrow(0, 1, size).view({count, gpt_tokens}).contiguous()};
  }
};

/// Appends a line "FOLDER OF THE RUN STEP" after each step, which a kill does not take away.
struct StepLog {
  struct kind : fr::optional_kind {
    static constexpr std::string_view name = "StepLog";
  };
  using listens = fr::list<fr::on::step>;

  std::string file{};

  class State {
   public:
    using transient = void;
    explicit State(StepLog const& settings) : file_(settings.file) {}

    void on_step(fr::Step& phase) {
      std::string const line = phase.settings().run_dir.filename().string() + ' ' +
                               std::to_string(phase.counters().step) + '\n';
      int const to = ::open(file_.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
      bool const written = ::write(to, line.data(), line.size()) == std::ssize(line);
      ::close(to);
      if (!written) throw std::runtime_error("the log of steps cannot be written: " + file_);
    }

   private:
    std::string file_;
  };
};

/// Trains every trial in full, and measures it where the rungs of successive halving end.
struct EveryRung {
  std::uint64_t trials = 96, least = 0;
  fr::RungUnit unit = fr::RungUnit::steps;

  std::unique_ptr<fr::SearchSchedule const> bind(fr::SearchLimits const& limits) const {
    return std::make_unique<Schedule const>(trials, halving_rungs(limits));
  }

 private:
  /// With so many trials no rung is left out.
  std::vector<std::uint64_t> halving_rungs(fr::SearchLimits const& limits) const {
    return fr::SuccessiveHalving<fr::Eta<3>>{.trials = 1U << 20U, .least = least}
        .bind(limits)
        ->rungs()
        .front();
  }

  class Schedule final : public fr::SearchSchedule {
   public:
    Schedule(std::uint64_t trials, std::vector<std::uint64_t> rungs)
        : trials_(trials), rungs_(std::move(rungs)) {}

    std::vector<std::vector<std::uint64_t>> rungs() const override { return {rungs_}; }
    std::string text() const override {
      return "every rung of " + std::to_string(trials_) + " trials from " +
             std::to_string(rungs_.front()) + " steps";
    }
    fr::SearchDecision next(fr::SearchHistory const& history) const override {
      using Kind = fr::SearchDecision::Kind;
      bool open = false;
      for (std::size_t i = 0; i < history.trials.size(); ++i) {
        fr::SearchTrial const& trial = history.trials[i];
        open = open || trial.is_open();
        if (!trial.is_over() && !trial.is_open()) return {.kind = Kind::promote, .trial = i};
      }
      if (history.trials.size() < trials_) return {.kind = Kind::create};
      return {.kind = open ? Kind::wait : Kind::done};
    }

   private:
    std::uint64_t trials_;
    std::vector<std::uint64_t> rungs_;
  };
};

}  // namespace frugal_bench
