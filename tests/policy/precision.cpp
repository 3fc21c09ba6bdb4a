// SPDX-License-Identifier: Apache-2.0
#include "support/training.hpp"

#include <doctest/doctest.h>

#include <frugal/core/state/state_reader.hpp>
#include <frugal/core/state/state_writer.hpp>
#include <frugal/frugal.hpp>
#include <frugal/policy/precision.hpp>
#include <frugal/policy/validate.hpp>

#include <cstdlib>
#include <string>

namespace frugal_test::policy_precision {

using namespace frugal_test::support;
using frugal::BF16;
using frugal::FP32;
using frugal::Precision;

bool autocast_is_on() { return at::autocast::is_autocast_enabled(at::kCPU); }

/// The number formats that an objective saw.
struct Formats {
  std::vector<at::ScalarType> logits;
  std::vector<bool> autocast;
};

struct Watching {
  Formats* formats;
  template <class Module>
  frugal::Loss operator()(Module& module, Weighted const& batch) const {
    formats->autocast.push_back(autocast_is_on());
    frugal::Loss loss = RowWeighted{false}(module, batch);
    formats->logits.push_back(loss.output.scalar_type());
    return loss;
  }
};

template <class P>
Formats formats_in(bool validated) {
  TrainingFile const file;
  Formats formats;
  frugal::Trainer trainer{file.network(),
                          Watching{&formats},
                          frugal::Settings{},
                          frugal::Optimize<frugal::AdamW>{},
                          P{},
                          frugal::Validate<frugal::SanityBatches<0>>{}};
  std::vector<Weighted> batches = file.batches({40});
  if (validated) {
    static_cast<void>(trainer.fit(batches, batches));
  } else {
    static_cast<void>(trainer.fit(batches));
  }
  for (at::Tensor const& parameter : trainer.module()->parameters()) {
    CHECK((parameter.scalar_type() == at::kFloat));
  }
  return formats;
}

TEST_CASE("under BF16 the module computes in BF16 and its weights stay FP32") {
  Formats const formats = formats_in<Precision<BF16>>(false);
  CHECK((formats.logits == std::vector{at::kBFloat16}));
  CHECK((formats.autocast == std::vector{true}));
}

TEST_CASE("a validation computes in the same format as training") {
  Formats const formats = formats_in<Precision<BF16>>(true);
  CHECK((formats.logits == std::vector{at::kBFloat16, at::kBFloat16}));
}

TEST_CASE("FP32 disables autocast") {
  Formats const formats = formats_in<Precision<FP32>>(true);
  CHECK((formats.logits == std::vector{at::kFloat, at::kFloat}));
  CHECK((formats.autocast == std::vector{false, false}));
}

TEST_CASE("FP32 written out gives the same bits as no Precision at all") {
  TrainingFile const file;
  Json const& which = case_named(file.file.at("cases"), "plain");
  auto const with = train_as(file, which, RowWeighted{false}, Precision<FP32>{});
  auto const without = train_as(file, which, RowWeighted{false});
  CHECK(same_bits(tensors_of(*with.net), tensors_of(*without.net)));
  CHECK(with.losses == without.losses);
}

struct Bystander {
  std::vector<bool>* seen;
  template <class Module>
  at::Tensor operator()(Module& module, Weighted const& batch) const {
    at::Tensor loss = RowWeighted{false}(module, batch).value;
    loss.register_hook([seen = seen](at::Tensor const& gradient) {
      seen->push_back(autocast_is_on());
      return gradient;
    });
    return loss;
  }
};

TEST_CASE("autocast is off in backward, in hooks and after the run") {
  TrainingFile const file;
  std::vector<bool> seen;
  Spy spy{.each_step = [&](frugal::Counters const&) { seen.push_back(autocast_is_on()); }};
  frugal::Trainer trainer{file.network(),     Bystander{&seen},
                          frugal::Settings{}, frugal::Optimize<frugal::AdamW>{},
                          Precision<BF16>{},  spy};
  static_cast<void>(trainer.fit(file.batches({20, 20})));
  CHECK((seen == std::vector<bool>(4, false)));
  CHECK_FALSE(autocast_is_on());
}

struct Broken {
  template <class Module>
  at::Tensor operator()(Module& module, Weighted const& batch) const {
    CHECK(autocast_is_on());
    return frugal::forward(module, batch.rows.data.slice(1, 0, 3)).sum();
  }
};

TEST_CASE("a forward pass that throws restores autocast") {
  TrainingFile const file;
  frugal::Trainer trainer{file.network(), Broken{}, frugal::Settings{},
                          frugal::Optimize<frugal::AdamW>{}, Precision<BF16>{}};
  auto batches = file.batches({40});
  CHECK_THROWS_AS(trainer.fit(batches), frugal::ShapeError);
  CHECK_FALSE(autocast_is_on());
}

TEST_CASE("a nested guard restores the outer one's state") {
  auto const before = at::autocast::get_autocast_dtype(at::kCPU);
  {
    frugal::detail::AutocastGuard const outer(at::kCPU, at::kHalf);
    {
      frugal::detail::AutocastGuard const inner(at::kCPU, at::kBFloat16);
      CHECK((at::autocast::get_autocast_dtype(at::kCPU) == at::kBFloat16));
    }
    CHECK(autocast_is_on());
    CHECK((at::autocast::get_autocast_dtype(at::kCPU) == at::kHalf));
  }
  CHECK_FALSE(autocast_is_on());
  CHECK((at::autocast::get_autocast_dtype(at::kCPU) == before));
}

TEST_CASE("weights that a step has changed are cast again: no cast outlives its forward pass") {
  // If a cast were cached, the second forward pass would see the first one's weights, and the loss
  // would not change.
  TrainingFile const file;
  Json const& which = case_named(file.file.at("cases"), "plain");
  auto const trained = train_as(file, which, RowWeighted{false}, Precision<BF16>{});
  CHECK(trained.losses[5] < trained.losses[0] - 0.05);
}

TEST_CASE("a CPU without BF16 instructions gives a note in advice, once per run") {
  TrainingFile const file;
  frugal::Trainer trainer{file.network(), RowWeighted{false}, frugal::Settings{.epochs = 3},
                          frugal::Optimize<frugal::AdamW>{}, Precision<BF16>{}};
  auto const report = trainer.fit(file.batches({40}));
  bool const native = frugal::detail::cpu_has_bf16();
  CHECK(report.warnings.size() == (native ? 0 : 1));
  CHECK(Precision<BF16>::caution(/*on_gpu=*/false).empty() == native);
  CHECK((native || report.warnings.front() == Precision<BF16>::caution(/*on_gpu=*/false)));
}

}  // namespace frugal_test::policy_precision

namespace frugal_test::policy_precision_from_env {

using namespace frugal_test::support;
using frugal::BF16;
using frugal::FP16;
using frugal::FP32;
using frugal::Precision;
using All = Precision<frugal::FromEnv<FP32, BF16, FP16>>;

/// Sets FRUGAL_PRECISION for its lifetime.
class Environment {
 public:
  explicit Environment(char const* value) {
    if (value == nullptr) {
      ::unsetenv(All::variable);
    } else {
      ::setenv(All::variable, value, 1);
    }
  }
  Environment(Environment const&) = delete;
  ~Environment() { ::unsetenv(All::variable); }
};

template <class P>
Trained trained_by(char const* value) {
  Environment const environment(value);
  TrainingFile const file;
  return train_as(file, case_named(file.file.at("cases"), "plain"), RowWeighted{false}, P{});
}

template <class Format>
void equals(char const* value) {
  CAPTURE(value);
  auto const chosen = trained_by<All>(value);
  auto const written = trained_by<Precision<Format>>(nullptr);
  CHECK(same_bits(tensors_of(*chosen.net), tensors_of(*written.net)));
  CHECK(chosen.losses == written.losses);
}

TEST_CASE("the environment selects a format, and the run has that format's bits") {
  equals<FP32>("FP32");
  equals<BF16>("BF16");
  equals<BF16>("bf16");
  equals<FP16>("FP16");
}

TEST_CASE("without the variable the first format is used") {
  equals<FP32>("");
  Environment const nothing(nullptr);
  CHECK((Precision<frugal::FromEnv<BF16, FP32>>::chosen() == "BF16"));
}

TEST_CASE("a value that is unknown, or not compiled in, is refused with the list of formats") {
  for (char const* const value : {"FP8", "bfloat16", " BF16", "FP16"}) {
    CAPTURE(value);
    Environment const environment(value);
    try {
      Precision<frugal::FromEnv<FP32, BF16>>::chosen();
      FAIL("it was taken");
    } catch (frugal::SettingsError const& error) {
      CHECK(std::string(error.what()).find("FP32, BF16") != std::string::npos);
      CHECK(std::string(error.what()).find(value) != std::string::npos);
    }
  }
}

TEST_CASE("a run resumes in the format in which it was saved, or not at all") {
  TrainingFile const file;
  auto const save = [&](frugal::StateDict& memory) {
    Environment const environment("BF16");
    All::State state(All{}, frugal::RecipeFacts{});
    frugal::StateWriter writer(memory);
    state.persist(writer);
  };
  frugal::StateDict memory;
  save(memory);
  Environment const environment("FP32");
  All::State state(All{}, frugal::RecipeFacts{});
  frugal::StateReader reader(memory);
  try {
    state.persist(reader);
    FAIL("it was loaded");
  } catch (frugal::StateError const& error) {
    CHECK(std::string(error.what()).find("FRUGAL_PRECISION=BF16") != std::string::npos);
  }
}

}  // namespace frugal_test::policy_precision_from_env
