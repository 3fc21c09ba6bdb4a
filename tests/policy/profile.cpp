// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <frugal/frugal.hpp>
namespace frugal_test::policy_profile {
TEST_CASE("x") {
  namespace fr = frugal;
  fr::Resident train(torch::randn({512, 8}), torch::randint(0, 3, {512}), {.batch = 32});
  fr::Trainer trainer{torch::nn::Linear(8, 3), fr::CrossEntropy{},
                      fr::Settings{.run = "runs/x", .epochs = 4}, fr::Optimize<fr::AdamW>{},
                      fr::Log<>{}, fr::Checkpoint<>{},
                      fr::Profile<>{}};
  auto r = trainer.fit(train);
  std::cout << r << '\n';
  for (auto&a : r.advice) std::cout << a << '\n';
  fr::explain(trainer);
  std::system("cat runs/x/profile/hot_spots.json | cut -c1-1500; ls -la runs/x/profile; cat runs/x/metrics.jsonl");
}
}
