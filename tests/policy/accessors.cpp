// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <frugal/frugal.hpp>
#include <frugal/report.hpp>

#include <concepts>
#include <memory>
#include <string_view>
#include <type_traits>

#include "support/running.hpp"

namespace frugal_test::trainer_accessors {

using namespace frugal;
using namespace frugal_test::support;

/// A kind of a user that brings an accessor, and one that brings none.
struct allowance : optional_kind {
  static constexpr std::string_view name = "Allowance";
  template <class Trainer>
  struct accessors {
    auto& allowance() {
      return static_cast<Trainer&>(*this).template policy<trainer_accessors::allowance>();
    }
  };
};
struct Allowance {
  using kind = allowance;
  using listens = list<>;
  double hours = 1;
};
struct Plain {
  struct kind : repeatable_kind {
    static constexpr std::string_view name = "Plain";
    template <class Trainer>
    struct accessors {
      int number() const {
        return static_cast<Trainer const&>(*this).template policy<kind>().number;
      }
    };
  };
  using listens = list<>;
  int number = 0;
};

template <class... Ps>
auto trainer_of(Ps const&... policies) {
  return Trainer{std::make_shared<Mlp>(), CrossEntropy{}, Settings{.epochs = 1}, policies...};
}

TEST_CASE("the optimizer's rate is what its user set, before a fit and after it") {
  auto trainer = trainer_of(Optimize<AdamW>{.lr = 3e-4}, Schedule<Warmup<5>, Cosine>{});
  CHECK(trainer.optimizer().lr == 3e-4);
  static_cast<void>(trainer.fit(TensorDataset(samples(32), {.batch = 4})));
  CHECK(trainer.optimizer().lr == 3e-4);
  trainer.optimizer().lr = 1e-2;
  CHECK(trainer.policy<frugal::kinds::optimizer>().lr == 1e-2);
}

TEST_CASE("each accessor is the policy of its kind") {
  auto trainer = trainer_of(Optimize<SGD>{}, Precision<BF16>{}, Accumulate<Auto>{}, ClipNorm<>{},
                            Schedule<Warmup<5>, Cosine>{}, Validate<Every<1, Epoch>, Accuracy>{},
                            EarlyStop<>{}, Average<>{}, Checkpoint<Every<500>>{}, Rollback<>{},
                            Spot<SigtermSave>{}, DryRun<>{}, Log<>{}, Progress<>{}, Throughput<>{},
                            Recompute<>{}, Activations<Offload>{}, AutoBatch{}, KeepHostMemory{},
                            FlushDenormals{}, SkipNonFinite{});
  auto const same = [](auto& a, auto& b) { return static_cast<void const*>(&a) == &b; };
  namespace k = frugal::kinds;
  CHECK(same(trainer.precision(), trainer.policy<k::precision>()));
  CHECK(same(trainer.accumulate(), trainer.policy<k::accumulate>()));
  CHECK(same(trainer.clip(), trainer.policy<k::clip>()));
  CHECK(same(trainer.optimizer(), trainer.policy<k::optimizer>()));
  CHECK(same(trainer.schedule(), trainer.policy<k::schedule>()));
  CHECK(same(trainer.validate(), trainer.policy<k::validate>()));
  CHECK(same(trainer.activations(), trainer.policy<k::activations>()));
  CHECK(same(trainer.auto_batch(), trainer.policy<k::auto_batch>()));
  CHECK(same(trainer.average(), trainer.policy<k::average>()));
  CHECK(same(trainer.checkpoint(), trainer.policy<k::checkpoint>()));
  CHECK(same(trainer.early_stop(), trainer.policy<k::early_stop>()));
  CHECK(same(trainer.flush_denormals(), trainer.policy<k::flush_denormals>()));
  CHECK(same(trainer.keep_host_memory(), trainer.policy<k::keep_host_memory>()));
  CHECK(same(trainer.log(), trainer.policy<k::log>()));
  CHECK(same(trainer.progress(), trainer.policy<k::progress>()));
  CHECK(same(trainer.recompute(), trainer.policy<k::recompute>()));
  CHECK(same(trainer.rollback(), trainer.policy<k::rollback>()));
  CHECK(same(trainer.skip_non_finite(), trainer.policy<k::skip_non_finite>()));
  CHECK(same(trainer.spot(), trainer.policy<k::spot>()));
  CHECK(same(trainer.throughput(), trainer.policy<k::throughput>()));
}

TEST_CASE("others of the recipe are there too") {
  auto trainer =
      trainer_of(Optimize<SGD>{}, Audit<>{}, StartOn<Cpu, Steps<3>>{}, StopAfter<Hours<4>>{});
  CHECK(std::same_as<decltype(trainer.audit()), Audit<>&>);
  CHECK(std::same_as<decltype(trainer.start_on()), StartOn<Cpu, Steps<3>>&>);
  CHECK(std::same_as<decltype(trainer.stop_after()), StopAfter<Hours<4>>&>);
}

TEST_CASE("of a constant trainer the policies are constant") {
  auto const trainer = trainer_of(Optimize<SGD>{.momentum = 0.9}, EarlyStop<>{});
  CHECK(trainer.optimizer().momentum == 0.9);
  CHECK(std::same_as<decltype(trainer.optimizer()), Optimize<SGD> const&>);
  CHECK(std::same_as<decltype(trainer.early_stop()), EarlyStop<> const&>);
}

TEST_CASE("a policy of a repeatable kind is reached by its number") {
  auto trainer = trainer_of(Optimize<SGD>{}, Log<Every<1>>{}, Log<Every<1, Epoch>>{});
  CHECK(std::same_as<decltype(trainer.log()), Log<Every<1>>&>);
  CHECK(std::same_as<decltype(trainer.policy<frugal::kinds::log, 0>()), Log<Every<1>>&>);
  CHECK(std::same_as<decltype(trainer.policy<frugal::kinds::log, 1>()), Log<Every<1, Epoch>>&>);
}

TEST_CASE("a kind of a user brings its own accessor, once however often it is in the recipe") {
  auto trainer =
      trainer_of(Optimize<SGD>{}, Allowance{.hours = 3}, Plain{.number = 4}, Plain{.number = 5});
  CHECK(trainer.allowance().hours == 3);
  trainer.allowance().hours = 2;
  CHECK(trainer.policy<allowance>().hours == 2);
  CHECK(trainer.number() == 4);
}

TEST_CASE("accessors take no room") {
  using One = decltype(trainer_of(Optimize<SGD>{}));
  CHECK(std::is_empty_v<Accessors<One>>);
  CHECK(std::is_empty_v<allowance::accessors<One>>);
}

}  // namespace frugal_test::trainer_accessors
