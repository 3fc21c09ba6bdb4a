// SPDX-License-Identifier: Apache-2.0
// Trains one of three jobs with some levers for a number of samples, and prints one line of JSON:
// wall seconds, processor seconds, peak bytes, loss on held-out samples. levers.py runs it and
// compares; --list prints the levers.
//
// Shapes: B samples; 1x28x28 pixels, or T tokens.
#include <frugal/data.hpp>
#include <frugal/frugal.hpp>
#include <frugal/report.hpp>

#include <sys/resource.h>
#include <torch/data/datasets/base.h>
#include <torch/data/transforms/stack.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <iterator>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "../peak_bytes.hpp"
#include "../transformer.hpp"

namespace fr = frugal;
namespace nn = torch::nn;
using nlohmann::json;

namespace {

// ---- levers -------------------------------------------------------------------------------------

/// A row: its name on the command line, its text in the table, and its policies.
template <fr::fixed_string Name, fr::fixed_string Text, class... Ps>
struct Lever {
  static constexpr std::string_view name = Name;
  static constexpr std::string_view text = Text;
};

/// Also measured in every combination, if they save time.
using ForTime = fr::list<Lever<"fused", "Optimize<AdamW>", fr::Optimize<fr::AdamW>>,
                         Lever<"bf16", "Precision<BF16>", fr::Precision<fr::BF16>>,
                         Lever<"keep", "KeepHostMemory", fr::KeepHostMemory>,
                         Lever<"denormals", "FlushDenormals", fr::FlushDenormals>>;
/// Likewise, if they save memory.
using ForMemory =
    fr::list<Lever<"accumulate", "Accumulate<4> with quarter batches", fr::Accumulate<4>>,
             Lever<"recompute", "Recompute<>", fr::Recompute<>>,
             Lever<"half", "Activations<BF16>", fr::Activations<fr::BF16>>>;
/// Measured individually.
using Others = fr::list<
    Lever<"fp16", "Precision<FP16>", fr::Precision<fr::FP16>>,
    Lever<"int8", "Precision<INT8>", fr::Precision<fr::INT8>>,
    Lever<"offload", "Activations<Offload>", fr::Activations<fr::Offload>>,
    Lever<"clip_norm", "ClipNorm<>", fr::ClipNorm<>>,
    Lever<"clip_value", "ClipValue<>", fr::ClipValue<>>,
    Lever<"clip_adaptive", "ClipAdaptive<>", fr::ClipAdaptive<>>,
    Lever<"schedule", "Schedule<Warmup<2>, Cosine>", fr::Schedule<fr::Warmup<2>, fr::Cosine>>,
    Lever<"ema", "Average<Ema<0.9>>, loss of the average", fr::Average<fr::Ema<0.9>>>,
    Lever<"rollback", "Rollback<Every<4>>", fr::Rollback<fr::Every<4>>>,
    Lever<"checkpoint", "Checkpoint<Every<4>, Async>", fr::Checkpoint<fr::Every<4>, fr::Async>>,
    Lever<"audit", "Audit<BitExact>", fr::Audit<fr::BitExact>>,
    Lever<"throughput", "Throughput<Every<4>>", fr::Throughput<fr::Every<4>>>,
    Lever<"log", "Log<Every<4>>", fr::Log<fr::Every<4>>>>;

// Levers of the data. They are no policies, so every recipe can have them.
constexpr std::string_view resident = "resident";
constexpr std::string_view prefetch = "prefetch";

// ---- data ---------------------------------------------------------------------------------------

/// A data set that returns one sample at a time, as in tutorials.
struct Samples : torch::data::datasets::Dataset<Samples> {
  explicit Samples(fr::Batch all) : set(std::move(all)) {}
  torch::data::Example<> get(std::size_t index) override {
    auto const i = static_cast<std::int64_t>(index);
    return {set.data[i], set.target[i]};
  }
  std::optional<std::size_t> size() const override {
    return static_cast<std::size_t>(set.data.size(0));
  }
  fr::Batch set;
};

/// One type for every way to the data, so that recipes are compiled once.
class Data {
  using Stacked = fr::DatasetSource<Samples>;

 public:
  Data(fr::Batch const& set, std::set<std::string_view> const& levers, std::int64_t batch,
       c10::Device device)
      : source_(Stacked(Samples(set), {.batch = batch})) {
    fr::LoaderOptions const loading{.batch = batch};
    if (levers.contains(resident)) {
      source_.emplace<fr::TensorDataset>(set.data.to(device), set.target.to(device), loading);
    } else if (levers.contains(prefetch)) {
      source_.emplace<fr::Prefetch<Stacked>>(Stacked(Samples(set), loading));
    }
  }

  void seek(fr::Cursor const& cursor) {
    std::visit([&](auto& source) { source.seek(cursor); }, source_);
  }
  std::optional<fr::Batch> next() {
    return std::visit([](auto& source) { return source.next(); }, source_);
  }
  std::uint64_t samples() const {
    return std::visit([](auto const& source) { return source.samples(); }, source_);
  }
  std::uint64_t batches() const {
    return std::visit([](auto const& source) { return source.batches(); }, source_);
  }

 private:
  std::variant<Stacked, fr::Prefetch<Stacked>, fr::TensorDataset> source_;
};

// ---- jobs ---------------------------------------------------------------------------------------

struct Job {
  nn::Sequential net;
  fr::Batch train;
  fr::Batch judged;  // held-out samples
  std::int64_t batch;
  double learning_rate;
};

/// The network of examples/fashion_mnist.cpp.
nn::Sequential make_convnet() {
  return nn::Sequential(nn::Conv2d(nn::Conv2dOptions(1, 32, 3).padding(1)), nn::ReLU(),
                        nn::MaxPool2d(2), nn::Conv2d(nn::Conv2dOptions(32, 64, 3).padding(1)),
                        nn::ReLU(), nn::MaxPool2d(2), nn::Flatten(), nn::Linear(64 * 7 * 7, 128),
                        nn::ReLU(), nn::Dropout(0.25), nn::Linear(128, 10));
}

fr::Batch range(fr::Batch const& set, std::int64_t begin, std::int64_t end) {
  return {set.data.slice(0, begin, end), set.target.slice(0, begin, end)};
}

/// Windows of a text: bytes, each with the byte that follows.
fr::Batch windows(std::string const& path, std::int64_t tokens) {
  std::ifstream file(path, std::ios::binary);
  std::string text{std::istreambuf_iterator<char>(file), {}};
  auto const count = (static_cast<std::int64_t>(text.size()) - 1) / tokens;
  if (count < 1000) throw std::runtime_error("'" + path + "' is not a text of 1,000 windows");
  at::Tensor const bytes =
      at::from_blob(text.data(), {count * tokens + 1}, at::kByte).to(at::kLong);
  auto const cut = [&](std::int64_t first) {
    return bytes.slice(0, first, first + count * tokens).view({count, tokens}).contiguous();
  };
  return {cut(0), cut(1)};
}

Job make_job(std::string const& name, std::string const& images, std::string const& text) {
  if (name == "fashion") {
    return {.net = make_convnet(),
            .train = fr::read_mnist(images, fr::Split::train),
            .judged = range(fr::read_mnist(images, fr::Split::test), 0, 2000),
            .batch = 128,
            .learning_rate = 2e-3};
  }
  frugal_bench::TransformerShape const gpt{
      .layers = 6, .batch = 8, .tokens = 128, .channels = 384, .heads = 6, .words = 256};
  frugal_bench::TransformerShape const deep{
      .layers = 24, .batch = 8, .tokens = 128, .channels = 256, .heads = 4, .words = 256};
  frugal_bench::TransformerShape const& shape = name == "gpt" ? gpt : deep;
  fr::Batch const all = windows(text, shape.tokens);
  std::int64_t const count = all.data.size(0);
  return {.net = frugal_bench::make_gpt(shape),
          .train = range(all, 0, count - 32),
          .judged = range(all, count - 32, count),
          .batch = shape.batch,
          .learning_rate = 1e-3};
}

// ---- measuring ----------------------------------------------------------------------------------

struct Asked {
  Job job;
  std::set<std::string_view> levers;
  c10::Device device;
  std::uint64_t samples, seed, warmup;
  std::filesystem::path run;
  bool judge;
  frugal_bench::CountingAllocator& host;
};

/// User and system time of all threads of this process, unaffected by other processes.
double processor_seconds() {
  rusage used{};
  getrusage(RUSAGE_SELF, &used);
  auto const seconds = [](timeval const& time) {
    return static_cast<double>(time.tv_sec) + 1e-6 * static_cast<double>(time.tv_usec);
  };
  return seconds(used.ru_utime) + seconds(used.ru_stime);
}

/// Reads both clocks at the end of the last warm-up step and at the end of the last step, including
/// the work of other policies in between.
struct Watch {
  struct kind : fr::optional_kind {
    static constexpr std::string_view name = "LeverWatch";
    static constexpr fr::Stage stage = fr::Stage::leave;
  };
  using listens = fr::list<fr::on::step>;
  struct Clocks {
    std::chrono::steady_clock::time_point wall{};
    double processor = 0;  // seconds
  };
  struct Read {
    std::uint64_t warmup = 0;
    Clocks begin{}, end{};
  };
  Read* read = nullptr;

  class State {
   public:
    using transient = void;
    explicit State(Watch const& watch) : read_(watch.read) {}
    void on_step(fr::Step& phase) {
      auto const step = phase.counters().step;
      if (step < read_->warmup) return;
      if (!phase.settings().device.is_cpu()) phase.last_loss();  // waits for the device
      Clocks& clocks = step == read_->warmup ? read_->begin : read_->end;
      clocks.wall = std::chrono::steady_clock::now();
      clocks.processor = processor_seconds();
    }

   private:
    Read* read_;
  };
};

/// Run-time settings of a recipe.
template <class Trainer>
void prepare(Trainer& trainer, double learning_rate) {
  auto& optimizer = trainer.template policy<fr::kinds::optimizer>();
  if constexpr (requires { optimizer.lr; }) {
    optimizer.lr = learning_rate;
  } else {
    optimizer.make = [learning_rate](std::vector<at::Tensor> parameters) {
      return std::make_unique<torch::optim::AdamW>(std::move(parameters),
                                                   torch::optim::AdamWOptions(learning_rate));
    };
  }
}

double judge(nn::Sequential& net, fr::Batch const& judged, c10::Device device) {
  at::NoGradGuard const no_gradients;
  net->eval();
  std::int64_t const all = judged.data.size(0);
  std::int64_t const at_once = std::min<std::int64_t>(all, all == 32 ? 8 : 500);
  double sum = 0;
  for (std::int64_t i = 0; i < all; i += at_once) {
    fr::Batch const part = range(judged, i, std::min(all, i + at_once));
    at::Tensor const loss =
        at::cross_entropy_loss(net->forward(part.data.to(device)), part.target.to(device));
    sum += loss.item<double>() * static_cast<double>(part.data.size(0));
  }
  return sum / static_cast<double>(all);
}

template <class... Ps>
json measure(Asked& asked) {
  using Plain = fr::Recipe<fr::Optimize<fr::Any>>;
  constexpr bool own_optimizer =
      (false || ... || std::same_as<typename Ps::kind, fr::kinds::optimizer>);
  using Recipe =
      std::conditional_t<own_optimizer, fr::Recipe<Ps..., Watch>, fr::Recipe<Plain, Ps..., Watch>>;
  using Trainer = fr::Trainer<nn::Sequential, fr::CrossEntropy, Recipe>;
  Job& job = asked.job;
  // A window with Accumulate has as many samples as a batch without it.
  constexpr std::int64_t micro_batches =
      fr::detail::RecipeTraits<typename Trainer::policies>::batches;
  job.net->to(asked.device);
  Data data(job.train, asked.levers, job.batch / micro_batches, asked.device);
  std::uint64_t const steps = asked.samples / static_cast<std::uint64_t>(job.batch);
  Watch::Read read{.warmup = asked.warmup};
  Trainer trainer(
      job.net, {.run_dir = asked.run, .steps = steps, .seed = asked.seed, .device = asked.device});
  prepare(trainer, job.learning_rate);
  trainer.template policy<Watch::kind>().read = &read;
  frugal_bench::PeakBytes const bytes(asked.host, asked.device);
  fr::Report const report = trainer.fit(data);
  std::int64_t const peak = bytes.above_start();
  if constexpr ((false || ... || std::same_as<typename Ps::kind, fr::kinds::average>)) {
    trainer.template policy<fr::kinds::average>().copy_into(job.net);
  }
  std::chrono::duration<double> const spent = read.end.wall - read.begin.wall;
  return {{"seconds", spent.count()},
          {"processor", read.end.processor - read.begin.processor},
          {"samples", (steps - asked.warmup) * static_cast<std::uint64_t>(job.batch)},
          {"peak", peak},
          {"loss", asked.judge ? json(judge(job.net, job.judged, asked.device)) : json()},
          {"advice", report.warnings}};
}

// ---- recipes ------------------------------------------------------------------------------------

using Recipes = std::map<std::set<std::string_view>, json (*)(Asked&)>;

template <class List>
struct measured;
template <class... Ps>
struct measured<fr::list<Ps...>> {
  static json by(Asked& asked) { return measure<Ps...>(asked); }
};

template <fr::fixed_string Name, fr::fixed_string Text, class... Ps>
fr::list<Ps...> policies_of(Lever<Name, Text, Ps...>);
template <class L>
using policies_t = decltype(policies_of(L{}));

template <class... Ls>
void add(Recipes& recipes) {
  recipes.emplace(std::set<std::string_view>{Ls::name...},
                  &measured<fr::concat<policies_t<Ls>...>>::by);
}
template <class... In>
void add_subsets(Recipes& recipes, fr::list<>) {
  add<In...>(recipes);
}
template <class... In, class L, class... Rest>
void add_subsets(Recipes& recipes, fr::list<L, Rest...>) {
  add_subsets<In...>(recipes, fr::list<Rest...>{});
  add_subsets<In..., L>(recipes, fr::list<Rest...>{});
}
template <class... Ls>
void add_each(Recipes& recipes, fr::list<Ls...>) {
  (add<Ls>(recipes), ...);
}

template <class... Ls>
void tell(char const* saves, fr::list<Ls...>) {
  ((std::cout << json{{"name", Ls::name}, {"text", Ls::text}, {"saves", saves}} << '\n'), ...);
}

}  // namespace

int main(int argc, char** argv) {
  auto& host = frugal_bench::CountingAllocator::install();
  std::string job = "fashion", text, images = "/usr/share/datasets/fashion-mnist", device = "cpu";
  std::vector<std::string> levers;
  std::uint64_t samples = 1280, seed = 1, warmup = 2;
  std::string run;
  int threads = 0;
  bool list = false, no_loss = false;
  CLI::App app("Measures levers on a job.");
  app.add_flag("--list", list, "print the levers, one line of JSON each");
  app.add_option("--job", job)->check(CLI::IsMember({"fashion", "gpt", "deep"}));
  app.add_option("--levers", levers, "by name; none: the plain recipe")->delimiter(',');
  app.add_option("--samples", samples, "to train on, the first steps included");
  app.add_option("--warmup", warmup, "steps that are not timed")->check(CLI::PositiveNumber);
  app.add_option("--seed", seed);
  app.add_option("--device", device, "cpu, cuda, cuda:1");
  app.add_option("--threads", threads, "0: as many as LibTorch takes");
  app.add_option("--data", images, "folder of Fashion-MNIST");
  app.add_option("--text", text, "the text of the other jobs");
  app.add_option("--run", run, "folder for what policies write");
  app.add_flag("--no-loss", no_loss, "skip the loss on other samples");
  CLI11_PARSE(app, argc, argv);
  try {
    if (list) {
      tell("time", ForTime{});
      std::cout << json{{"name", resident}, {"text", "TensorDataset data"}, {"saves", "time"}}
                << '\n'
                << json{{"name", prefetch}, {"text", "Prefetch"}, {"saves", "nothing"}} << '\n';
      tell("memory", ForMemory{});
      tell("nothing", Others{});
      return 0;
    }
    Recipes recipes;
    add_subsets(recipes, ForTime{});
    add_subsets(recipes, ForMemory{});
    add_each(recipes, Others{});
    std::set<std::string_view> const asked(levers.begin(), levers.end());
    std::set<std::string_view> of_policies = asked;
    of_policies.erase(resident);
    of_policies.erase(prefetch);
    auto const recipe = recipes.find(of_policies);
    if (recipe == recipes.end()) throw std::runtime_error("these levers are not compiled together");
    if (threads > 0) at::set_num_threads(threads);
    torch::manual_seed(seed);
    Asked what{.job = make_job(job, images, text),
               .levers = asked,
               .device = c10::Device(device),
               .samples = samples,
               .seed = seed,
               .warmup = warmup,
               .run = run,
               .judge = !no_loss,
               .host = host};
    std::cout << recipe->second(what) << '\n';
  } catch (std::exception const& error) {
    std::cerr << error.what() << '\n';
    return 1;
  }
  return 0;
}
