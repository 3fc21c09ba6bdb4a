// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <frugal/policy/precision.hpp>
#include <frugal/policy/validate.hpp>

#include "support/training.hpp"

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
  CHECK(Precision<BF16>::caution().empty() == native);
  CHECK((native || report.warnings.front() == Precision<BF16>::caution()));
}

}  // namespace frugal_test::policy_precision
