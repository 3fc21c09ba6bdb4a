// SPDX-License-Identifier: Apache-2.0
// The job of tests/fault/train.cpp: small, with everything that a resume can get wrong.
#pragma once

#include <frugal/data.hpp>
#include <frugal/frugal.hpp>
#include <frugal/report.hpp>

#include "support/running.hpp"

#include <atomic>
#include <bit>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <memory>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace frugal_test::fault {

using support::Mlp;

/// What a start is doing. Whether it is saving, the folder shows.
enum class Where : int { starting, window, mid_window, validation, ending };

/// Progress of a start while it lives, in memory shared with its parent.
struct Told {
  std::atomic<Where> where{Where::starting};
  std::atomic<std::uint64_t> step{0};        ///< 0 until the first is done
  std::atomic<std::uint64_t> training{0};    ///< batches begun
  std::atomic<std::uint64_t> validation{0};  ///< likewise
  std::atomic<int> position{0};              ///< of a test that tries many cases in one process
};

namespace kinds {
struct ids : frugal::optional_kind {
  static constexpr std::string_view name = "test.Ids";
};
}  // namespace kinds

/// Numbers of a contiguous kLong tensor. Not const_data_ptr<T>(): clang mangles that template's
/// name differently from the g++ that built LibTorch, and does not find it.
inline std::span<std::int64_t const> ids_in(at::Tensor const& tensor) {
  return {static_cast<std::int64_t const*>(tensor.const_data_ptr()),
          static_cast<std::size_t>(tensor.numel())};
}

/// Records which samples were trained on, in order. The objective records those of a window, which
/// count once its step is done.
struct Ids {
  using kind = kinds::ids;
  using listens = frugal::list<frugal::on::fit_begin, frugal::on::step, frugal::on::validated,
                               frugal::on::fit_end>;
  // A validation may be interrupted although the step is done.
  using before = frugal::list<frugal::kinds::validate>;

  std::vector<std::int64_t>* window = nullptr;
  Told* told = nullptr;

  class State {
   public:
    explicit State(Ids const& settings) : window_(settings.window), told_(settings.told) {}

    void on_fit_begin(frugal::FitBegin&) { told_->where = Where::window; }
    void on_step(frugal::Step& phase) {
      all_.insert(all_.end(), window_->begin(), window_->end());
      window_->clear();
      told_->step = phase.counters().step;
      told_->where = Where::window;
    }
    void on_validated(frugal::Validated&) { told_->where = Where::window; }
    void on_fit_end(frugal::FitEnd& phase) {
      told_->step = phase.counters().step;
      told_->where = Where::ending;
    }

    template <class Archive>
    void persist(Archive& archive) {
      at::Tensor all = Archive::loading ? at::Tensor() : at::tensor(all_, at::kLong);
      archive("all", all);
      if (!Archive::loading) return;
      std::span const ids = ids_in(all);
      all_.assign(ids.begin(), ids.end());
    }

   private:
    std::vector<std::int64_t>* window_;
    Told* told_;
    std::vector<std::int64_t> all_;
  };
};

constexpr std::int64_t features = 6;
constexpr std::int64_t sample_count =
    203;  // 26 batches of 8, the last of 3; 9 windows, the last of 2

/// Cross entropy of data [B, 7], with the sample's number in the last column.
struct Objective {
  std::vector<std::int64_t>* window;
  Told* told;
  bool forgets = false;  ///< draws from the generator once per start, which no resume can know

  frugal::Loss operator()(std::shared_ptr<Mlp>& module, frugal::Batch const& batch) const {
    if (forgets && told->training == 0) at::rand({1});
    if (module->is_training()) {
      if (!window->empty()) told->where = Where::mid_window;
      ++told->training;
      at::Tensor const ids_B = batch.data.select(1, features).to(at::kLong).contiguous();
      std::span const ids = ids_in(ids_B);
      window->insert(window->end(), ids.begin(), ids.end());
    } else {
      told->where = Where::validation;
      ++told->validation;
    }
    return frugal::CrossEntropy{}(module, {batch.data.narrow(1, 0, features), batch.target});
  }
};

inline frugal::Batch numbered(std::int64_t count, std::uint32_t stream) {
  frugal::Batch rows = support::samples(count, stream);
  rows.data = at::cat({rows.data, at::arange(count, at::kFloat).unsqueeze(1)}, 1);
  return rows;
}

struct Job {
  std::filesystem::path folder;
  std::uint64_t seed = 7;
  std::uint64_t epochs = 40;
  bool async = true;  ///< which of the two recipes below
  frugal::OnFailure on_failure = frugal::OnFailure::Stop;
  bool forgets = false;  ///< does not resume exactly
};

// Two ways to save; otherwise equal.
using Background = frugal::Checkpoint<frugal::Every<3>, frugal::Keep<2>, frugal::Async>;
using Foreground = frugal::Checkpoint<frugal::Every<5>, frugal::Keep<2>, frugal::KeepBest<>>;

template <class Checkpoint>
frugal::Report fit_with(Job const& job, Told& told, std::shared_ptr<Mlp> const& module) {
  std::vector<std::int64_t> window;
  Checkpoint checkpoint;
  checkpoint.on_failure = job.on_failure;
  frugal::Trainer trainer{
      module,
      Objective{&window, &told, job.forgets},
      frugal::Settings{.run_dir = job.folder, .epochs = job.epochs, .seed = job.seed},
      frugal::Optimize<frugal::AdamW>{.lr = 0.01},
      frugal::Accumulate<3>{},
      frugal::Schedule<frugal::Plateau<0.5, frugal::Patience<1>>>{},
      frugal::Validate<frugal::Every<4>, frugal::Accuracy>{},
      frugal::EarlyStop<frugal::Patience<3>>{.min_delta = 0.002},
      frugal::Log<frugal::Every<2>>{},
      Ids{.window = &window, .told = &told},
      frugal::Spot<frugal::SigtermSave>{.on_preemption = frugal::Preempted::Exit},
      checkpoint};
  frugal::Prefetch train(
      frugal::TensorDataset(numbered(sample_count, 91), {.batch = 8, .shuffle = true}));
  frugal::TensorDataset valid(numbered(61, 92), {.batch = 8});
  return trainer.fit(train, valid);
}

/// Runs the job, or the rest of it. A preempted run does not return.
inline frugal::Report fit(Job const& job, Told& told, std::shared_ptr<Mlp> const& module) {
  return job.async ? fit_with<Background>(job, told, module)
                   : fit_with<Foreground>(job, told, module);
}

/// The process's results at the end: everything but seconds, with every number by its bits.
inline nlohmann::json facts_of(frugal::Report const& report, Mlp const& module) {
  nlohmann::json out{{"epochs", report.epochs},
                     {"steps", report.steps},
                     {"samples", report.samples},
                     {"train_loss", std::bit_cast<std::uint64_t>(report.train_loss)},
                     {"stopped_by", report.stopped_by}};
  for (frugal::Validation const& each : report.validations) {
    nlohmann::json metrics = nlohmann::json::object();
    for (auto const& [name, value] : each.metrics) {
      metrics[name] = std::bit_cast<std::uint64_t>(value);
    }
    out["validations"].push_back({{"step", each.step}, {"metrics", metrics}});
  }
  for (auto const& [name, tensor] : support::tensors_of(module)) {
    at::Tensor const flat = tensor.contiguous();
    auto const bytes =
        std::span(static_cast<std::byte const*>(flat.const_data_ptr()), flat.nbytes());
    out["tensors"][name] = frugal::hex_of(frugal::Hash::of(bytes));
  }
  return out;
}

/// Next to the run directory, which may be read-only.
inline std::filesystem::path facts_of(std::filesystem::path const& folder) {
  return folder.string() + ".facts";
}

/// Also next to it: the advice of completed processes, one per line.
inline std::filesystem::path advice_of(std::filesystem::path const& folder) {
  return folder.string() + ".advice";
}

/// Runs the job and writes its facts and its advice.
inline frugal::Report run(Job const& job, Told& told) {
  auto const module = std::make_shared<Mlp>(Mlp::Shape{.dropout = 0.3, .norm = true});
  frugal::Report report = fit(job, told, module);
  std::ofstream(facts_of(job.folder)) << facts_of(report, *module);
  std::ofstream advice(advice_of(job.folder));
  for (std::string const& line : report.warnings) advice << line << '\n';
  return report;
}

}  // namespace frugal_test::fault
