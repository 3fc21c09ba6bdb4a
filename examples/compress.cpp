// SPDX-License-Identifier: Apache-2.0
// A GPT in the Llama layout learns the Bible letter by letter, and is then made smaller in every way: distilled into
// half its width, pruned, cut, quantized, and trained for its quantization.
//
//     compress TEXT [STEPS] [FOLDER]
//
// TEXT has a verse on each line, STEPS are those of the first training (600), and FOLDER gets the weights (a
// temporary one). `./dev compress` gets the text and calls it.
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <filesystem>
#include <iostream>
#include <string>
#include <vector>

#include <torch/torch.h>

#include <frugal/frugal.hpp>
#include <frugal/model.hpp>

#include "finetune/letters.hpp"

namespace fr = frugal;
using finetune::Letters;
using finetune::LlamaOptions;
using finetune::Text;

namespace {

constexpr LlamaOptions large{.vocabulary = 128,
                             .width = 192,
                             .layers = 4,
                             .heads = 12,
                             .key_value_heads = 4,
                             .intermediate = 512};
constexpr LlamaOptions small{.vocabulary = 128,
                             .width = 96,
                             .layers = 4,
                             .heads = 4,
                             .key_value_heads = 2,
                             .intermediate = 256};

class Job {
 public:
  Job(std::filesystem::path const& text, std::filesystem::path folder)
      : text_(text), folder_(std::move(folder)) {}

  Text const& text() const { return text_; }

  /// Trains a model, and says how long that took.
  template <class Objective = fr::CrossEntropy, class... Policies>
  double train(Letters& net, std::uint64_t steps, double rate, Objective objective,
               Policies const&... policies) {
    auto data = text_.train();
    fr::Trainer trainer{net,
                        std::move(objective),
                        fr::Settings{.steps = steps, .seed = 1},
                        fr::Optimize<fr::AdamW>{.lr = rate},
                        fr::Schedule<fr::Warmup<20>, fr::LinearDecay<>>{},
                        fr::ClipNorm<1.0>{},
                        policies...};
    fr::Report const report = trainer.fit(data);
    for (std::string const& each : report.warnings) std::cerr << each << '\n';
    return report.seconds;
  }

  void keep(Letters& net) { fr::save_weights(net, folder_); }
  Letters kept() const {
    Letters net(large);
    fr::load_weights(net, folder_);
    return net;
  }

  /// A line of the table: what the model is worth, and what it costs to run.
  void row(char const* what, Letters& net, double seconds) {
    auto data = text_.test();
    fr::Trainer trainer{net, fr::CrossEntropy{}, fr::Settings{}, fr::Optimize<fr::AdamW>{},
                        fr::Validate<fr::Every<1, fr::Epoch>, fr::Accuracy>{}};
    fr::Metrics const found = trainer.evaluate(data);
    std::printf("%-12s %9.2f %9.4f %9.2f %9.1f %9.1f\n", what, mebibytes(*net), found["loss"],
                100 * found["accuracy"], milliseconds(net), seconds);
    std::fflush(stdout);
  }

 private:
  static double mebibytes(torch::nn::Module const& net) {
    double bytes = 0;
    for (at::Tensor const& each : net.parameters())
      bytes += static_cast<double>(each.storage().nbytes());
    for (at::Tensor const& each : net.buffers())
      bytes += static_cast<double>(each.storage().nbytes());
    return bytes / 1048576;
  }

  /// Of a batch: the fastest pass of a second, or of five.
  double milliseconds(Letters& net) const {
    at::NoGradGuard const no_gradients;
    net->eval();
    at::Tensor const ids = text_.example(Text::batch);
    double best = 1e9, spent = 0;
    for (int i = 0; i < 5 || spent < 1000; ++i) {
      auto const begun = std::chrono::steady_clock::now();
      static_cast<void>(net->forward(ids));
      std::chrono::duration<double, std::milli> const took =
          std::chrono::steady_clock::now() - begun;
      best = std::min(best, took.count());
      spent += took.count();
    }
    return best;
  }

  Text text_;
  std::filesystem::path folder_;
};

void compress(Job& job, std::uint64_t steps) {
  double const fast = 2e-3, slow = 5e-4;
  std::uint64_t const again = std::max<std::uint64_t>(steps / 4, 1);
  std::printf("%-12s %9s %9s %9s %9s %9s\n", "model", "MiB", "loss", "accuracy", "ms/batch",
              "trained s");

  torch::manual_seed(1);
  Letters teacher(large);
  double const spent = job.train(teacher, steps, fast, fr::CrossEntropy{});
  job.row("large", teacher, spent);
  job.keep(teacher);
  // Trained on like the pruned and the cut one, to compare them with.
  Letters tuned = job.kept();
  job.row("tuned", tuned, job.train(tuned, again, slow, fr::CrossEntropy{}));

  torch::manual_seed(2);
  Letters alone(small);
  job.row("small", alone, job.train(alone, steps, fast, fr::CrossEntropy{}));
  torch::manual_seed(2);
  Letters student(small);
  fr::Distill<fr::Temperature<2>> const distill{.teachers = {fr::Teacher(teacher)}, .alpha = 0.7};
  job.row("distilled", student,
          job.train(student, steps, fast, distill.objective(fr::CrossEntropy{}), distill));

  Letters sparse = job.kept();
  using Half =
      fr::Prune<fr::Magnitude, fr::Sparsity<0.5>, fr::Cubic<50>, fr::Every<10>, fr::Global>;
  job.row("pruned 0.5", sparse, job.train(sparse, again, slow, fr::CrossEntropy{}, Half{}));

  Letters cut = job.kept();
  at::Tensor const example = job.text().example(2);
  std::cerr << fr::prune_structured(cut, example,
                                    fr::Structured<fr::KeepShare<0.75>, fr::RoundTo<fr::Auto>>{})
            << '\n';
  job.row("cut", cut, 0);
  job.row("cut tuned", cut, job.train(cut, again, slow, fr::CrossEntropy{}));

  Letters dynamic = job.kept();
  static_cast<void>(fr::quantize<fr::INT8>(dynamic));
  job.row("int8", dynamic, 0);
  Letters fixed = job.kept();
  auto few = fr::Limited(job.text().train(), 20);
  static_cast<void>(fr::quantize<fr::INT8>(fixed, few));
  job.row("int8 static", fixed, 0);
  Letters four = job.kept();
  static_cast<void>(fr::quantize<fr::INT4>(four));
  job.row("int4", four, 0);

  // The same steps, with and without rounding; then both are quantized.
  static_cast<void>(fr::quantize<fr::INT8>(tuned, few));
  job.row("tuned int8", tuned, 0);
  Letters aware = job.kept();
  double const aware_seconds =
      job.train(aware, again, slow, fr::CrossEntropy{}, fr::Qat<fr::INT8, fr::Learned>{});
  static_cast<void>(fr::convert(aware));
  job.row("qat int8", aware, aware_seconds);
}

}  // namespace

int main(int count, char** arguments) {
  std::vector<std::string> const words(arguments + 1, arguments + count);
  if (words.empty() || words.size() > 3) {
    std::cerr << "compress TEXT [STEPS] [FOLDER]\n";
    return 2;
  }
  try {
    Job job(words[0], words.size() > 2
                          ? std::filesystem::path(words[2])
                          : std::filesystem::temp_directory_path() / "frugal-compress");
    compress(job, words.size() > 1 ? std::stoull(words[1]) : 600);
  } catch (std::exception const& error) {
    std::cerr << error.what() << '\n';
    return 1;
  }
  return 0;
}
