// SPDX-License-Identifier: Apache-2.0
// The tests of the sink in docs/writing_a_sink.md.
#include <doctest/doctest.h>

#include <frugal/frugal.hpp>

#include "support/files.hpp"

#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

// Renames the example's main.
#define main main_of_sink_example
#include "../../examples/writing_a_sink.cpp"
#undef main

namespace frugal_test::docs_writing_a_sink {

namespace fr = frugal;
using support::lines_of;
using support::TemporaryFolder;
using support::text_of;

// [begin run]
/// Ends the process, as far as a test can, in the window after some step.
struct Dies {
  int* steps_left;
  at::Tensor operator()(torch::nn::Linear& net, at::Tensor const& batch) const {
    if ((*steps_left)-- == 0) throw std::runtime_error("killed");
    return net->forward(batch).square().mean();
  }
};

struct Result {
  fr::Report report;
  std::vector<std::string> lines;
  at::Tensor weight;
};

/// Up to six steps of a run in the folder, which resumes from the checkpoint in it, if there is one.
template <class... More>
Result run(std::filesystem::path const& folder, int steps_left, mine::JobLines<fr::Every<1>> sink,
           More... more) {
  torch::manual_seed(0);
  std::vector<at::Tensor> batches;
  for (int i = 0; i < 3; ++i) batches.push_back(at::full({2, 1}, i + 1.0));
  torch::nn::Linear net(1, 1);
  fr::Trainer trainer{net,
                      Dies{&steps_left},
                      fr::Settings{.run_dir = folder, .epochs = 2},
                      fr::Optimize<fr::SGD>{.lr = 0.01},
                      fr::Checkpoint<fr::Every<2>>{},
                      sink,
                      more...};
  Result result;
  try {
    result.report = trainer.fit(batches);
  } catch (std::runtime_error const& error) {
    if (std::string_view(error.what()) != "killed") throw;
  }
  result.lines = lines_of(text_of(folder / "job.jsonl"));
  result.weight = net->weight.detach().clone();
  return result;
}
// [end run]

/// The event and the step of a line.
std::string begin_of(std::string const& line) {
  return line.substr(0, line.find_first_of(",}", line.find("\"step\":")));
}
std::vector<std::string> begins_of(std::vector<std::string> const& lines) {
  std::vector<std::string> begins;
  for (std::string const& line : lines) begins.push_back(begin_of(line));
  return begins;
}

// [begin resume]
TEST_CASE("a run that is killed and resumed has the lines of one that is not") {
  TemporaryFolder const whole, killed;
  Result const expected = run(whole.path(), -1, {});
  run(killed.path(), 5, {});  // its last checkpoint is of step 4
  Result const resumed = run(killed.path(), -1, {});

  auto const is_of_a_process = [](std::string const& line) {
    return line.starts_with(R"({"event":"begin")") || line.starts_with(R"({"event":"resume")");
  };
  std::vector<std::string> lines = resumed.lines;
  CHECK(std::erase_if(lines, is_of_a_process) == 3);  // begin, begin, resume
  std::vector<std::string> once = expected.lines;
  CHECK(std::erase_if(once, is_of_a_process) == 1);
  CHECK(lines == once);
}
// [end resume]

TEST_CASE("each step, epoch and end of a run is a line") {
  TemporaryFolder const folder;
  Result const result = run(folder.path(), -1, {});
  CHECK(begins_of(result.lines) ==
        std::vector<std::string>{R"({"event":"begin","step":0)", R"({"event":"step","step":1)",
                                 R"({"event":"step","step":2)", R"({"event":"step","step":3)",
                                 R"({"event":"epoch","step":3)", R"({"event":"step","step":4)",
                                 R"({"event":"step","step":5)", R"({"event":"step","step":6)",
                                 R"({"event":"epoch","step":6)", R"({"event":"end","step":6)"});
  CHECK(result.report.warnings.empty());
}

TEST_CASE("a finished run that is started again has one end") {
  TemporaryFolder const folder;
  run(folder.path(), -1, {});
  int ends = 0;
  for (std::string const& line : run(folder.path(), -1, {}).lines) {
    ends += line.starts_with(R"({"event":"end")");
  }
  CHECK(ends == 1);
}

/// Records an event in one step.
struct Records {
  struct kind : fr::optional_kind {
    static constexpr std::string_view name = "Records";
  };
  using listens = fr::list<fr::on::step>;
  struct State {
    explicit State(Records const&) {}
    void on_step(fr::Step& phase) {
      if (phase.counters().step != 2) return;
      phase.record({"moved", {{"to", std::string("a \"b\"\n")}, {"count", 3.0}}});
    }
  };
};

TEST_CASE("an event that a policy records is a line, and comes before that of its step") {
  TemporaryFolder const folder;
  Result const result = run(folder.path(), -1, {}, Records{});
  REQUIRE(result.lines.size() > 3);
  CHECK(result.lines[2] == R"({"event":"moved","step":2,"to":"a \"b\" ","count":3})");
  CHECK(begin_of(result.lines[3]) == R"({"event":"step","step":2)");
}

// [begin failure]
TEST_CASE("a disk that is full changes no weight, and is one warning") {
  TemporaryFolder const good, full;
  Result const expected = run(good.path(), -1, {});
  Result const result = run(full.path(), -1, {.path = "/dev/full"});
  CHECK(result.weight.equal(expected.weight));
  REQUIRE(result.report.warnings.size() == 1);
  CHECK(result.report.warnings[0].starts_with("JobLines: cannot write to /dev/full"));
}
// [end failure]

TEST_CASE("lines that were written before the run stay, also after a resume from its beginning") {
  TemporaryFolder const folder;
  std::ofstream(folder / "job.jsonl") << "of another run\n";
  run(folder.path(), 0, {});  // the checkpoint of step 0 alone
  Result const result = run(folder.path(), -1, {});
  CHECK(result.lines[0] == "of another run");
  CHECK(begin_of(result.lines[1]) == R"({"event":"begin","step":0)");
  int steps = 0;
  for (std::string const& line : result.lines) steps += line.starts_with(R"({"event":"step")");
  CHECK(steps == 6);
}

TEST_CASE("half a line is cut off before the next one") {
  TemporaryFolder const folder;
  run(folder.path(), 5, {});
  std::ofstream(folder / "job.jsonl", std::ios::app) << "{\"event\":\"st";
  for (std::string const& line : run(folder.path(), -1, {}).lines) {
    CHECK(line.starts_with("{\"event\":\""));
    CHECK(line.ends_with('}'));
  }
}

TEST_CASE("a sink without a place to write to is refused before the run") {
  fr::Trainer trainer{torch::nn::Linear(1, 1), fr::MeanSquaredError{}, fr::Settings{},
                      fr::Optimize<fr::Nothing>{}, mine::JobLines<>{}};
  fr::TensorDataset train(torch::ones({8, 1}), torch::ones({8, 1}), {.batch = 8});
  CHECK_THROWS_AS(trainer.fit(train), fr::SettingsError);
}

TEST_CASE("numbers that JSON lacks are null") {
  CHECK(mine::line_of("step", 7, {{"loss", std::nan("")}, {"rate", 0.1}}) ==
        "{\"event\":\"step\",\"step\":7,\"loss\":null,\"rate\":0.1}\n");
}

}  // namespace frugal_test::docs_writing_a_sink
