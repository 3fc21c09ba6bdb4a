// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <frugal/frugal.hpp>

#include "support/files.hpp"

#include <sys/stat.h>

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <string>
#include <utility>

namespace frugal_test::policy_shared_save {

namespace fr = frugal;
using fr::ClusterError;
using fr::detail::PartReport;
using fr::detail::SharedSave;
using support::TemporaryFolder;
using support::text_of;

/// What others have posted, as a stranger would like it.
class Board final : public fr::SaveBoard {
 public:
  Board(unsigned rank, std::map<std::string, std::string> said)
      : SaveBoard(rank, 2), texts(std::move(said)) {}
  void post(std::string const& key, std::string const& text) override { texts[key] = text; }
  std::string await(unsigned, std::string const& key) override { return texts.at(key); }
  void forget(std::string const& key) override { texts.erase(key); }
  std::map<std::string, std::string> texts;
};

SharedSave save(unsigned rank, std::map<std::string, std::string> said) {
  return SharedSave(std::make_shared<Board>(rank, std::move(said)));
}

// The two names that processes send each other: of a file to look for, and of the folder to write to.
TEST_CASE("a name of another process is of this save, or nothing is read or written there") {
  TemporaryFolder const folder;
  std::filesystem::path const checkpoints = folder / "checkpoints";
  std::filesystem::create_directories(checkpoints / ".tmp-step-00000003-12-4");
  std::filesystem::create_directory(folder / "home");
  std::ofstream(folder / "home/thesis.tex") << "years of work";
  std::filesystem::create_directory_symlink(folder / "home",
                                            checkpoints / ".tmp-step-00000003-12-5");
  std::ofstream(checkpoints / ".tmp-step-00000003-12-6") << "a file";
  std::ofstream(checkpoints / ".tmp-seen-7-0") << "here";
  std::filesystem::create_symlink(folder / "home/thesis.tex", checkpoints / ".tmp-seen-7-1");

  auto const folder_of = [&](std::string const& name) {
    SharedSave one =
        save(1, {{"file", ".tmp-seen-7-0\nhere"}, {"all see", "yes"}, {"1/folder", name}});
    CHECK(one.all_see(checkpoints));
    one.next();
    return one.folder(3);
  };
  CHECK(folder_of(".tmp-step-00000003-12-4") == checkpoints / ".tmp-step-00000003-12-4");
  CHECK(folder_of("").empty());
  for (std::string const name :
       {"../home", "/etc", ".tmp-step-00000003-12-4/../../../home", ".tmp-step-00000003-12-4/",
        ".tmp-step-00000003-12", ".tmp-step-00000003--4", ".tmp-step-00000002-12-4",
        "step-00000003", ".tmp-step-00000003-12-4\n", ".tmp-step-00000003-12-99999999999",
        ".tmp-step-00000003-12-5", ".tmp-step-00000003-12-6"}) {
    CAPTURE(name);
    CHECK_THROWS_AS(folder_of(name), ClusterError);
  }
  CHECK_THROWS_AS(folder_of(".tmp-step-00000003-12-7"), fr::StoreError);  // it is not there

  for (std::string const name : {"../../home/thesis.tex", "/etc/passwd", "", "\n", ".tmp-seen-7",
                                 ".tmp-step-00000003-12-4"}) {
    CAPTURE(name);
    SharedSave one = save(1, {{"file", name + "\nyears of work"}, {"all see", "yes"}});
    CHECK_THROWS_AS(one.all_see(checkpoints), ClusterError);
  }
  // A link is not followed, so this process does not see the file.
  auto const board =
      std::make_shared<Board>(1, std::map<std::string, std::string>{
                                     {"file", ".tmp-seen-7-1\nyears of work"}, {"all see", "no"}});
  CHECK(!SharedSave(board).all_see(checkpoints));
  CHECK(board->texts.at("sees/1") == "no");
}

TEST_CASE("a part of another process is called as that process calls it, and is there once") {
  auto const reports_of = [](std::string const& name, std::string const& of, int times = 1) {
    PartReport report;
    for (int i = 0; i < times; ++i) {
      report.parts.push_back({.of = of,
                              .file = {.name = name, .size = 3, .hash = 7},
                              .tensors = {"weight"},
                              .bytes = 3});
    }
    SharedSave one = save(0, {{"0/1", report.text()}, {"0/folder", "x"}});
    return one.reports().size();
  };
  CHECK(reports_of("rank-1-model.safetensors", "model.safetensors") == 1);
  CHECK(reports_of("rank-1-averaged.safetensors", "averaged.safetensors") == 1);
  for (auto const& [name, of] :
       {std::pair{"../../../home/thesis.tex", "model.safetensors"},
        std::pair{"/etc/passwd", "model.safetensors"},
        std::pair{"rank-0-model.safetensors", "model.safetensors"},
        std::pair{"rank-1-../x", "../x"}, std::pair{"rank-1-state.json", "state.json"}}) {
    CAPTURE(name);
    CHECK_THROWS_WITH_AS(reports_of(name, of),
                         doctest::Contains("another process names a file that is not of this save"),
                         ClusterError);
  }
  CHECK_THROWS_AS(reports_of("rank-1-model.safetensors", "model.safetensors", 2), ClusterError);
  for (std::string const text : {"", "{", "{\"format\": \"frugal part of a checkpoint\"}"}) {
    CHECK_THROWS_AS(save(0, {{"0/1", text}, {"0/folder", "x"}}).reports(), fr::Error);
  }
}

/// Counts the times at which a run says that it is busy.
struct Busy {
  struct kind : fr::optional_kind {
    static constexpr std::string_view name = "test.Busy";
  };
  using listens = fr::list<fr::around::fit>;
  struct Seen {
    std::filesystem::path checkpoints{};
    std::atomic<int> times = 0, before = 0, after = 0;  ///< checkpoints at the beginnings and ends
    int count() const {
      int all = 0;
      std::error_code ignored;
      for (auto const& each : std::filesystem::directory_iterator(checkpoints, ignored)) {
        all += each.path().filename().string().starts_with("step-") ? 1 : 0;
      }
      return all;
    }
  };
  Seen* seen = nullptr;

  struct State {
    using transient = void;
    explicit State(Busy const& settings) : seen(settings.seen) {}
    template <class Next>
    void around_fit(fr::FitRun& phase, Next&& next) {
      Seen* const all = seen;
      phase.run_state().together.busy = [all]() -> std::shared_ptr<void> {
        ++all->times;
        all->before += all->count();
        return {nullptr, [all](void*) { all->after += all->count(); }};
      };
      next();
      phase.run_state().together.busy = nullptr;
    }
    Seen* seen;
  };
};

template <class... Options>
void train(std::filesystem::path const& folder, std::uint64_t epochs, Busy::Seen& seen) {
  torch::manual_seed(1);
  torch::nn::Linear net(4, 3);
  fr::TensorDataset data(torch::randn({8, 4}), torch::randint(0, 3, {8}), {.batch = 4});
  seen.checkpoints = folder / "checkpoints";
  fr::Trainer trainer{net,
                      fr::CrossEntropy{},
                      fr::Settings{.run_dir = folder, .epochs = epochs},
                      fr::Optimize<fr::SGD>{.lr = 0.1},
                      fr::Checkpoint<fr::Every<2>, Options...>{},
                      Busy{.seen = &seen}};
  trainer.fit(data);
}

TEST_CASE("a run is busy while it reads and writes checkpoints, in whatever thread") {
  TemporaryFolder const folder;
  Busy::Seen first, second, threads;
  train<>(folder / "one", 1, first);
  // The start, a save of step 0 and its end, saves of the last step and of the end of the run, which are of one
  // name, and the end.
  CHECK(first.times.load() == 6);
  CHECK(first.before.load() == 0 + 0 + 1 + 1 + 2 + 2);
  CHECK(first.after.load() == 0 + 1 + 1 + 2 + 2 + 2);
  train<>(folder / "one", 1, second);  // reads
  CHECK(second.times.load() >= 2);
  train<fr::Async>(folder / "two", 1, threads);
  CHECK(threads.times.load() == 6);
  CHECK(threads.after.load() - threads.before.load() == 2);
}

}  // namespace frugal_test::policy_shared_save
